"""Sentences and citations of an LLM's answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.model import Quote
from agent.research.answers import cited, sentences

SEEN = {
    ("sglang:srt/server_args.py", 14): "if self.moe_a2a_backend",
    ("sglang:srt/server_args.py", 17): "assert",
    ("flashinfer:jit/comm.py", 61): "majors",
}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Yes. It can.", "Yes."),
        ("Use flashinfer (server_args.py:14). Then more.", "Use flashinfer (server_args.py:14)."),
        ("It needs e.g. Triton here. More.", "It needs e.g. Triton here."),
        ("One line\nanother", "One line"),
        ("no end", "no end"),
    ],
)
def test_the_first_sentence(text: str, first: str) -> None:
    assert sentences(text)[0] == first


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("see sglang:srt/server_args.py:14", [14]),
        ("see (`srt/server_args.py:14`).", [14]),
        ("server_args.py:14-20 and comm.py:61", [14, 61]),
        ("server_args.py:15-20", [17]),
        ("server_args.py:99, other.py:14, args.py:14, server_args.py:15", []),  # never shown, or no such file
        ("server_args.py:1-9999999", [14]),
        ("server_args.py:99999999999999999999", []),
    ],
)
def test_citations(answer: str, lines: list[int]) -> None:
    assert [quote.line for quote in cited(answer, SEEN)] == lines


def test_a_citation_carries_the_text_that_was_read() -> None:
    assert cited("comm.py:61", SEEN) == (Quote(path="flashinfer:jit/comm.py", line=61, text="majors"),)


@given(st.text())
def test_no_answer_raises(answer: str) -> None:
    assert all(sentences(answer))
    cited(answer, SEEN)
