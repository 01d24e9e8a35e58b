"""The one place where text from outside is cleaned: logs, files, hosts, LLMs and journals all enter through here."""

import re
import unicodedata

LINE_LIMIT = 4000
"""Characters of a line that are kept; a mark says how many were cut."""

_ESCAPES = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]?                  # CSI
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d\x9e\x9f] ) .*? (?: \x07 | \x1b\\ | \x9c | $ )   # OSC, DCS, SOS, PM, APC
    | \x1b [ -/]* [0-~]?                                      # any other escape
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MAYBE_FORMAT = re.compile(r"[^\x00-\xac\xae-\u02ff]")


def _show_format(match: re.Match[str]) -> str:
    char = match[0]
    # Bidirectional and zero-width characters (Cf), lone surrogates (Cs) and line separators can forge what is read.
    if unicodedata.category(char) in ("Cf", "Cs", "Zl", "Zp"):
        return f"⟨U+{ord(char):04X}⟩"
    return char


def clean(text: str, limit: int = LINE_LIMIT) -> str:
    """Text without terminal escapes and control characters (newline and tab stay), at most `limit` characters long.

    Invisible format characters become visible as `⟨U+202E⟩`.
    """
    cut = len(text) - limit
    if cut > 0:
        text = text[:limit]
    elif text.isascii() and text.isprintable():
        return text
    if "\x1b" in text or not text.isascii():
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("", text)
    if not text.isascii():
        text = _MAYBE_FORMAT.sub(_show_format, text)
    return f"{text}… ({cut} more characters)" if cut > 0 else text


def decode(data: bytes, limit: int = LINE_LIMIT) -> str:
    """Cleaned text of bytes that should be UTF-8; what is not becomes U+FFFD. Only the needed part is decoded."""
    text = clean(data[: 4 * limit].decode("utf-8", "replace"), limit)
    cut = len(data) - 4 * limit
    return f"{text}… ({cut} more bytes)" if cut > 0 else text


def one_line(text: str, limit: int = 200) -> str:
    """Cleaned text on one line: runs of white space become one space."""
    return clean(" ".join(text.split()), limit)
