"""Sentences of an LLM's answer, and quotes that stand where it says, or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.model import Quote
from agent.research.answers import find_quote, sentences

ARGS = "sglang:srt/server_args.py"
SEEN = {
    ARGS: {
        13: '        if self.moe_a2a_backend == "flashinfer":',
        14: "            self.ep_size  =\tself.tp_size",
        15: "",
        16: "            assert self.moe_runner_backend in [",
        20: "            self.disable_overlap_schedule = True",
    },
    "flashinfer:jit/comm.py": {61: "    return flags(supported_major_versions=[9, 10])"},
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
    ("path", "line", "quote", "stands_on"),
    [
        (ARGS, 13, 'if self.moe_a2a_backend == "flashinfer":', 13),
        ("srt/server_args.py", 13, 'if self.moe_a2a_backend == "flashinfer":', 13),
        ("server_args.py", 16, 'if self.moe_a2a_backend == "flashinfer":', 13),  # three lines off
        (ARGS, 17, 'if self.moe_a2a_backend == "flashinfer":', None),  # four lines off
        (ARGS, 10, 'if self.moe_a2a_backend == "flashinfer":', 13),
        (ARGS, 9, 'if self.moe_a2a_backend == "flashinfer":', None),
        (ARGS, 14, "self.ep_size = self.tp_size", 14),  # white space is one space
        (ARGS, 14, 'self.moe_a2a_backend == "flashinfer":\n   self.ep_size = self.tp_size\n\n assert self.moe', 13),
        (ARGS, 17, "moe_runner_backend in [ self.disable_overlap", None),  # across lines that nobody saw
        (ARGS, 14, "self.ep_size = 8 * self.tp_size", None),
        (ARGS, 14, "self.ep_size", None),  # too short
        (ARGS, 14, "SELF.EP_SIZE = SELF.TP_SIZE", None),
        ("args.py", 14, "self.ep_size = self.tp_size", None),  # no such file
        ("other:srt/server_args.py", 14, "self.ep_size = self.tp_size", None),
        ("comm.py", 61, "flags(supported_major_versions=[9, 10])", 61),
        (ARGS, -5, "self.ep_size = self.tp_size", None),
        (ARGS, 10**30, "self.ep_size = self.tp_size", None),
    ],
)
def test_quotes(path: str, line: int, quote: str, stands_on: int | None) -> None:
    found = find_quote(path, line, quote, SEEN)
    assert (found.line if found else None) == stands_on


def test_a_found_quote_is_the_line_that_was_read() -> None:
    found = find_quote("comm.py", 60, "supported_major_versions=[9, 10]", SEEN)
    assert found == Quote(path="flashinfer:jit/comm.py", line=61, text=SEEN["flashinfer:jit/comm.py"][61])


@given(st.text(), st.integers(), st.text())
def test_nothing_raises(text: str, line: int, path: str) -> None:
    assert all(sentences(text))
    find_quote(path, line, text, SEEN)
