"""What a block of source demands of the flags, in the direct form, and nothing beyond it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.research.requires import demands

from .conftest import SERVER_ARGS

CLASS = "class ServerArgs:\n  a: str = 'none'\n  b: str = 'auto'\n  c: bool = False\n  q: str = None\n  def f(self):\n"
EVERYTHING = (1, 10_000)


def found(body: str, args: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {demand.flag: demand.choices for demand in demands(CLASS + body, *EVERYTHING, args)}


def test_the_story() -> None:
    args = {"tp": "8", "moe-a2a-backend": "flashinfer"}
    (demand,) = demands(SERVER_ARGS, *EVERYTHING, args)
    assert (demand.flag, demand.choices) == ("moe-runner-backend", ("flashinfer_cutlass",))
    assert SERVER_ARGS.splitlines()[demand.line - 1].strip() == "assert self.moe_runner_backend in ["
    assert demands(SERVER_ARGS, *EVERYTHING, {**args, "moe-runner-backend": "flashinfer_cutlass"}) == ()
    assert demands(SERVER_ARGS, *EVERYTHING, {"moe-a2a-backend": "deepep"}) == ()


def test_only_the_block_shown_counts() -> None:
    args = {"moe-a2a-backend": "flashinfer"}
    line = SERVER_ARGS.splitlines().index('        if self.moe_a2a_backend == "flashinfer":') + 1
    assert demands(SERVER_ARGS, 1, line - 1, args) == ()
    assert len(demands(SERVER_ARGS, line, line, args)) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if self.a == 'v':\n      assert self.b in ('x', 'y')", {"b": ("x", "y")}),
        ("    if self.a == 'v':\n      assert self.b == 'x'", {"b": ("x",)}),
        ("    if args.a == 'v':\n      assert server_args.b == 'x'", {"b": ("x",)}),
        ("    if self.a == 'v':\n      assert self.c == True", {"c": (True,)}),
        ("    if self.a == 'v':\n      assert self.n == 4, 'text'", {"n": ("4",)}),
        ("    if self.a == 'u':\n      pass\n    elif self.a == 'v':\n      assert self.b == 'x'", {"b": ("x",)}),
        # The default of the source is allowed already.
        ("    if self.a == 'v':\n      assert self.b in ['auto', 'x']", {}),
        ("    if self.a == 'v':\n      assert self.q in ['fp4', None]", {}),
        ("    if self.a == 'v':\n      assert self.c == False", {}),
        # The server sets it itself.
        ("    if self.a == 'v':\n      self.b = 'x'\n      assert self.b == 'x'", {}),
        # Not the direct form, or not for this value.
        ("    if self.a == 'w':\n      assert self.b == 'x'", {}),
        ("    if self.a != 'v':\n      assert self.b == 'x'", {}),
        ("    if hip():\n      if self.a == 'v':\n        assert self.b == 'x'", {}),
        ("    if hip():\n      pass\n    elif self.a == 'v':\n      assert self.b == 'x'", {}),
        ("    if self.a == 'v':\n      assert self.b not in ['x']", {}),
        ("    if self.a == 'v':\n      assert self.b in [1, self.tp]", {}),
        ("    if self.a == 'v':\n      assert other.b == 'x'", {}),
        # Nothing that could be more than a value becomes an element of an argv.
        ("    if self.a == 'v':\n      assert self.b == '--evil'", {}),
        ("    if self.a == 'v':\n      assert self.b == 'x y'", {}),
        ("    if self.a == 'v':\n      assert self.n == 0x" + "f" * 9000, {}),
    ],
)
def test_forms(body: str, expected: dict[str, tuple[Any, ...]]) -> None:
    assert found(body, {"a": "v"}) == expected


def test_a_value_that_is_not_allowed_is_replaced_under_the_name_that_the_experiment_uses() -> None:
    body = "    p.add_argument('--tensor-parallel-size', '--tp-size', '--tp')\n"
    body += "    if self.a == 'v':\n      assert self.tp_size == 1"
    assert found(body, {"a": "v", "tp": "8"}) == {"tp": ("1",)}
    assert found(body, {"a": "v", "tensor-parallel-size": "1"}) == {}
    assert found(body, {"a": "v"}) == {"tp-size": ("1",)}


@given(st.text(), st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=5), st.booleans(), st.none())))
@settings(deadline=None, max_examples=200)
def test_no_text_raises(source: str, args: dict[str, Any]) -> None:
    demands(source, *EVERYTHING, args)
    demands(CLASS + "    if self.a == 'v':\n" + source, *EVERYTHING, {**args, "a": "v"})
