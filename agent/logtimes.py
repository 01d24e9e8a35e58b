"""What of a launch's log was printed by a moment, as the time stamps of its lines tell: they count whole seconds."""

import calendar
import os
import re
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 16 * 1024
# A date (vLLM leaves the year out) and a time near the beginning of a line, or glued to a bar that has no line end.
_STAMP = re.compile(
    rb"(?:^[^\n]{0,80}?|\[)(?<!\d)(?:(20\d\d)-)?(0[1-9]|1[0-2])-([0-3]\d)[ T]([0-2]\d):([0-5]\d):([0-6]\d)", re.M
)
_LONGEST_STAMP, _LONGEST_LINE = 128, 64 * 1024
_LINE_END = re.compile(rb"[\r\n]")
_ZONE_STEP_S, _WIDEST_ZONE_S = 900, 15 * 3600


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of a log that is shown: its first `until` bytes, all where None. `told` is what to say of that."""

    until: int | None = None
    told: str = ""


WHOLE = Shown()


class LogTimes:
    """A log whose clock is that of its host, in whichever time zone."""

    def __init__(self, path: Path, started_at: float) -> None:
        """`started_at` (seconds since the epoch) is when its launch was asked for: its first line came soon after."""
        self._path, self._started_at = path, started_at
        self._zone_s: int | None = None

    def until(self, moment: float) -> int | None:
        """The bytes printed by a moment (seconds since the epoch); None where no line has a date, or none is there.

        Lines without a time, between two that have one, are taken to have come evenly; those at the end at once.
        """
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return self._until(fd, os.fstat(fd).st_size, moment)
        finally:
            os.close(fd)

    def _until(self, fd: int, size: int, moment: float) -> int | None:
        if self._zone_s is None:
            self._zone_s = self._find_zone(fd, size)
        if self._zone_s is None:
            return None
        limit = moment + self._zone_s

        def later(block: int) -> bool:
            return next(self._stamps(fd, block * _BLOCK, size), (size, limit + 1))[1] > limit

        block = bisect_left(range(-(-size // _BLOCK)), True, key=later)
        before: tuple[int, float] | None = None
        for at, printed in self._stamps(fd, max(0, block - 1) * _BLOCK, size):
            if printed > limit:
                return at if before is None else _between(fd, before, (at, printed), limit)
            before = at, printed
        return size

    def _find_zone(self, fd: int, size: int) -> int | None:
        """By how many seconds the log's clock is ahead of UTC: a whole number of quarters of an hour."""
        first = next(self._stamps(fd, 0, size), None)
        if first is None:
            return None
        zone_s = round((first[1] - self._started_at) / _ZONE_STEP_S) * _ZONE_STEP_S
        return zone_s if abs(zone_s) <= _WIDEST_ZONE_S else None

    def _stamps(self, fd: int, start: int, size: int) -> Iterator[tuple[int, float]]:
        """The lines with a time that begin at `start` or later: the offset and the seconds of each."""
        while start < size:
            # With the byte before it, which tells whether a line begins at the block's first one.
            base = max(0, start - 1)
            data = os.pread(fd, _BLOCK + _LONGEST_STAMP, base)
            start += _BLOCK
            for found in _STAMP.finditer(data, min(base, 1)):
                if base + found.start() < start:
                    yield base + found.start(), self._seconds(found)

    def _seconds(self, found: re.Match[bytes]) -> float:
        """Seconds since the epoch, if the clock were UTC. The year of one without is that nearest to the launch."""
        rest = [int(part) for part in found.groups()[1:]]
        this = time.gmtime(self._started_at).tm_year
        years = [int(found[1])] if found[1] else [this - 1, this, this + 1]
        times = [float(calendar.timegm((year, *rest))) for year in years]
        return min(times, key=lambda at: abs(at - self._started_at))


def _between(fd: int, before: tuple[int, float], after: tuple[int, float], limit: float) -> int:
    """The end of the line that was being printed at `limit`, between two lines (offset, seconds) that have a time."""
    (start, began), (end, ended) = before, after
    at = start + int((limit - began) / (ended - began) * (end - start))
    found = _LINE_END.search(os.pread(fd, min(end - at, _LONGEST_LINE), at))
    return at + found.end() if found else end
