"""Problems of a playbook file, printed the way a good compiler prints them."""

import difflib
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from agent.text import clean, one_line

Path = tuple[str | int, ...]

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_EXCERPT_WIDTH = 100
_MOST_GUESSES = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, both from 1; `width` characters are underlined."""

    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a playbook file. `str()` of it is the text to print: two or three lines."""

    file: str
    line: int
    column: int
    key_path: str
    message: str
    hint: str | None
    excerpt: str

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        excerpt = f"\n{self.excerpt}" if self.excerpt else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message}{hint}{excerpt}"


def shown(text: str) -> str:
    """A word of the file in quotes, short and without anything that a terminal would act on."""
    return f"'{one_line(text, 80)}'"


def dotted(path: Path) -> str:
    """`experiments[2].args.tp` for the path to a value; empty for the whole file."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{one_line(part, 80)}" for part in path]
    return "".join(parts).removeprefix(".")


def within(path: Path) -> str:
    """` in workloads[0]`, or nothing for the top of the file."""
    return f" in {dotted(path)}" if path else ""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant."""
    if not 0 < len(word) <= 64:
        return None
    word = word.lower()
    if close := difflib.get_close_matches(word, known, n=1):
        return close[0]
    # `tp` for tensor-parallel-size
    initials = {name: "".join(part[:1] for part in re.split("[-_]", name)) for name in known}
    return next((name for name in known if len(word) > 1 and initials[name].startswith(word)), None)


class Report:
    """Collects the problems of one file."""

    def __init__(self, file: str, text: str) -> None:
        self._file = one_line(file)
        self._lines = _LINE_BREAK.split(text)
        self._problems: list[Problem] = []
        self._guesses = 0

    @property
    def count(self) -> int:
        """How many problems there are so far."""
        return len(self._problems)

    def add(self, place: Place, path: Path, message: str, *, hint: str | None = None) -> None:
        """Note a problem at a place; `path` leads to the value it is about."""
        problem = Problem(
            file=self._file,
            line=place.line,
            column=place.column,
            key_path=dotted(path),
            message=message,
            hint=hint,
            excerpt=self._excerpt(place),
        )
        self._problems.append(problem)

    def guess(self, word: str, known: Collection[str]) -> str | None:
        """`did you mean 'x'?`, or the known names themselves where they are few."""
        self._guesses += 1  # comparing names is slow; nobody reads the thousandth guess
        if self._guesses <= _MOST_GUESSES and (name := nearest(word, known)):
            return f"did you mean {shown(name)}?"
        return f"known here: {', '.join(known)}" if 0 < len(known) <= 25 else None

    def sorted(self) -> list[Problem]:
        """All problems in the order of the file, each once."""
        return sorted(dict.fromkeys(self._problems), key=lambda problem: (problem.line, problem.column))

    def _excerpt(self, place: Place) -> str:
        if place.line > len(self._lines) or not self._lines[place.line - 1].strip():
            return ""
        line = self._lines[place.line - 1].replace("\t", " ")
        at = place.column - 1
        start = max(0, at - _EXCERPT_WIDTH * 2 // 3) if len(line) > _EXCERPT_WIDTH else 0
        left = ("…" if start else "") + clean(line[start:at])
        marked = clean(line[at : min(at + place.width, start + _EXCERPT_WIDTH)])
        right = clean(line[at + place.width : start + _EXCERPT_WIDTH])
        more = "…" if len(line) > start + _EXCERPT_WIDTH else ""
        caret = " " * _cells(left) + "^" * max(1, _cells(marked))
        return f"{place.line:5} | {left}{marked}{right}{more}\n      | {caret}"


def _cells(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") - bool(unicodedata.combining(char)) for char in text)
