"""What a log pane shows: the rows of a log that pass a filter, and a search among them. No widget."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from agent.logfile import LogFile
from agent.logscan import Matches, RankLines, Selection


class LogLines:
    """A log, one rank of it where that is wanted, and the lines that match. Rows count from zero."""

    def __init__(self, path: Path, redact: Callable[[str], str]) -> None:
        self.log = LogFile(path, redact)
        self.rank: RankLines | None = None
        self.matches: Matches | None = None

    def __len__(self) -> int:
        return len(self.log) if self.rank is None else len(self.rank)

    @property
    def generation(self) -> int:
        """Changes when the file was begun again."""
        return self.log.generation

    @property
    def behind(self) -> float:
        """The part of the file, 0 to 1, that is not read and tested yet."""
        unread = self.log.behind / self.log.size if self.log.size else 0.0
        if self.rank is None or not len(self.log):
            return unread
        return max(unread, 1 - self.rank.done / len(self.log) if not self.rank.complete else 0.0)

    def advance(self, seconds: float) -> bool:
        """Read and test for about this long at most; whether rows may have changed."""
        until = monotonic() + seconds
        changed = False
        while self.log.advance():
            changed = True
            if monotonic() > until:
                return True
        for selection in (self.rank, self.matches):
            while selection is not None and monotonic() < until and selection.advance():
                changed = True
        return changed

    def line_at(self, row: int) -> int:
        """The line of the log that stands in this row."""
        return row if self.rank is None else self.rank[row]

    def row_of(self, line: int) -> int:
        """The row of a line, or of the next one that passes the filter."""
        return line if self.rank is None else self.rank.place_of(line)

    def filter(self, rank: int | None) -> None:
        """Show one rank's lines only, or all."""
        self.rank = None if rank is None else RankLines(self.log, rank)
        if self.matches is not None:
            self.search(self.matches.needle)

    def search(self, needle: str) -> None:
        """Look for a text among the rows; nothing where it is empty."""
        self.matches = Matches(self.log, needle, self.rank) if needle else None

    def tracebacks(self) -> Selection:
        """The lines in which a traceback begins; to be advanced by the caller."""
        return Matches(self.log, "Traceback (most recent call last)")
