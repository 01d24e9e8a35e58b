"""Log bytes as they arrive, cut into cleaned lines: any chunking gives the same lines, in constant memory."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.text import decode

LINE_KEPT = 16 * 1024
"""Bytes of one line that are kept; the rest is counted."""

_BREAK = re.compile(rb"[\r\n]")
# A bar redrawn without a line end runs into the next log line: `0/8 [00:00<?, ?it/s][2026-11-29 23:26:21 TP1] Load ...`
_GLUED = re.compile(rb"(?<=[^\r\n])(?=\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)")


class Line(NamedTuple):
    """One segment of a log: `number` is its line in the file (counted by newlines), `text` is cleaned."""

    number: int
    text: str


class LineSplitter:
    """Cuts a byte stream at newlines, carriage returns and glued time stamps. Empty segments are dropped.

    With `wanted` only rows in which that pattern occurs (and none of the words of `routine`) are cleaned and given out,
    which is what makes a flood of routine lines cheap; while `eager` is set all of them are.
    """

    def __init__(self, wanted: re.Pattern[bytes] | None = None, routine: Sequence[bytes] = ()) -> None:
        self._wanted = wanted
        self._routine = tuple(routine)
        self._number = 1
        self._held = b""
        self._more = 0
        self.eager = wanted is None

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that these bytes complete. The caller may set `eager` between two of them."""
        start = 0
        if self._held:
            found = _BREAK.search(data)
            if found is None:
                self._hold(data)
                return
            self._hold(data[: found.start()])
            start = found.start()
            yield from self._finish()
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        yield from self._between(data, start, end)
        self._hold(data[max(start, end) :])

    def end(self) -> Iterator[Line]:
        """The unfinished last line, at the end of the log."""
        yield from self._finish()

    def peek(self) -> str:
        """The text of the unfinished last line: since SGLang 0.5.10 a bar ends only when the next one is drawn."""
        return decode(self._held, LINE_KEPT) if self._held else ""

    def _between(self, data: bytes, start: int, end: int) -> Iterator[Line]:
        """The segments of data[start:end], which ends with a break."""
        if start >= end:
            return
        rows = data[start:end].split(b"\n")
        last = rows.pop()
        for row in rows:
            if self._matters(row):
                yield from self._segments(row)
            self._number += 1
        if last and self._matters(last):
            yield from self._segments(last)

    def _matters(self, row: bytes) -> bool:
        """Whether a row may be wanted. The order of the tests is that of their price: this sees every line."""
        if self.eager or self._wanted is None:
            return bool(row)
        for word in self._routine:
            if word in row and row.find(b"[20", 1) == -1:
                return False
        return self._wanted.search(row) is not None

    def _segments(self, row: bytes) -> Iterator[Line]:
        for segment in row.split(b"\r") if b"\r" in row else (row,):
            if segment:
                yield from self._clean(segment, 0)

    def _hold(self, segment: bytes) -> None:
        room = LINE_KEPT - len(self._held)
        self._held += segment[:room]
        self._more += max(0, len(segment) - room)

    def _finish(self) -> Iterator[Line]:
        segment, more = self._held, self._more
        self._held, self._more = b"", 0
        if self._matters(segment):
            yield from self._clean(segment, more)

    def _clean(self, segment: bytes, more: int) -> Iterator[Line]:
        if len(segment) > LINE_KEPT:
            more += len(segment) - LINE_KEPT
            segment = segment[:LINE_KEPT]
        pieces = _GLUED.split(segment) if segment.find(b"[20", 1) != -1 else [segment]
        for index, piece in enumerate(pieces):
            text = decode(piece, LINE_KEPT)
            if more and index == len(pieces) - 1:
                text += f"… ({more} more bytes)"
            if text:
                yield Line(self._number, text)
