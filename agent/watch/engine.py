"""The streaming engine: bytes of a log in; marks of phases, and in the end a diagnosis, out. Memory is bounded.

The live watch, `tunebot explain` and tests use this one class.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from agent.ports import PhaseMark, ServerKind
from agent.watch.lines import Line, LineSplitter
from agent.watch.phases import PhaseTracker
from agent.watch.records import Record, record
from agent.watch.rules import marks_of
from agent.watch.traces import Assembler, Suspect

# Parts of words of which every line has one that may matter: most lines of a log are told apart by these alone.
_TELLING = (
    "rror", "RROR", "ception", "ailed", "ailure", "raceback", "atal", "FATAL", "ssert", "annot", "an't", "nable to",
    "ot found", "No such", "denied", "efused", "imed out", "imeout", "erminat", "ut of memory", "nsufficient", "nvalid",
    "upported", "ndefined", "umped", "atchdog", "Xid", "died", "xited", "xiting", "ismatch", "illed", "SIG", "sigquit",
    "bort", "CRITICAL", "NCCL WARN", "other ranks", "eaked", "hutting down", "shutdown", "Bus ", "waiting for",
    "roadcast block", "not enough", "ot recognize", "fallen off", "NaN", "not initialized", "Interrupt", "ignal",
    'File "', "ouldn't",
)  # fmt: skip
_ROUTINE = (
    b" batch, #",
    b" batch. #",
    b' HTTP/1.1" 2',
    b' HTTP/1.1" 4',
    b" throughput: ",
    b"print_timing:",
    b"update_slots:",
)
_TELLING_WARNING = 8.0
_KEPT = 400
_TAIL = 8 * 1024


@dataclass(slots=True)
class Seen:
    """The first line of a kind, and the last one."""

    first: Record
    last: Record


class LogEngine:
    """Reads one log. `kind` says how its phases read."""

    def __init__(self, kind: ServerKind) -> None:
        self.kind = kind
        words = sorted({*_TELLING, *kind.words})
        self._splitter = LineSplitter(re.compile("|".join(map(re.escape, words)).encode()), _ROUTINE)
        self._assembler = Assembler()
        self._suspects: dict[tuple[str, str, bool], Suspect] = {}
        self._late: deque[Suspect] = deque(maxlen=_KEPT)
        self._tail = b""
        self.tracker = PhaseTracker(kind)
        self.seen: dict[str, Seen] = {}
        self.ready_at: int | None = None
        self.waits = 0
        self.ranks: dict[int, str] = {}
        self.fatal: str | None = None
        """Why the start has failed, once a line proved it, though the process may live on."""

    def feed(self, data: bytes) -> Iterator[tuple[PhaseMark, bool]]:
        """Read on. Each mark, and whether a phase begins there."""
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        for line in self._splitter.feed(data):
            yield from self._line(line)

    def finish(self) -> Iterator[tuple[PhaseMark, bool]]:
        """The unfinished last line, at the end of the log."""
        for line in self._splitter.end():
            yield from self._line(line)

    def unfinished(self) -> PhaseMark | None:
        """What the line that is being written says: a bar is redrawn without a line end."""
        text = self._splitter.peek()
        return self.kind.phase_of(text) if text else None

    @property
    def suspects(self) -> list[Suspect]:
        """Everything that may name a cause, in the order of the log."""
        return [*self._suspects.values(), *self._late]

    def last_lines(self) -> list[str]:
        """The cleaned last lines of the log."""
        splitter = LineSplitter()
        return [line.text for line in (*splitter.feed(self._tail), *splitter.end())][-40:]

    def _line(self, line: Line) -> Iterator[tuple[PhaseMark, bool]]:
        text = line.text
        row = record(line.number, text)
        if row.rank is not None and row.rank not in self.ranks and len(self.ranks) < 1024:
            self.ranks[row.rank] = row.writer
        if self.fatal is None:
            self.fatal = self.kind.fatal(text)
        mark = self.kind.phase_of(row.message if row.clock in ("iso", "llama") else text)
        if mark is not None:
            was_up = self.tracker.is_up
            entered = self.tracker.mark(row.writer, row.rank, mark)
            if was_up and not self.tracker.is_up:
                self._forget()
            if self.tracker.is_up and not was_up:
                self.ready_at = row.number
            yield mark, entered
            if mark.done is not None and text.endswith("]"):  # what a process prints into a bar stands behind it
                return
        self._evidence(row)
        self._splitter.eager = self._assembler.attentive

    def _evidence(self, row: Record) -> None:
        message = row.message
        marks = marks_of(message)
        for kind in marks.kinds:
            self._saw(kind, row)
        self.waits += "waiting" in marks.kinds
        if "leaked " in message or "kill_process_tree called" in message:
            self._saw("leaked" if "leaked " in message else "own-kill", row)
        loose = row.level in ("E", "C") and bool(message.strip())
        # A warning is none, unless it says what nothing else does.
        native = marks.native >= (_TELLING_WARNING if row.level in ("W", "I", "D") else 0.1)
        suspect = self._assembler.feed(row, native, loose)
        if suspect is None:
            return
        suspect.phase = self.tracker.phase
        suspect.marks = self.tracker.passed.get(row.writer, 0)
        key = (re.sub(r"\d+", "#", suspect.text[:100]), f"{row.writer} {suspect.rank}", self.tracker.is_up)
        if key in self._suspects:
            return
        if len(self._suspects) < _KEPT:
            self._suspects[key] = suspect
        else:
            self._late.append(suspect)

    def _saw(self, kind: str, row: Record) -> None:
        if kind in self.seen:
            self.seen[kind].last = row
        else:
            self.seen[kind] = Seen(row, row)

    def _forget(self) -> None:
        """A second start in the same log."""
        self._suspects.clear()
        self._late.clear()
        self.seen.clear()
        self.ready_at = None
