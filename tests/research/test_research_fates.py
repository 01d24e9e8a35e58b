"""What functions do where an item is missing: tables of the shapes that real servers have."""

import ast
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.research.fates import fates, functions
from agent.research.preflights.gate import gate
from agent.research.preflights.literal import missing_from

UNGUARDED = """
def f(self):
    if not available:
        return
    if self.cap < 9:
        log("old")
        return
    if self.world not in T[self.cap]:
        return
    self.size = T[self.cap][self.world]
"""
GET_AND_WARN = """
def f(self):
    if not available:
        return
    sizes = T.get(self.cap)
    if sizes is None:
        log("not supported")
        return
    self.size = sizes[self.world]
"""
GET_WITH_OR = """
def f(self):
    sizes = tables.T.get(self.cap, None)
    if sizes is None or self.world not in sizes:
        return None
    return sizes[self.world]
"""
NOT_IN = """
def f(self):
    if self.cap not in T:
        log("not supported")
        return
    if self.world not in T[self.cap]:
        return
"""
NOT_IN_RAISES = """
def f(cap):
    if cap not in T.keys():
        raise NotImplementedError("no")
"""
CAUGHT = """
def f(cap):
    try:
        return T[cap]
    except KeyError:
        return None
"""
CAUGHT_AND_RAISED = """
def f(cap):
    try:
        sizes = T[cap]
    except LookupError as error:
        raise RuntimeError("no") from error
"""
CAUGHT_ELSEWHERE = """
def f(cap):
    try:
        sizes = T[cap]
    except ValueError:
        return None
"""
REMEMBERED = """
def f(cap):
    sizes = T[cap] if cap in T else None
    if sizes is None:
        return False
    return True
"""
DEFAULT = """
def f(cap):
    return T.get(cap, 64)
"""
OTHER_WAY = """
def f(cap):
    if cap in T:
        size = T[cap]
    else:
        size = 64
    return size
"""
SHORT_CIRCUIT = """
def f(cap):
    if cap in T and T[cap] > 8:
        go()
    return 1
"""
ASSERTED = """
def f(cap):
    assert cap in T, "no"
"""
WALRUS = """
def f(cap):
    if (size := T.get(cap)) is None:
        return
    use(size)
"""
IN_A_BRANCH = """
def f(cap):
    if wanted:
        size = T[cap]
"""
CONSTANT_KEY = """
def f():
    return T[9]
"""
NOT_ASKED = """
def f(cap):
    T[cap] = 1
    for key in T:
        print(key)
"""


@pytest.mark.parametrize(
    ("source", "hows"),
    [
        (UNGUARDED, [("raises", 8)]),
        (GET_AND_WARN, [("gives-up", 8)]),
        (GET_WITH_OR, [("gives-up", 5)]),
        (NOT_IN, [("gives-up", 5)]),
        (NOT_IN_RAISES, [("raises", 4)]),
        (CAUGHT, [("gives-up", 6)]),
        (CAUGHT_AND_RAISED, [("raises", 6)]),
        (CAUGHT_ELSEWHERE, [("raises", 4)]),
        (REMEMBERED, [("gives-up", 5)]),
        (DEFAULT, []),
        (OTHER_WAY, [("goes-on", 3)]),
        (SHORT_CIRCUIT, [("goes-on", 3)]),
        (ASSERTED, [("raises", 3)]),
        (WALRUS, [("gives-up", 4)]),
        (IN_A_BRANCH, [("raises", 4)]),
        (CONSTANT_KEY, []),
        (NOT_ASKED, []),
    ],
)
def test_a_missing_key(source: str, hows: list[tuple[str, int]]) -> None:
    (function,) = functions(ast.parse(source))
    assert [(fate.how, fate.line) for fate in fates(function, missing_from("T"))] == hows


GATE = """
def allowed(batch):
    return (_is_sm90_supported or _is_sm100_supported) and available and batch > 0

def resolve(backend):
    if not (platform().is_sm90 or platform().is_sm100):
        raise ValueError("no")
    if backend == "cutedsl":
        if not platform().is_sm100:
            raise ValueError("no")
    return backend

def only_newer():
    assert is_sm120_supported(), "no"
    return True

def chosen():
    if is_sm120():
        return "triton"
    return "fa3"

def nothing(x):
    return x
"""


@pytest.mark.parametrize(
    ("name", "major", "hows"),
    [
        ("allowed", 12, [("gives-up", True)]),
        ("allowed", 9, []),
        ("resolve", 12, [("raises", True)]),
        ("resolve", 10, [("goes-on", True), ("goes-on", False)]),
        ("resolve", 9, [("goes-on", True), ("raises", False)]),
        ("only_newer", 9, [("raises", True)]),
        ("only_newer", 12, []),
        ("chosen", 12, [("goes-on", True)]),
        ("nothing", 12, []),
    ],
)
def test_gates_of_a_gpu(name: str, major: int, hows: list[tuple[str, bool]]) -> None:
    decided, tests = gate(dedent(GATE), name, major)
    assert [(fate.how, fate.sure) for fate in decided] == hows
    assert bool(tests) == (name != "nothing")


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(LookupError):
        gate(GATE, "gone", 12)


LINES = st.sampled_from(
    [
        "if x in T:", "if T.get(x) is None:", "else:", "return", "return False", "raise E", "y = T[x]", "try:",
        "except KeyError:", "finally:", "while T[x]:", "for a in T:", "pass", "break", "with a:", "match T[x]:",
        "case 1:", "x: int", "y = T.get(x) or T[x]", "lambda: T[x]", "z = [T[i] for i in T]", "def g():",
        "assert x in T",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 4), LINES), max_size=14))
@settings(deadline=None, max_examples=400)
def test_no_function_makes_it_raise(lines: list[tuple[int, str]]) -> None:
    source = "def f(x):\n pass\n" + "".join(f"{' ' * depth}{text}\n" for depth, text in lines)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for function in functions(tree):
        assert all(fate.line > 0 for fate in fates(function, missing_from("T")))
