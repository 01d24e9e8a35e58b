"""Whether the code of a file defines a name: read, never searched as text."""

from collections.abc import Callable
from typing import Any

import pytest

from agent.research.preflights.source_name import defined
from tests.research.conftest import EVERYWHERE, Bench

MODEL = '''
"""Of a model."""
from nn import Module
import os.path as places

class Model(nn.Module, Generic[T]):
    rows = 4

    @property
    def head(self):
        self.embed = local = 1
        other.attribute = 2
        return lambda: 1

    class Inner:
        def deep(self): ...

class Child(Model):
    async def own(self): ...

class Stranger(Elsewhere):
    def own(self): ...

if rows:
    LIMIT: int = 3
'''


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Model", 6),
        ("Model.head", 10),
        ("Model.rows", 7),
        ("Model.embed", 11),
        ("Model.Inner.deep", 16),
        ("Child.own", 19),
        ("Child.embed", 11),
        ("Stranger.own", 22),
        ("head", 10),
        ("LIMIT", 25),
        ("places", 4),
        ("Module", 3),
    ],
)
def test_where_a_name_is_defined(name: str, line: int) -> None:
    assert defined(MODEL, name).line == line


@pytest.mark.parametrize("name", ["nothing", "Model.nothing", "Child.nothing", "Model.Inner.nothing"])
def test_a_name_that_the_text_does_not_know_is_not_there(name: str) -> None:
    found = defined(MODEL, name)
    assert (found.line, found.unclear) == (None, "")


ELSEWHERE = "names come from elsewhere (import *, __getattr__)"


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (MODEL, "Stranger.nothing", "it inherits from Elsewhere"),
        (MODEL, "local", "line 11 only mentions it"),
        (MODEL, "attribute", "line 12 only mentions it"),
        (MODEL, "Model.LIMIT", "line 25 only mentions it"),
        ("class A:\n    ...\nsetattr(A, 'late', 1)\n", "A.late", "line 3 only mentions it"),
        ("from x import *\n", "late", ELSEWHERE),
        (
            "class A:\n    def __getattr__(self, name): ...\n",
            "A.late",
            ELSEWHERE,
        ),
        ("class A(B, factory()): ...\nclass B(A): ...\n", "A.late", "it inherits from what is computed"),
    ],
)
def test_where_it_may_be_there_all_the_same_nothing_is_said(text: str, name: str, why: str) -> None:
    found = defined(text, name)
    assert found.line is None and found.unclear == why


@EVERYWHERE
@pytest.mark.parametrize(
    ("check", "outcome", "summary"),
    [
        ({"name": "Model.head"}, "fine", "model.py defines Model.head"),
        ({"name": "Model.capture"}, "fails", "model.py has no Model.capture"),
        ({"name": "Model.capture", "otherwise": "no-effect"}, "no-effect", "model.py has no Model.capture"),
        ({"name": "Model.capture", "there": False}, "fine", "model.py has no Model.capture"),
        ({"name": "Model.head", "there": False}, "fails", "model.py defines Model.head"),
        (
            {"name": "Stranger.capture"},
            "unknown",
            "whether model.py has Stranger.capture cannot be read: it inherits from Elsewhere",
        ),
        ({"name": "Moved.capture"}, "unknown", "model.py has no class Moved"),
    ],
)
async def test_the_source_on_the_target_decides(
    bench: Bench, write: Callable[[str, str], str], check: dict[str, Any], outcome: str, summary: str
) -> None:
    write("model.py", MODEL)
    _, finding = await bench.run({"source-name": {"in": "sglang:model.py", **check}})
    assert (finding.outcome, finding.summary) == (outcome, summary)


async def test_the_line_that_decides_is_evidence(bench: Bench, write: Callable[[str, str], str]) -> None:
    write("model.py", MODEL)
    for name, line in (("Model.head", 10), ("Model.capture", 6)):
        _, finding = await bench.run({"source-name": {"in": "sglang:model.py", "name": name}})
        assert [(quote.path, quote.line) for quote in finding.quotes] == [("sglang:model.py", line)]


@pytest.mark.parametrize("text", ["def (", None])
async def test_what_cannot_be_read_rules_nothing_out(
    bench: Bench, write: Callable[[str, str], str], text: str | None
) -> None:
    if text is not None:
        write("model.py", text)
    _, finding = await bench.run({"source-name": {"in": "sglang:model.py", "name": "head"}})
    assert finding.outcome == "unknown"
