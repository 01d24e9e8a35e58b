"""Puts what may be the cause together: exceptions with their frames, per writer though eight of them interleave."""

import re
from dataclasses import dataclass, field

from agent.core.model import Phase
from agent.watch.records import Record
from agent.watch.rules import rules

HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'[\s|]*File "([^"]*)", line (\d+),? in (\S+)')
_CARETS = re.compile(r"[\s|^~]*$")
_BOX = re.compile(r"\s*(?:[|] ?|\+[-+ ]+(?=\S))")
# The name of an exception class at the start of a line, as Python prints it.
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?:"
    r"(?:[A-Z]\w*)?(?:Error|Exception|Timeout|TimeoutExpired|Exit|Interrupt|Failed|OutOfResources|NotFound|Empty|Died)\w*"
    r"|[a-z]\w*\.(?:error|gaierror|timeout|herror)|Unsupported|InternalTorchDynamoError)"
    r"(?:\([\w.]+\))?(?=:|$)"
)
_ANY_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:\([\w.]+\))?(?=: |:?$)")
_DURING = "During handling of the above exception"
_DIRECT = "The above exception was the direct cause"
_STACK = "(most recent call first)"
_NAMES_RANK = re.compile(r"\bGPU (\d+) has|\brank[ =](\d+)\b", re.IGNORECASE)
_CALL_KEPT = 80
_BELOW_KEPT = 8
_LONGEST = 2000
"""Lines after which a block that has not ended counts as cut off."""
_OPEN_KEPT, _WRITERS_KEPT = 64, 1024


@dataclass(slots=True, kw_only=True)
class Suspect:
    """A line that may name the cause.

    `text` is without prefix, `frames` are the `file:line function` of its traceback, `source` is the source line above
    it, `header` the line that announced it. `opened` orders suspects: the number of the line that began its block.
    `native` lines come from C++, the launcher or argparse rather than from a Python exception. `above` is the
    exception during whose handling this one was raised, `outer` the one that was raised while this one was handled.
    `loose` lines are told by their level alone.
    """

    line: Record
    text: str
    rank: int | None
    opened: int
    frames: list[str] = field(default_factory=list)
    source: Record | None = None
    header: str = ""
    below: list[Record] = field(default_factory=list)
    native: bool = False
    above: "Suspect | None" = None
    outer: "Suspect | None" = None
    loose: bool = False
    time: float | None = None
    clock: str = ""
    phase: Phase = Phase.LAUNCH
    marks: int = 0


@dataclass(slots=True)
class _Open:
    """The traceback that a writer is in the middle of."""

    rank: int | None
    opened: int
    header: str
    time: float | None
    clock: str
    above: Suspect | None
    began: int
    frames: list[str] = field(default_factory=list)
    source: Record | None = None


class Assembler:
    """Turns records into suspects, one at a time."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._writer = ""
        self._rank: int | None = None
        self._place = ""
        self._clock: tuple[float | None, str] = (None, "")
        self._last: Suspect | None = None
        self._chained: dict[str, Suspect] = {}
        self._ended: dict[str, Suspect] = {}
        self._latest: dict[str, Suspect] = {}
        self._stack: Suspect | None = None

    @property
    def attentive(self) -> bool:
        """Whether the next lines are needed, whatever they say: a block is open, or a text goes on."""
        return (
            bool(self._open)
            or self._stack is not None
            or (self._last is not None and len(self._last.below) < _BELOW_KEPT)
        )

    def feed(self, record: Record, native: bool, loose: bool = False) -> Suspect | None:
        """The suspect that this line is, if it is one.

        `native`: the line names a fault by itself. `loose`: its level says that it is an error.
        """
        text = record.message
        if record.prefixed:
            self._prefixed(record)
        while self._open and record.number - next(iter(self._open.values())).began > _LONGEST:
            del self._open[next(iter(self._open))]  # cut off: its end never comes
        if self._open and self._writer not in self._open and not record.prefixed:
            # Between blocks of other ranks the parent has had its say: go on with the oldest.
            self._writer = next(iter(self._open))
        if HEAD in text:
            self._begin(record, text)
            return None
        if _DURING in text or _DIRECT in text:
            if (ended := self._ended.get(self._writer)) is not None:
                self._chained[self._writer] = ended
            return None
        if _STACK in text:
            self._stack = self._latest.get(self._writer)
            return None
        current = self._open.get(self._writer)
        if current is not None and text[:1] in " \t|+" and (box := _BOX.match(text)) and "|" in text[:8]:
            text = text[box.end() :]
        if self._framed(current, record, text):
            return None
        # The next line of the same message (vLLM prefixes each one) is part of it.
        goes_on = self._last is not None and bool(record.place)
        found = self._found(current, record, text, native or (loose and not goes_on))
        if found is not None:
            found.loose = found.native and not native
        return found

    def _prefixed(self, record: Record) -> None:
        same = record.writer == self._writer and record.place == self._place
        goes_on = record.message[:1].isspace() or record.message[:1].islower() or not record.message
        if not (same and (record.place or goes_on)):
            self._last = None
            self._stack = None
        old = self._open.get(record.writer)
        if old is not None and not record.writer and record.clock == "sglang" and HEAD not in record.message:
            # The parent says something else: what it was printing has been cut off.
            del self._open[record.writer]
        self._writer, self._rank, self._place = record.writer, record.rank, record.place
        if record.time is not None:
            self._clock = (record.time, record.clock)

    def _begin(self, record: Record, text: str) -> None:
        header = text.partition(HEAD)[0].strip(" :,╭─")
        above = self._chained.pop(self._writer, None)
        if not header and self._last is not None and self._last.native:
            header = self._last.text[:200]
        opened = record.number if above is None else above.opened
        self._open.pop(self._writer, None)
        if len(self._open) >= _OPEN_KEPT:
            self._open.pop(next(iter(self._open)))
        self._open[self._writer] = _Open(self._rank, opened, header, *self._clock, above, record.number)
        self._last = self._stack = None

    def _framed(self, current: _Open | None, record: Record, text: str) -> bool:
        """Whether the line is part of a call stack: a frame, its source, a row of carets."""
        frame = _FRAME.match(text)
        if self._stack is not None and (frame or not text.strip() or text.startswith(("Thread ", "Current thread"))):
            if frame and len(self._stack.frames) < _CALL_KEPT:
                self._stack.frames.insert(0, f"{frame[1]}:{frame[2]} {frame[3]}")
            return True
        self._stack = None
        if current is None:
            if not frame:
                return False
            # The head of the traceback was cut off.
            self._begin(record, HEAD)
            current = self._open[self._writer]
        if frame:
            if len(current.frames) >= _CALL_KEPT:
                del current.frames[_CALL_KEPT // 2]
            current.frames.append(f"{frame[1]}:{frame[2]} {frame[3]}")
            return True
        if text[:1].isspace() or not text:
            if text and not _CARETS.match(text):
                current.source = record
            return True
        return False

    def _found(self, current: _Open | None, record: Record, text: str, native: bool) -> Suspect | None:
        name = _EXCEPTION.match(text)
        if current is not None and (name or (current.frames and _ANY_NAME.match(text))):
            writer = self._owner(text, record)
            current = self._open.pop(writer)
            found = Suspect(
                line=record, text=text, rank=current.rank, opened=current.opened, frames=current.frames,
                source=current.source, header=current.header, above=current.above, time=current.time,
                clock=current.clock,
            )  # fmt: skip
            if found.above is not None:
                found.above.outer = found
            if len(self._ended) >= _WRITERS_KEPT:
                self._ended.clear()
            self._ended[writer] = found
        elif name or native:
            time, clock = self._clock
            found = Suspect(
                line=record, text=text, rank=record.rank, opened=record.number, native=not name, time=time, clock=clock
            )
        else:
            if current is not None:  # a source line whose indentation was lost
                current.source = record
            elif self._last is not None and len(self._last.below) < _BELOW_KEPT:
                self._last.below.append(record)
            return None
        self._last = found
        if len(self._latest) >= _WRITERS_KEPT:
            self._latest.clear()
        self._latest[self._writer] = found
        return found

    def _owner(self, text: str, record: Record) -> str:
        """Whose exception this is, where blocks of several ranks are torn into each other.

        A text that names a rank tells. Else the one that began to write first died first: it has the cause, and what
        tells a lost peer is of those that came later.
        """
        if len(self._open) == 1 or record.prefixed:
            return self._writer
        if named := _NAMES_RANK.search(text):
            rank = int(next(filter(None, named.groups())))
            for writer, block in self._open.items():
                if block.rank == rank:
                    return writer
        oldest, *_, newest = sorted(self._open, key=lambda writer: self._open[writer].opened)
        return newest if rules().is_a("follows", text) else oldest
