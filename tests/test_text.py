"""Text from outside is cleaned: nothing of it reaches a terminal as a control, nothing of it is forged."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.text import LINE_LIMIT, clean, decode, one_line

NASTY = st.sampled_from(
    ["\x1b[2J", "\x1b]0;title\x07", "\x9b1m", "\x1bP", "\u202e", "\u200b", "\r", "\x07", "é", "▊", "\n"]
)


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("plain", "plain"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b[1;33mwarn\x1b[0m", "warn"),
        ("\x1b]0;owned\x07a\x1b]8;;http://x\x1b\\link", "alink"),
        ("\x1b(Ba", "a"),
        ("a\x1b", "a"),
        ("bell\x07 back\x08 del\x7f c1\x85", "bell back del c1"),
        ("\u202egnp.exe", "⟨U+202E⟩gnp.exe"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("a\u2028b", "a⟨U+2028⟩b"),
        ("\ud800", "⟨U+D800⟩"),
        (" 50%|█████▊ | é 日本", " 50%|█████▊ | é 日本"),
    ],
)
def test_clean(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


@settings(deadline=None)
@given(st.lists(NASTY | st.text(max_size=5), max_size=20).map("".join))
def test_nothing_that_controls_or_hides_is_left(text: str) -> None:
    for char in clean(text):
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert "\n" not in one_line(text)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_can_be_decoded(data: bytes) -> None:
    decode(data).encode()


def test_long_text_is_cut_and_says_so() -> None:
    assert clean("x" * (LINE_LIMIT + 7)) == "x" * LINE_LIMIT + "… (7 more characters)"
    assert clean("x" * LINE_LIMIT) == "x" * LINE_LIMIT
    assert decode(b"x" * 100, 10).startswith("x" * 10 + "… (")
    assert one_line(" a \n\t b\r\n") == "a b"
