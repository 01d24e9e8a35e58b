"""The ast search of preflights: tables of source texts, and that no text whatever makes it raise."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.research.literals import dicts, lists, look_up
from agent.syntax import Unparsable, parse

SNIPPETS = st.sampled_from(
    [
        "X = {",
        "X",
        "=",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "9",
        "'a'",
        "**y",
        "(",
        ")",
        "def f():\n ",
        "\n",
        "X[9] = 1",
        "\\",
        "0x",
    ]
)


@pytest.mark.parametrize(
    ("source", "key", "answer"),
    [
        ("X = {9: 1, 10: 2}", "12", "absent"),
        ("X = {9: 1, 10: 2}", "10", "present"),
        ("X = {9: {12: 1}}", "12", "absent"),  # only the top level counts
        ("X = {12: 1}", "12.0", "present"),  # as a number they are the same key
        ("X = {'12.0': 1}", "12", "absent"),  # as texts they are not
        ("X = {'9.0': 1, '10.0': 2}", "9.0", "present"),
        ("X: dict[int, int] = {9: 1}", "9", "present"),
        ("X = None\nX = {9: 1}", "10", "absent"),
        ("class A:\n  def f(self):\n    self.X = {-1: 2}", "-1", "present"),
        ("X = {(9, 0): 1}", "(9, 0)", "present"),
        ("X = {**OTHER, 9: 1}", "12", "unclear"),
        ("X = {**OTHER, 9: 1}", "9", "present"),
        ("X = {torch.half: 1}", "torch.half", "present"),
        ("X = {SM120: 1}", "12", "unclear"),
        ("X = {9: 1}\nX[12] = 2", "12", "unclear"),
        ("X = {9: 1}\nX.update(more)", "12", "unclear"),
        ("X = {9: 1}\nX |= more", "12", "unclear"),
        ("if a:\n  X = {9: 1}\nelse:\n  X = {12: 1}", "12", "unclear"),
        ("X = {9: 1}\nX = load()", "12", "unclear"),
        ("X = {True: 1}", "1", "absent"),
        ("X = dict(a=1)", "a", "unclear"),
        ("Y = {9: 1}", "9", "unclear"),
    ],
)
def test_keys_of_a_table(source: str, key: str, answer: str) -> None:
    assert look_up(dicts(source, "X"), key) == answer


@pytest.mark.parametrize(
    ("source", "function", "item", "answer"),
    [
        ("f(X=[9, 10])", None, "12", "absent"),
        ("f(X=[9, 10])", None, "9", "present"),
        ("X = (9, 10)", None, "10", "present"),
        ("X = {'a', 'b'}", None, "c", "absent"),
        ("def g():\n  f(X=[9])\ndef h():\n  f(X=[12])", "g", "12", "absent"),
        ("def g():\n  f(X=[9])\ndef h():\n  f(X=[12])", "h", "12", "present"),
        ("def g():\n  f(X=[9])\ndef h():\n  f(X=[12])", None, "12", "unclear"),
        ("async def g():\n  X: list = [9]", "g", "9", "present"),
        ("X = [9]\nX.append(12)", None, "12", "unclear"),
        ("X = [9]\nX += [12]", None, "12", "unclear"),
        ("X = [*MORE, 9]", None, "12", "unclear"),
        ("X = []", None, "12", "absent"),
        ("X = [9]", "missing", "9", "unclear"),
    ],
)
def test_items_of_a_list(source: str, function: str | None, item: str, answer: str) -> None:
    assert look_up(lists(source, "X", function), item) == answer


def test_lines_lead_to_the_keys() -> None:
    (table,) = dicts("\nX = {\n  9: 1,\n  10: 2,\n}", "X")
    assert table.line == 2
    assert [(item.text, item.line) for item in table.items] == [("9", 3), ("10", 4)]


@pytest.mark.parametrize("source", ["def (", "\0", "(" * 90_000, "-" * 300_000 + "1", "X = {\ud800}", "x" * (1 << 21)])
def test_what_is_not_python_is_said_to_be_so(source: str) -> None:
    with pytest.raises(Unparsable):
        dicts(source, "X")


def test_doubtful_escapes_warn_nobody() -> None:
    assert dicts(r"X = {'\d': 1}", "X")  # warnings are errors in these tests


class _Circle:
    """Rubbish whose collection lets another thread go on, in the middle of whatever goes on."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0)


def test_texts_parsed_in_several_threads_at_once() -> None:
    source = Path(__file__).read_text()
    before = gc.get_threshold()
    gc.set_threshold(10)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(lambda _: (_Circle(), parse(source))[1], range(60)))
    finally:
        gc.set_threshold(*before)
    assert len({len(tree.body) for tree in trees}) == 1


@given(st.one_of(st.text(), st.lists(SNIPPETS, max_size=12).map("".join)), st.text(max_size=8))
@settings(deadline=None, max_examples=300)
def test_no_text_raises(source: str, wanted: str) -> None:
    try:
        look_up(dicts(source, "X"), wanted)
        look_up(lists(source, "X", None), wanted)
    except Unparsable:
        pass
