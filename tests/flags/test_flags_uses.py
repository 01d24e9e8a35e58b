"""What the source does with flags, and what it demands of a configuration."""

from typing import Any

import pytest

from agent.flags.demands import demands, forced
from agent.flags.fragment import demands_in
from agent.flags.view import flag_lines, use_lines, uses_of

from .trees import SERVER_ARGS, monolith, simulated, table

ARGUMENTS = """
        parser.add_argument("--a", default=ServerArgs.a)
        parser.add_argument("--b", default=ServerArgs.b)
        parser.add_argument("--c", action="store_true")
        parser.add_argument("--n", type=int, default=ServerArgs.n)
"""
FIELDS = """
    a: str = "none"
    b: str = "auto"
    c: bool = False
    n: int = 4
"""


def needs(body: str, args: dict[str, Any], above: str = "") -> list[tuple[str | None, tuple[Any, ...]]]:
    """The demands of a server whose `_handle` ends with this body, for these flags."""
    logic = "".join(f"        {line}\n" for line in body.splitlines())
    found = table(monolith(ARGUMENTS, FIELDS, logic, above))
    return [(demand.flag, demand.choices) for demand in demands(found, args)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if self.a == 'v':\n    assert self.b in ('x', 'y')", [("b", ("x", "y"))]),
        ("if self.a != 'v':\n    return\nassert self.b == 'x'", [("b", ("x",))]),
        ("if not self.a == 'v':\n    pass\nelse:\n    assert self.b == 'x'", [("b", ("x",))]),
        ("if self.a == 'u':\n    pass\nelif self.a == 'v':\n    assert self.b == 'x'", [("b", ("x",))]),
        ("if self.a in ['v'] and self.n > 2:\n    assert self.c, 'needs c'", [("c", (True,))]),
        ("if 'v' == self.a and (self.c or self.n >= 4):\n    assert self.b == 'x'", [("b", ("x",))]),
        ("if self.a == 'v' and self.b not in {'x', 'y'}:\n    raise ValueError('no')", [("b", ("x", "y"))]),
        ("if self.a == 'v':\n    if self.b != 'x':\n        raise ValueError('no')", [("b", ("x",))]),
        ("if self.a == 'v' and not self.c:\n    raise ValueError('needs c')", [("c", (True,))]),
        ("now = self.a\nis_v = now == 'v'\nif is_v:\n    assert self.b in GOOD", [("b", ("g1", "g2"))]),
        ("if self.a.lower() == 'v':\n    assert self.b == 'x'", [("b", ("x",))]),
        ("self._check()\nif self.a == 'v':\n    assert self.n == self.tp_size", [("n", ("8",))]),
        ("if self.a == 'v':\n    assert self.n == -1", [("n", ("-1",))]),
        # Who is to give way is not said.
        ("if self.a == 'v' and self.n == 4:\n    raise ValueError('not with four')", [(None, ())]),
        ("assert self.a == 'none' or self.b == 'x'", [(None, ())]),
        # It holds, or the server sees to it itself.
        ("if self.a == 'v':\n    assert self.b in ('auto', 'x')", []),
        ("if self.a == 'v':\n    self.b = 'x'\n    assert self.b == 'x'", []),
        ("if self.a == 'v':\n    self.n = self.tp_size\n    assert self.n in [1, self.tp_size]", []),
        # It is not known whether it applies.
        ("if torch.there():\n    if self.a == 'v':\n        assert self.b == 'x'", []),
        ("if self.a == 'v':\n    for x in torch.all():\n        assert self.b == 'x'", []),
        ("if self.a == 'v' or torch.there():\n    assert self.b == torch.x", []),
        ("if torch.there():\n    self.n = 5\nif self.n == 4 and self.a == 'v':\n    assert self.b == 'x'", []),
        ("try:\n    pass\nexcept ValueError:\n    if self.a == 'v':\n        assert self.b == 'x'", []),
        ("if torch.there():\n    self.b = 'x'\nif self.a == 'v':\n    assert self.b != 'auto'", []),
        # Defaults alone never make a demand: such a server would not start for anybody.
        ("assert self.b == 'x'", []),
    ],
)
def test_demands(body: str, expected: list[tuple[str | None, tuple[Any, ...]]]) -> None:
    above = "import torch\nGOOD = ['g1', 'g2']"
    assert needs(body, {"model-path": "/m", "a": "v", "tp": "8"}, above) == expected


def test_a_value_that_somebody_chose_is_marked() -> None:
    logic = "        if self.a == 'v':\n            assert self.b == 'x'\n"
    found = table(monolith(ARGUMENTS, FIELDS, logic))
    assert [demand.given for demand in demands(found, {"a": "v", "b": "y"})] == [True]
    assert [demand.given for demand in demands(found, {"a": "v"})] == [False]


def test_a_function_that_is_called_under_conditions_has_them() -> None:
    logic = "        if {}:\n            self._more()\n    def _more(self):\n        assert self.b == 'x'\n"
    for condition, expected in (("self.a == 'v'", ["b"]), ("torch.there()", []), ("self.a == 'w'", [])):
        found = table(monolith(ARGUMENTS, FIELDS, logic.format(condition), "import torch"))
        assert [demand.flag for demand in demands(found, {"a": "v", "b": "y"})] == expected


def test_the_story() -> None:
    found = table(simulated("0.5.9"))
    args = {"model-path": "/m", "tp": "8", "moe-a2a-backend": "flashinfer"}
    (demand,) = demands(found, args)
    assert (demand.flag, demand.choices) == ("moe-runner-backend", ("flashinfer_cutlass",))
    line = simulated("0.5.9")[SERVER_ARGS].splitlines()[demand.place.line - 1]
    assert line.strip().startswith("assert self.moe_runner_backend in")
    assert demands(found, {**args, "moe-runner-backend": "flashinfer_cutlass"}) == ()
    assert demands(found, {**args, "moe-a2a-backend": "deepep"}) == ()


def test_what_the_server_forces() -> None:
    found = table(simulated("0.5.9"))
    args = {"model-path": "/m", "tp": "8", "moe-a2a-backend": "flashinfer", "ep-size": "4"}
    made = {one.flag: (one.value, one.instead_of, one.because) for one in forced(found, args)}
    because = ("moe_a2a_backend == flashinfer",)
    assert made == {"ep-size": ("8", "4", because), "disable-shared-experts-fusion": (True, None, because)}
    assert "ep-size" not in {one.flag for one in forced(found, {**args, "ep-size": "8"})}
    assert forced(found, {"model-path": "/m", "tp": "8"}) == ()


def test_the_newer_story_has_two_demands() -> None:
    found = table(simulated("0.5.23"))
    both = demands(found, {"model-path": "/m", "tp": "8", "moe-a2a-backend": "flashinfer"})
    assert {demand.flag: demand.choices[0] for demand in both} == {
        "attn-dp-size": "8",
        "moe-runner-backend": "flashinfer_cutlass",
    }


def test_uses_are_shown_by_block() -> None:
    found = table(simulated("0.5.9"))
    flag = found.find("moe-a2a-backend")
    assert flag is not None
    lines = list(use_lines(uses_of(found, flag)))
    start = next(number for number, line in enumerate(lines) if line.startswith("moe_a2a_backend == flashinfer "))
    block = "\n".join(lines[start : start + 7])
    assert f"moe_a2a_backend == flashinfer   {SERVER_ARGS}:" in block
    assert "  sets     ep_size = tp_size  :" in block
    assert "  sets     disable_shared_experts_fusion = True  :" in block
    assert "  sets     SGLANG_MOE_NVFP4_DISPATCH=1  :" in block
    assert "  asserts  moe_runner_backend in [flashinfer_cutlass]" in block
    table_lines = list(flag_lines([flag]))
    assert table_lines[0].split() == ["flag", "type", "default", "choices", "where"]
    assert table_lines[1].endswith(str(flag.place))


def test_a_changed_tree_is_followed() -> None:
    text = simulated("0.5.9")[SERVER_ARGS]
    added = "".join(f'        parser.add_argument("--new-{n}", type=int, default={n})\n' for n in range(3))
    text = text.replace(
        "        # Model\n        parser.add_argument(", added + "        # Model\n        parser.add_argument("
    )
    for old in ("stream-interval", "page-size", "schedule-policy"):
        text = text.replace(f'"--{old}"', f'"--renamed-{old}"')
    for gone in ("enable-mscclpp", "enable-nccl-nvls", "disable-cuda-graph-padding"):
        at = text.index(f'        parser.add_argument(\n            "--{gone}"')
        text = text[:at] + text[text.index("        )\n", at) + len("        )\n") :]
    text = text.replace(
        'self.moe_runner_backend in ["flashinfer_cutlass"]', 'self.moe_runner_backend in ["cutlass", "triton"]'
    )
    before = table(simulated("0.5.9"))
    after = table({**simulated("0.5.9"), SERVER_ARGS: text})
    was, now = ({flag.name for flag in found.flags} for found in (before, after))
    renamed = {"stream-interval", "page-size", "schedule-policy"}
    assert now - was == {"new-0", "new-1", "new-2"} | {f"renamed-{name}" for name in renamed}
    assert was - now == renamed | {"enable-mscclpp", "enable-nccl-nvls", "disable-cuda-graph-padding"}
    (demand,) = demands(after, {"model-path": "/m", "moe-a2a-backend": "flashinfer"})
    assert demand.choices == ("cutlass", "triton")


CLASS = "class ServerArgs:\n  a: str = 'none'\n  b: str = 'auto'\n  c: bool = False\n  q: str = None\n  def f(self):\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if args.a == 'v':\n      assert server_args.b == 'x'", {"b": ("x",)}),
        ("    if self.a == 'v':\n      assert self.c == True", {"c": (True,)}),
        ("    if self.a == 'v':\n      assert self.n == 4, 'text'", {"n": ("4",)}),
        ("    if self.a == 'v':\n      assert self.q in ['fp4', None]", {}),
        ("    if self.a == 'v':\n      assert self.c == False", {}),
        ("    if self.a == 'v':\n      assert other.b == 'x'", {}),
        # Nothing that could be more than a value becomes an element of an argv.
        ("    if self.a == 'v':\n      assert self.b == '--evil'", {}),
        ("    if self.a == 'v':\n      assert self.b == 'x y'", {}),
        ("    if self.a == 'v':\n      assert self.n == 0x" + "f" * 9000, {}),
    ],
)
def test_one_file_alone(body: str, expected: dict[str, tuple[Any, ...]]) -> None:
    assert {one.flag: one.choices for one in demands_in(CLASS + body, 1, 1000, {"a": "v"})} == expected


def test_only_the_block_shown_counts() -> None:
    text = CLASS + "    if self.a == 'v':\n      pass\n      assert self.b == 'x'\n"
    assert demands_in(text, 1, 6, {"a": "v"}) == ()
    assert len(demands_in(text, 7, 7, {"a": "v"})) == 1
    assert len(demands_in(text, 8, 9, {"a": "v"})) == 1
