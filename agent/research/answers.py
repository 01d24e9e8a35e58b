"""An LLM's answer: its first sentence, and which of its citations stand on lines that were really shown to it. Pure."""

import re
from collections.abc import Mapping

from agent.core.model import Quote

ANSWER_PATH = "answer"
"""The path of the quotes that are the LLM's own words, one a sentence or line."""

_CITATION = re.compile(r"(?<![\w./+:-])((?:[\w+.-]+:)?[\w./+-]+\.\w+):(\d{1,7})(?:\s?[-–]\s?(\d{1,7}))?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'`*]*\s+(?=[A-Z0-9`\"'(*])|\s*\n\s*")
_NOT_AN_END = ("e.g.", "i.e.", "vs.", "cf.", "approx.")
_MAX_CITED = 20
_MAX_SPAN = 400


def sentences(answer: str) -> list[str]:
    """The sentences of a text; a line break ends one too."""
    found: list[str] = []
    begin = 0
    for match in _SENTENCE_END.finditer(answer):
        if "\n" not in match[0] and answer[begin : match.start()].lower().endswith(_NOT_AN_END):
            continue
        found.append(answer[begin : match.end()].strip())
        begin = match.end()
    found.append(answer[begin:].strip())
    return [text for text in found if text]


def cited(answer: str, seen: Mapping[tuple[str, int], str]) -> tuple[Quote, ...]:
    """The lines that the answer cites as `file:line` and that are in `seen`; others are left out.

    A file may be cited by the end of its path. Of a range, the first line that was seen stands for it.
    """
    found: dict[tuple[str, int], str] = {}
    for match in _CITATION.finditer(answer):
        first = int(match[2])
        last = min(int(match[3] or first), first + _MAX_SPAN)
        paths = {path for path, _ in seen if path == match[1] or path.replace(":", "/").endswith(f"/{match[1]}")}
        for path in sorted(paths):
            line = next((number for number in range(first, last + 1) if (path, number) in seen), None)
            if line is not None:
                found[path, line] = seen[path, line]
    return tuple(Quote(path=path, line=line, text=text) for (path, line), text in list(found.items())[:_MAX_CITED])
