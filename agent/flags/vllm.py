"""vLLM's way of declaring flags: `add_argument(**get_kwargs(SomeConfig)["field"])` over annotated config classes."""

import ast
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agent.flags import forms
from agent.flags.interpret import Hook, Interpreter
from agent.flags.model import NoFlags, Place
from agent.flags.modules import last_name
from agent.flags.names import Names
from agent.flags.record import PARSER, SOURCE, Recorder
from agent.flags.values import UNKNOWN, ClassValue, External, FunctionValue, Generic, Value

PACKAGE = "vllm"
ENTRIES = ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
"""Where `make_arg_parser` of `vllm serve` is: since 0.31, and before."""

LOGIC = ("engine/arg_utils.py", "config/")
"""Where the flags are tested: files, and folders with their end."""

_BOOLEAN = External("argparse.BooleanOptionalAction")
_MAKES_DATACLASS = ("config", "dataclass")


def read_flags(read: Interpreter, recorder: Recorder) -> None:
    """Read every flag. Raises NoFlags."""
    for entry in ENTRIES:
        module = read.modules.get(entry)
        if module and isinstance(make := read.names.of_module(module, "make_arg_parser"), FunctionValue):
            read.call(make, [PARSER], {}, Place(module.path, 1))
            return
    raise NoFlags("it has no make_arg_parser in entrypoints/")


def hooks() -> dict[str, Hook]:
    """The functions of vLLM that read types at run time."""
    return {"get_kwargs": _get_kwargs, "get_args": _get_args, "optional_type": _inner_type, "parse_type": _inner_type}


def _get_args(_: Interpreter, args: Sequence[Value], __: Mapping[Any, Value], ___: Place) -> Value:
    return args[0].args if args and isinstance(args[0], Generic) else UNKNOWN


def _inner_type(_: Interpreter, args: Sequence[Value], __: Mapping[Any, Value], ___: Place) -> Value:
    return args[0] if args else UNKNOWN


def _get_kwargs(read: Interpreter, args: Sequence[Value], _: Mapping[Any, Value], __: Place) -> Value:
    """`get_kwargs(cls)`: arguments of `add_argument` for every field of a config class."""
    if not args or not isinstance(args[0], ClassValue):
        return UNKNOWN
    docs = _docs(read, args[0])
    made: dict[Any, Value] = {}
    for field in forms.fields(read, args[0]):
        kwargs = {"help": docs.get(field.name, ""), SOURCE: field}
        if field.default is not forms.MISSING:
            kwargs["default"] = field.default
        made[field.name] = kwargs | _by_type(read.names, list(forms.members(field.type)))
    return made


def _docs(read: Interpreter, of: ClassValue) -> dict[str, str]:
    """The text below each field of a class, where there is one."""
    found: dict[str, str] = {}
    for one in reversed(read.names.lineage(of)):
        body = one.node.body
        for node, after in pairwise(body):
            match node, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                    found[name] = text.strip()
    return found


def _by_type(names: Names, kinds: list[Value]) -> dict[Any, Value]:
    """What the type of a field makes of its flag."""
    if UNKNOWN in kinds:
        return {"type": UNKNOWN, "choices": UNKNOWN}
    kinds = [External("dict") if _is_dict(names, kind) else kind for kind in kinds]
    by_name = {forms.base_name(kind): kind for kind in kinds}
    optional = None in kinds
    if any(_is_dataclass(names, kind) for kind in kinds):
        made: dict[Any, Value] = {"type": External("json")}
    elif set(by_name) == {"bool", "str", ""} and len(kinds) == 3 and optional:
        return {"type": External("str"), "nargs": "?"}
    elif "bool" in by_name:
        return {"action": _BOOLEAN}
    elif "literal" in by_name:
        made = _literal(by_name["literal"], open_ended="str" in by_name)
    elif many := next((by_name[name] for name in ("tuple", "list", "set") if name in by_name), None):
        made = _many(many)
    else:
        scalar = next((name for name in ("int", "float", "dict") if name in by_name), "str")
        made = {"type": External("json" if scalar == "dict" else scalar)}
    if optional and made.get("choices"):
        made["choices"] = [*made["choices"], None]
    return made


def _literal(kind: Value, open_ended: bool) -> dict[Any, Value]:
    options = _options(kind)
    if not options or not all(isinstance(option, str | int) for option in options):
        return {"type": UNKNOWN, "choices": UNKNOWN}
    type_ = External(type(options[0]).__name__)
    return {"type": type_} if open_ended else {"type": type_, "choices": sorted(options)}


def _options(kind: Value) -> list[Value]:
    """The values of a Literal, those of Literals inside it included."""
    found: list[Value] = []
    for option in kind.args if isinstance(kind, Generic) else ():
        found += _options(option) if isinstance(option, Generic) else [option]
    return found


def _many(kind: Value) -> dict[Any, Value]:
    args = kind.args if isinstance(kind, Generic) else (External("str"),)
    several = {"nargs": len(args) if forms.base_name(kind) == "tuple" and Ellipsis not in args else "+"}
    inner = list(forms.members(args[0]))
    if len(inner) == 1 and forms.base_name(inner[0]) == "literal":
        return several | _literal(inner[0], open_ended=False)
    return several | {"type": inner[0] if len(inner) == 1 else External("str")}


def _is_dict(names: Names, kind: Value) -> bool:
    return isinstance(kind, ClassValue) and "dict" in names.outer_bases(kind)


def _is_dataclass(names: Names, kind: Value) -> bool:
    if not isinstance(kind, ClassValue):
        return False
    decorators = [decorator for one in names.lineage(kind) for decorator in one.node.decorator_list]
    return any(last_name(decorator) in _MAKES_DATACLASS for decorator in decorators)
