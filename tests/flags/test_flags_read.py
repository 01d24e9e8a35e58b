"""Flags as they are read from a source: what argparse itself would make of it, or that it cannot be told."""

import argparse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.flags.model import Flag, NoFlags, Place

from .trees import SERVER_ARGS, monolith, simulated, table


def read(argument: str, fields: str = "", above: str = "") -> Flag:
    """The flag x of a parser with this call of add_argument."""
    found = table(monolith(f"        parser.add_argument({argument})", f"    {fields}", above=above))
    flag = found.find("x")
    assert flag is not None
    return flag


def test_a_flag_has_all_that_its_call_says() -> None:
    argument = '"--x", "--ex", type=int, choices=[1, 2], default=ServerArgs.x, help="Many " "words."'
    flag = read(argument, "x: int = 2")
    assert flag.names == ("--x", "--ex")
    assert flag.place.path == SERVER_ARGS
    assert (flag.type, flag.takes, flag.choices, flag.default, flag.help) == (
        "int",
        "one",
        ("1", "2"),
        "2",
        "Many words.",
    )
    assert (flag.field, flag.unresolved, flag.deprecated) == ("x", (), False)


@pytest.mark.parametrize(
    ("choices", "above", "expected"),
    [
        ("STARRED", "", ("s1", "s2")),
        ("A + ['z']", "A = ['a']\nA.append('b')", ("a", "b", "z")),
        ("[*A, 'c']", "A = ('a', 'b')", ("a", "b", "c")),
        ("list(M.keys())", "M = {'k': int, 'l': str}", ("k", "l")),
        ("{'b', 'a'}", "", ("a", "b")),
        ("[m.name.lower() for m in E]", "import enum\nclass E(enum.Enum):\n    ONE = 1\n    TWO = 2", ("one", "two")),
        ("names()", "def names():\n    m = []\n    for n in 'p', 'q':\n        m.append(n)\n    return m", ("p", "q")),
        ("L.ALL", "class L:\n    ONE = 'one'\n    ALL = (ONE, 'two')", ("one", "two")),
        ("A", "if True:\n    A = ['a']\nelse:\n    A = ['a']", ("a",)),
        ("A", "A = []\nif os.getenv('X', '') == 'y':\n    A = ['y']", None),
        ("[n for n in A if n != 'b']", "A = ['a', 'b']", ("a",)),
        # What cannot be told is said to be so, and not guessed.
        ("A", "import torch\nA = torch.names()", None),
        ("A", "import torch\nA = ['a']\nif torch.there():\n    A.append('b')", None),
        ("A", "import torch\nif torch.there():\n    A = ['a']\nelse:\n    A = ['b']", None),
        ("nowhere", "", None),
    ],
)  # fmt: skip
def test_choices(choices: str, above: str, expected: tuple[str, ...] | None) -> None:
    flag = read(f'"--x", choices={choices}', above=above)
    assert flag.choices == expected
    assert ("choices" in flag.unresolved) == (expected is None)


@pytest.mark.parametrize(
    ("argument", "fields", "default", "takes", "type_"),
    [
        ('"--x", action="store_true"', "", "False", "nothing", "switch"),
        ('"--x", action=argparse.BooleanOptionalAction, default=None', "", "None", "nothing", "switch"),
        ('"--x", type=float, nargs="+", default=[0.5, 10 * 1000]', "", "[0.5, 10000]", "several", "float"),
        ('"--x", type=json.loads, default=dict()', "", "{}", "one", "json.loads"),
        ('"--x", nargs="?", const="y"', "", "None", "optional", "str"),
        ('"--x", default=argparse.SUPPRESS', "", "argparse.SUPPRESS", "one", "str"),
        ('"--x", default=int(os.getenv("X", "7"))', "", "7", "one", "str"),
        ('"--x", default=os.cpu_count()', "", None, "one", "str"),
        ('"--x", default=1 << 20', "", "1048576", "one", "str"),
        ('"--x", default=9 ** 99999', "", None, "one", "str"),
        ('"--x", **{"type": int, "default": 3}', "", "3", "one", "int"),
    ],
)  # fmt: skip
def test_defaults_and_types(argument: str, fields: str, default: str | None, takes: str, type_: str) -> None:
    flag = read(argument, fields)
    assert (flag.default, flag.takes, flag.type) == (default, takes, type_)
    assert ("default" in flag.unresolved) == (default is None)


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ('"--x", action="store_true", help="Deprecated. Use --new-x instead."', ("new-x",)),
        (
            '"--x", action=DeprecatedAction, help="Gone.", new_flag="--b-{decode,prefill}=off"',
            ("b-decode", "b-prefill"),
        ),
        ('"--x", help="Note: --x is deprecated now."', ()),
    ],
)
def test_deprecation_names_what_to_use(argument: str, instead: tuple[str, ...]) -> None:
    above = "class DeprecatedAction(argparse.Action):\n    def __init__(self, o, d, nargs=0, default=False): ..."
    flag = read(argument, above=above)
    assert flag.deprecated
    assert flag.instead == instead
    if "DeprecatedAction" in argument:
        assert (flag.takes, flag.default) == ("nothing", "False")


def test_a_help_that_only_speaks_of_deprecation_deprecates_nothing() -> None:
    assert not read('"--x", help="Whether to allow deprecated methods. Replaces the deprecated --y."').deprecated


def test_flags_whose_names_are_not_written_out_are_counted() -> None:
    found = table(monolith("        parser.add_argument(os.environ['X'])\n        parser.add_argument('--x')"))
    assert [place.path for place in found.unnamed] == [SERVER_ARGS]
    assert found.find("x") is not None


def test_escapes_in_a_help_do_not_get_through() -> None:
    assert read(r'"--x", help="\x1b[31mred\x07"').help == "red"


def test_the_simulated_trees_against_their_own_argparse() -> None:
    for version in ("0.5.9", "0.5.23"):
        texts = simulated(version)
        found = table(texts)
        assert found.version == version
        assert [flag.name for flag in found.flags if flag.unresolved] == []
        assert not found.unnamed
    scope: dict[str, object] = {"__name__": "sim"}
    exec(compile(simulated("0.5.9")[SERVER_ARGS], "server_args.py", "exec"), scope)
    parser = argparse.ArgumentParser()
    scope["ServerArgs"].add_cli_args(parser)  # type: ignore[attr-defined]
    theirs = {tuple(a.option_strings): (a.choices, repr(a.default)) for a in parser._actions[1:]}
    mine = {
        flag.names: (None if flag.choices is None else list(flag.choices), flag.default)
        for flag in table(simulated("0.5.9")).flags
    }
    assert mine == theirs


def test_annotated_fields_make_flags() -> None:
    texts = {
        SERVER_ARGS: """
from sglang.srt.arg_groups.arg_utils import add_cli_args_from_dataclass
from sglang.srt.arg_groups.fields import Model
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
_INPUT_NAMESPACES = [Model]
ServerArgs = defstruct("ServerArgs", [])
""",
        "srt/arg_groups/arg_utils.py": """
from typing import Annotated
A = Annotated
class Arg:
    pass
def add_cli_args_from_dataclass(parser, cls):
    raise NotImplementedError
""",
        "srt/arg_groups/fields.py": """
from typing import Literal, Optional
from sglang.srt.arg_groups.arg_utils import A, Arg
class Model:
    _NS_PATH = "model"
    model_path: A[str, Arg(help="Where.", aliases=["--model"])]
    is_fast: A[bool, "Be fast."] = False
    mode: A[Optional[Literal["a", "b"]], Arg(help="How.", cli_name="--how")] = None
    sizes: A[Optional[list[int]], "Sizes."] = None
    level: A[int, Arg(choices=[1, 2], resolvable=True)] = 1
    hidden: A[int, Arg(no_cli=True)] = 3
    plain: int = 4
""",
    }
    found = {flag.name: flag for flag in table(texts).flags}
    assert list(found) == ["model-path", "is-fast", "how", "sizes", "level"]
    assert found["model-path"].names == ("--model-path", "--model")
    assert (found["is-fast"].takes, found["is-fast"].default) == ("nothing", "False")
    assert (found["how"].choices, found["how"].field, found["how"].default) == (("a", "b"), "mode", "None")
    assert (found["sizes"].takes, found["sizes"].type) == ("several", "int")
    assert found["level"].choices == ("1", "2")
    assert found["level"].place == Place("srt/arg_groups/fields.py", 10)


VLLM = {
    "entrypoints/launchers/cli_args.py": """
from dataclasses import field
from vllm.config import config
from vllm.engine.arg_utils import EngineArgs, get_kwargs
@config
class FrontendArgs:
    \"\"\"About.\"\"\"
    port: int = 8000
    \"\"\"Port number.\"\"\"
    origins: list[str] = field(default_factory=lambda: ["*"])
    @classmethod
    def _customize(cls, kwargs):
        del kwargs["origins"]["nargs"]
        return kwargs
    @classmethod
    def add_cli_args(cls, parser):
        group = parser.add_argument_group(title=cls.__name__.replace("Args", ""), description=cls.__doc__)
        for key, value in cls._customize(get_kwargs(cls)).items():
            group.add_argument(f"--{key.replace('_', '-')}", **value)
        return parser
def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser = FrontendArgs.add_cli_args(parser)
    parser = EngineArgs.add_cli_args(parser)
    return parser
""",
    "engine/arg_utils.py": """
import argparse, sys
from vllm.config import CacheConfig
def get_kwargs(cls):
    raise NotImplementedError
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        kwargs = get_kwargs(CacheConfig)
        kwargs["dtype"]["choices"].remove("fp9")
        if not ("serve" in sys.argv[1:]):
            parser.add_argument("--block-size", "-b", **kwargs["block_size"])
        parser.add_argument("--kv-cache-dtype", **kwargs["dtype"])
        parser.add_argument("--prefix", **{**kwargs["prefix"], "default": None})
        parser.add_argument("--nested", **kwargs["nested"])
        parser.add_argument("--backend", **kwargs["backend"])
        parser.add_argument("--token", **kwargs["token"])
        parser.add_argument("--device", choices=["auto"] + platform.names())
        return parser
""",
    "config/__init__.py": "from vllm.config.cache import CacheConfig, config\n",
    "config/cache.py": """
from enum import Enum
from typing import TYPE_CHECKING, Literal
from pydantic import Field
if TYPE_CHECKING:
    from elsewhere import Names
else:
    Names = str
DType = Literal["auto", "fp8", "fp9"]
class Backend(Enum):
    TRITON = "triton"
@config
class Inner:
    x: int = 1
@config
class CacheConfig:
    block_size: int = Field(default=16, gt=0)
    \"\"\"Tokens of a block.\"\"\"
    dtype: DType | None = "auto"
    prefix: bool = True
    nested: "Inner | None" = Field(default_factory=Inner)
    backend: Backend = Backend.TRITON
    token: bool | str | None = None
    names: Names = "n"
    def __post_init__(self):
        if self.dtype == "fp8" and self.block_size < 32:
            raise ValueError("fp8 needs blocks of 32")
""",
}


def test_vllm_flags_come_from_the_types_of_its_configs() -> None:
    found = {flag.name: flag for flag in table(VLLM, "vllm").flags}
    assert list(found) == [
        "port",
        "origins",
        "block-size",
        "kv-cache-dtype",
        "prefix",
        "nested",
        "backend",
        "token",
        "device",
    ]
    assert (found["port"].help, found["port"].default, found["port"].owner) == ("Port number.", "8000", "FrontendArgs")
    assert (found["origins"].takes, found["origins"].default) == ("one", "['*']")
    assert found["block-size"].names == ("--block-size", "-b")
    assert found["block-size"].place.path == "config/cache.py"
    assert (found["kv-cache-dtype"].choices, found["kv-cache-dtype"].field) == (("auto", "fp8", "None"), "dtype")
    assert (found["prefix"].names, found["prefix"].default) == (("--prefix", "--no-prefix"), "None")
    assert (found["nested"].default, found["backend"].default) == ("Inner()", "Backend.TRITON")
    assert found["token"].takes == "optional"
    assert found["device"].unresolved == ("choices",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class ServerArgs:\n    pass",
        "class ServerArgs:\n    def add_cli_args(parser):\n        pass",
        "class ServerArgs(:",
        "def f(:\n",
        "class ServerArgs:\n  def add_cli_args(parser):\n    while True:\n      parser.add_argument()",
        "A = [1, 2, 3, 4, 5, 6, 7, 8, 9]\nB = [(a, b, c, d, e, f, g) for a in A for b in A for c in A for d in A"
        " for e in A for f in A for g in A]\nclass ServerArgs:\n  @staticmethod\n  def add_cli_args(parser):\n"
        "    parser.add_argument('--x', choices=B)",
        "class ServerArgs:\n  @classmethod\n  def add_cli_args(cls, parser):\n    cls.add_cli_args(parser)",
        "x = " + "(" * 150 + ")" * 150,
        "x = " + "-" * 5000 + "1",
    ],
)
def test_what_is_no_server_is_said_to_be_none(text: str) -> None:
    with pytest.raises(NoFlags):
        table({SERVER_ARGS: text})


@given(st.text(max_size=200), st.text(max_size=60))
@settings(deadline=None, max_examples=100)
def test_no_source_raises_anything_else(logic: str, argument: str) -> None:
    try:
        table(monolith(f"        parser.add_argument({argument})", logic=logic))
    except NoFlags:
        return
