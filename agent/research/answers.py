"""An LLM's answer: its first sentence, and whether what it quotes stands where it says. Pure."""

import re
from collections.abc import Iterator, Mapping

from agent.core.model import Quote

SHORTEST_QUOTE = 20
"""Characters that a quote must have: a shorter one stands anywhere."""

NEAR = 3
"""Lines by which a quote may be off."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'`*]*\s+(?=[A-Z0-9`\"'(*])|\s*\n\s*")
_NOT_AN_END = ("e.g.", "i.e.", "vs.", "cf.", "approx.")

Seen = Mapping[str, Mapping[int, str]]
"""The lines that tools returned: path, number, text."""


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


def find_quote(path: str, line: int, quote: str, seen: Seen) -> Quote | None:
    """The line on which a quote begins, if it stands within NEAR lines of the cited one in what was seen.

    Runs of white space, line ends among them, count as one space; all else must be equal. A quote over several lines
    must stand on lines that follow each other, all of them near. The path may be cited by its end.
    """
    wanted = " ".join(quote.split())
    if len(wanted) < SHORTEST_QUOTE:
        return None
    for label in _paths(path, seen):
        for run in _runs(seen[label], line):
            text, starts = "", []
            for number in run:
                starts.append((len(text), number))
                text += "".join(f"{word} " for word in seen[label][number].split())
            if (at := text.find(wanted)) >= 0:
                number = max(number for start, number in starts if start <= at)
                return Quote(path=label, line=number, text=seen[label][number])
    return None


def _paths(path: str, seen: Seen) -> list[str]:
    return sorted(each for each in seen if each == path or each.replace(":", "/").endswith(f"/{path}"))


def _runs(lines: Mapping[int, str], line: int) -> Iterator[list[int]]:
    """The lines around one that were seen, as runs without a gap."""
    run: list[int] = []
    for number in range(line - NEAR, line + NEAR + 2):
        if number in lines and number <= line + NEAR:
            run.append(number)
        elif run:
            yield run
            run = []
