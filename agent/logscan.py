"""Which lines of a growing log pass a test: found block by block, remembered at eight bytes a line."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator

from agent.logfile import LogFile
from agent.text import decode
from agent.watch.records import Record, record

PREFIX = 200
"""Bytes at the start of a line that tell who wrote it."""

# SGLang's prefix. Without its time it is one of a few, so that each is taken apart once.
_TIMED = re.compile(rb"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?P<writer>(?: [A-Z_]+\d+)*)\] ")


def written(text: str) -> Record:
    """Who wrote a line (`rank`), and where its own text begins (`message`)."""
    return record(0, text)


class Selection:
    """Lines of a log in their order. Subclasses say which."""

    def __init__(self, log: LogFile) -> None:
        """Empty until `advance` is called."""
        self.log = log
        self._generation = log.generation
        self._kept = array("Q")
        self._unsettled: list[int] = []
        self._done = self._tested = 0
        self._memory: int | None = None  # what a test has to know of the lines before a block

    def __len__(self) -> int:
        return len(self._kept) + len(self._unsettled)

    def __getitem__(self, place: int) -> int:
        """The line at this place of the selection."""
        kept = len(self._kept)
        return self._kept[place] if place < kept else self._unsettled[place - kept]

    def __contains__(self, line: int | None) -> bool:
        if line is None:
            return False
        place = self.place_of(line)
        return place < len(self) and self[place] == line

    @property
    def done(self) -> int:
        """How many lines of the log, from the first, were tested for good."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether every line that the log has now was tested."""
        return self._generation == self.log.generation and self._tested == len(self.log)

    def place_of(self, line: int) -> int:
        """The place of the first selected line that is not before `line`."""
        place = bisect_left(self._kept, line)
        return place if place < len(self._kept) else place + bisect_left(self._unsettled, line)

    def advance(self) -> bool:
        """Test one more block of lines; whether there was anything to do."""
        if self._generation != self.log.generation:
            self._begin()
        settled, end = self._ends()
        if self._done < settled:
            data, last = self.log.block(self._done, settled)
            self._kept.extend(self._test(data, self._done, last))
            self._unsettled = []
            self._done = self._tested = last
            return True
        if self._done == end and self._tested == end:
            return False
        # The last lines may still change: they are tested again until they are settled.
        self._unsettled = []
        if self._done < end:
            memory = self._memory
            data, last = self.log.block(self._done, end)
            self._unsettled = list(self._test(data, self._done, last))
            self._memory = memory
        changed = self._tested != end
        self._tested = end
        return changed

    def _begin(self) -> None:
        self._generation = self.log.generation
        self._kept = array("Q")
        self._unsettled = []
        self._done = self._tested = 0
        self._memory = None

    def _ends(self) -> tuple[int, int]:
        """The lines that can be tested for good, and those that can be tested at all."""
        return self.log.settled, len(self.log)

    def _test(self, data: bytes, first: int, end: int) -> Iterator[int]:
        """Those of the lines from `first` to before `end`, whose bytes are `data`, that are selected."""
        raise NotImplementedError


class RankLines(Selection):
    """What one rank wrote. A line without a prefix belongs to the writer of the line above it."""

    def __init__(self, log: LogFile, rank: int) -> None:
        super().__init__(log)
        self.rank = rank
        self._ranks: dict[bytes, int | None] = {}

    def _test(self, data: bytes, first: int, end: int) -> Iterator[int]:
        base = self.log.start(first)
        for line in range(first, end):
            self._memory = self._writer(data, self.log.start(line) - base)
            if self._memory == self.rank:
                yield line

    def _writer(self, data: bytes, start: int) -> int | None:
        """The rank of the line that begins at `start`; that of the line before it where it does not say."""
        if timed := _TIMED.match(data, start):
            writer = timed["writer"]
            if writer not in self._ranks:
                self._ranks[writer] = written(timed[0].decode()).rank
            return self._ranks[writer]
        head = data[start : start + PREFIX].split(b"\n", 1)[0]
        found = written(decode(head))
        return found.rank if found.prefixed else self._memory


class Matches(Selection):
    """The lines that hold a text, in either case of ASCII letters; of another selection where one is given."""

    def __init__(self, log: LogFile, needle: str, within: Selection | None = None) -> None:
        super().__init__(log)
        self.needle = needle
        self._bytes = needle.encode("utf-8", "surrogateescape").lower()
        self._within = within

    def _ends(self) -> tuple[int, int]:
        settled, end = super()._ends()
        if self._within is None or self._within.complete:
            return settled, end
        return self._within.done, self._within.done

    def _test(self, data: bytes, first: int, end: int) -> Iterator[int]:
        base = self.log.start(first)
        data = data.lower()
        at = data.find(self._bytes)
        while at >= 0:
            line = self.log.index_at(base + at)
            start = max(0, self.log.start(line) - base)
            # What stands behind a line's end and before the next line was drawn over: a former state of a bar.
            shown = data.find(b"\n", start, at) < 0 and data.find(b"\r", start, at) < 0
            if shown and (self._within is None or line in self._within):
                yield line
            if line + 1 >= end:
                return
            at = data.find(self._bytes, self.log.start(line + 1) - base if shown else at + 1)
