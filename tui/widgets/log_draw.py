"""One line of a log as strips: its prefix quiet, errors and warnings tinted, matches of a search marked."""

import re
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agent.logscan import written

_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent|^\W*(?:\w+\.)*\w*(?:Error|Exception)\b(?=:|$)"
    r"|Fatal Python error|Segmentation fault|Aborted"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\w*Warning:")
_DATE = re.compile(r"^\[20\d\d-\d\d-\d\d (?=\d\d:\d\d:\d\d)")

NARROW = 90
"""Cells below which the date in front of a line that is cut is left out: the time is enough."""


@dataclass(frozen=True, slots=True)
class LogStyles:
    """The styles of a line's parts, from the theme."""

    text: Style
    prefix: Style
    error: Style
    warning: Style
    match: Style


def draw_line(text: str, width: int, wrap: bool, styles: LogStyles, needle: str = "") -> list[Strip]:
    """The rows of a line: all of them where it is wrapped, else one that ends in … where it is too long."""
    text = text.expandtabs(8)
    if width < NARROW and not wrap:
        text = _DATE.sub("[", text, count=1)
    message, body = _parts(text, styles)
    if not wrap:
        # No more than `width` cells are drawn, so no more than `width` characters (and what a match began) matter.
        text = text[: width + len(needle) + 1]
    marks = _marked(text, [(0, styles.prefix), (message, body)] if message else [(0, body)], styles.match, needle)
    if not wrap and cell_len(text) > width:
        row = set_cell_size(text, width - 1).rstrip()
        segments = [*_cut(row, 0, marks, text), Segment("…", styles.prefix)]
        return [Strip(segments, cell_len(row) + 1).adjust_cell_length(width, styles.text)]
    rows, at = [], 0
    for row in chop_cells(text, width) or [""]:
        rows.append(Strip(_cut(row, at, marks, text), cell_len(row)).adjust_cell_length(width, styles.text))
        at += len(row)
    return rows


def _parts(text: str, styles: LogStyles) -> tuple[int, Style]:
    """Where the message begins, after the prefix, and its style."""
    body = written(text).message
    message = len(text) - len(body)
    if _ERROR.search(body) or (message and _ERROR.search(text[:message])):
        return message, styles.error
    return message, styles.warning if _WARNING.search(text) else styles.text


def _marked(text: str, marks: list[tuple[int, Style]], match: Style, needle: str) -> list[tuple[int, Style]]:
    """`marks`, each a style and where it begins (the first at 0), with `match` laid over each match."""
    if not needle:
        return marks
    for found in re.finditer(re.escape(needle), text, re.IGNORECASE):
        after = next(style for at, style in reversed(marks) if at <= found.end())
        marks = [mark for mark in marks if not found.start() <= mark[0] <= found.end()]
        marks = sorted([*marks, (found.start(), match), (found.end(), after)], key=lambda mark: mark[0])
    return marks


def _cut(row: str, at: int, marks: list[tuple[int, Style]], text: str) -> list[Segment]:
    """The characters of `row`, which begins at `at` of the line, in their styles."""
    ends = [*(start for start, _ in marks[1:]), len(text)]
    segments = []
    for (start, style), end in zip(marks, ends, strict=True):
        part = row[max(0, start - at) : max(0, end - at)]
        if part:
            segments.append(Segment(part, style))
    return segments
