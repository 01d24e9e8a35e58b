"""A launch's log on disk as lines that can be drawn: the file is the store, a line is the offset of its first byte."""

import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from agent.text import LINE_LIMIT, decode

BLOCK = 256 * 1024
"""Bytes that are read at once; a longer unfinished line is taken in parts."""

_READ = 4 * LINE_LIMIT
_SEGMENT = re.compile(rb"[^\r\n]+")
_BREAK = re.compile(rb"[\r\n]")
# A bar redrawn without a line end runs into the next log line; agent.watch.lines cuts there too.
_STAMP = re.compile(rb"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")


class LogFile:
    """The lines of a growing file, at eight bytes a line.

    Lines end at newlines, at carriage returns and before glued time stamps. Empty ones are dropped, and of a bar that
    redraws itself only the last state is a line. A file that was truncated or replaced is begun again, as is one of
    which less counts than before.
    """

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        """`path` need not exist yet. `redact` takes the secrets out of each line that is drawn."""
        self.path = path
        self.limit: int | None = None
        """Bytes of the file that count, from the first; all where None. It may change at any time."""
        self.generation = 0
        self._redact = redact
        self._fd = -1
        self._size = 0
        self._starts = array("Q")
        self._at = 0  # the offset after the last line end
        self._read_to = 0
        self._fresh, self._inside = True, False
        self._forget()

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def settled(self) -> int:
        """How many lines, from the first, can change no more: the last may still grow or be drawn again."""
        return self._kept if self._fresh_kept and not self._inside_kept else max(0, self._kept - 1)

    @property
    def behind(self) -> int:
        """Bytes of the file that were not looked at yet."""
        return self._size - self._read_to

    @property
    def size(self) -> int:
        """Bytes of the file when it was last looked at."""
        return self._size

    def close(self) -> None:
        """Let go of the file. The next `advance` opens it again, and begins it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def advance(self) -> bool:
        """Look at up to BLOCK new bytes; whether the lines may have changed."""
        began = self._reopen()
        if self._fd < 0:
            return began
        self._size = os.fstat(self._fd).st_size
        if self.limit is not None:
            self._size = min(self._size, self.limit)
        if self._size < self._read_to:
            self._forget()
            began = True
        if self._size == self._read_to:
            return began
        self._undo_unfinished()
        data = os.pread(self._fd, min(BLOCK, self._size - self._at), self._at)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) >= BLOCK:
            end = len(data)
        self._take(data[:end], self._at)
        self._at += end
        self._settle()
        self._take(data[end:], self._at)
        self._read_to = self._at + len(data) - end
        return True

    def line(self, index: int) -> str:
        """A line as it may be drawn: cleaned, redacted, and cut after LINE_LIMIT characters."""
        start, stop = self.start(index), self._stop(index)
        data = os.pread(self._fd, min(stop - start, 2 * _READ), start)
        if found := _BREAK.search(data):
            data = data[: found.start()]
        # A secret that the cut would split is whole before it: what is redacted is longer than what is kept.
        text = self._redact(decode(data, 2 * LINE_LIMIT))
        goes_on = not found and stop - start > len(data)
        if len(text) > LINE_LIMIT or goes_on:
            return f"{text[:LINE_LIMIT]}… (the line goes on)"
        return text

    def start(self, index: int) -> int:
        """The offset of a line's first byte."""
        return int(self._starts[index])

    def index_at(self, offset: int) -> int:
        """The line that the byte at this offset belongs to; -1 before the first."""
        return bisect_right(self._starts, offset) - 1

    def block(self, first: int, end: int) -> tuple[bytes, int]:
        """The bytes of some lines from `first` on, about BLOCK of them, and the line after them: `end` at the most."""
        start = self.start(first)
        last = min(end, max(first + 1, self.index_at(start + BLOCK)))
        return os.pread(self._fd, min(self._stop(last - 1) - start, 2 * BLOCK), start), last

    def index_of(self, number: int) -> int | None:
        """The line that stands on line `number` of the file (counted from one by newlines), as evidence names it."""
        offset, missing = 0, number - 1
        while missing > 0:
            data = os.pread(self._fd, BLOCK, offset) if self._fd >= 0 else b""
            if not data:
                return None
            if (there := data.count(b"\n")) < missing:
                missing, offset = missing - there, offset + len(data)
                continue
            at = -1
            for _ in range(missing):
                at = data.index(b"\n", at + 1)
            offset, missing = offset + at + 1, 0
        index = bisect_right(self._starts, offset - 1)
        return index if index < len(self) else None

    def _stop(self, index: int) -> int:
        return self.start(index + 1) if index + 1 < len(self._starts) else self._read_to

    def _reopen(self) -> bool:
        """Open the file if it can be read, and another that took its place; whether one is begun."""
        try:
            if self._fd >= 0 and os.path.samestat(self.path.stat(), os.fstat(self._fd)):
                return False
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        self.close()
        self._fd = fd
        self._forget()
        return True

    def _forget(self) -> None:
        self.generation += 1
        self._starts = array("Q")
        self._at = self._read_to = 0
        self._fresh, self._inside = True, False
        self._settle()

    def _settle(self) -> None:
        """Remember the lines up to the last line end; what follows it is read again next time."""
        self._kept = len(self._starts)
        self._last_kept = self._starts[-1] if self._starts else 0
        self._fresh_kept, self._inside_kept = self._fresh, self._inside

    def _undo_unfinished(self) -> None:
        del self._starts[self._kept :]
        if self._kept:
            self._starts[-1] = self._last_kept
        self._fresh, self._inside = self._fresh_kept, self._inside_kept

    def _take(self, data: bytes, base: int) -> None:
        """Index the segments of `data`, which stands at offset `base`.

        `_fresh` says that the next segment is a line of its own, and does not redraw the one before; `_inside` that
        the data so far ended within a segment.
        """
        if not data:
            return
        glued = data.count(b"[20") > data.count(b"\n[20") + data.startswith(b"[20")
        if glued or b"\r" in data or self._inside or not self._fresh:
            self._take_carefully(data, base)
        else:
            for row in data.split(b"\n"):
                if row:
                    self._starts.append(base)
                base += len(row) + 1
            self._fresh = data[-1] == 10
            self._inside = not self._fresh

    def _take_carefully(self, data: bytes, base: int) -> None:
        end = 0
        for match in _SEGMENT.finditer(data):
            start, stop = match.span()
            if not (start == 0 and self._inside):
                if self._fresh or data.find(b"\n", end, start) >= 0:
                    self._starts.append(base + start)
                else:
                    self._starts[-1] = base + start
            self._fresh, self._inside, end = False, False, stop
            for stamp in _STAMP.finditer(data, start + 1, stop):
                self._starts.append(base + stamp.start())
                self._fresh = True  # a bar that is drawn after it does not take its place
        self._fresh = self._fresh or data.find(b"\n", end) >= 0
        self._inside = end == len(data)
