"""A recorded session as states by position: any moment of it can be looked at, forwards and backwards."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.review.marks import DECISIONS, MarkKind, Trail, marks_of

SNAPSHOT_EVERY = 500
"""Events between two kept states: a seek folds at most that many."""

LONGEST_GAP_S = 2.0
"""What an idle time counts at most on the playing clock."""

READING_S = 3.0
"""What the playing clock gives a person to read a decision: a dozen words, at four a second."""


class DoesNotFit(ValueError):
    """An event that cannot follow those before it. The message says which and why; `index` is its position."""

    def __init__(self, index: int, event: ev.Event, why: str) -> None:
        super().__init__(f"event {index + 1}, {type(event).__name__}, does not fit those before it: {why}")
        self.index = index


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """Seconds of the playing clock in a second: while something is waited for, and while a decision is shown."""

    loads: int
    decisions: int


class PlayingClock:
    """When each event of a recording is played, in seconds from the first.

    Idle time is short on it. After each of the `decisions` (positions) there is time to read it.
    """

    def __init__(self, times: Sequence[float], decisions: Collection[int]) -> None:
        """`times` are those of the events, never falling."""
        self._times = times
        gaps = [min(later - earlier, LONGEST_GAP_S) for earlier, later in pairwise(times)]
        pauses = [READING_S if index in decisions else 0.0 for index in range(len(gaps))]
        self._read = list(accumulate(pauses, initial=0.0))
        self.offsets = [gap + read for gap, read in zip(accumulate(gaps, initial=0.0), self._read, strict=True)]

    @property
    def whole_s(self) -> float:
        """Seconds of the whole recording."""
        return self.offsets[-1]

    def index_at(self, offset: float) -> int:
        """The position after `offset` seconds."""
        return max(0, bisect_right(self.offsets, offset) - 1)

    def offset_of(self, index: int, time: float) -> float:
        """The offset of a recorded time (seconds since the epoch) at which the last event was `index`."""
        if index == len(self._times) - 1:
            return self.offsets[index]
        whole = self._times[index + 1] - self._times[index]
        share = min(1.0, max(0.0, (time - self._times[index]) / whole)) if whole else 0.0
        return self.offsets[index] + share * (self.offsets[index + 1] - self.offsets[index])

    def time_at(self, index: int, offset: float) -> float:
        """The recorded time at `offset`, where the last event was `index`.

        It runs evenly from one event to the next, however long that takes on this clock.
        """
        if index == len(self._times) - 1:
            return self._times[-1]
        gap = self.offsets[index + 1] - self.offsets[index]
        share = min(1.0, max(0.0, (offset - self.offsets[index]) / gap)) if gap else 0.0
        return self._times[index] + share * (self._times[index + 1] - self._times[index])

    def is_reading(self, offset: float) -> bool:
        """Whether a decision is shown at `offset`, for a person to read."""
        index = self.index_at(offset)
        return offset - self.offsets[index] < self._pause(index)

    def played_on(self, offset: float, seconds: float, speeds: Speeds) -> float:
        """Where playing has come to, `seconds` after it was at `offset`."""
        index = self.index_at(offset)
        into, pause = offset - self.offsets[index], self._pause(index)
        until = self._lasts(index, speeds) + seconds
        until += min(into, pause) / speeds.decisions + max(0.0, into - pause) / speeds.loads
        index = bisect_right(range(len(self.offsets)), until, key=lambda event: self._lasts(event, speeds)) - 1
        left, reading = until - self._lasts(index, speeds), self._pause(index) / speeds.decisions
        into = min(left, reading) * speeds.decisions + max(0.0, left - reading) * speeds.loads
        return min(self.offsets[index] + into, self.whole_s)

    def _lasts(self, index: int, speeds: Speeds) -> float:
        """Seconds that it takes to play up to an event."""
        return self._read[index] / speeds.decisions + (self.offsets[index] - self._read[index]) / speeds.loads

    def _pause(self, index: int) -> float:
        return self._read[index + 1] - self._read[index] if index + 1 < len(self._read) else 0.0


class Recording:
    """The events of a session. A position is the index of an event: the state after it is the state there.

    Nothing is folded before it is looked at; every state at a multiple of SNAPSHOT_EVERY is then kept.
    """

    def __init__(self, events: Sequence[ev.Event]) -> None:
        """Raises ValueError where the first event is not the start of a session."""
        start = events[0] if events else None
        if not isinstance(start, ev.SessionStarted):
            raise ValueError("the first event is not the start of a session")
        self.events = tuple(events)
        self.times = list(accumulate((event.at for event in events), max))
        self.marks = marks_of(self.events)
        self.clock = PlayingClock(self.times, {mark.index for mark in self.marks if mark.kind in DECISIONS})
        self._trails: dict[tuple[frozenset[MarkKind] | None, str], Trail] = {}
        self._snapshots = [initial(start)]
        self._latest = 0, self._snapshots[0]
        self._rewritten = _rewritten(self.events)

    @property
    def last(self) -> int:
        """The position of the last event."""
        return len(self.events) - 1

    def state_at(self, index: int) -> State:
        """The state after the event at `index`. Raises DoesNotFit."""
        if not 0 <= index <= self.last:
            raise IndexError(f"no event {index} among {len(self.events)}")
        wanted = index // SNAPSHOT_EVERY
        while len(self._snapshots) <= wanted:
            begin = (len(self._snapshots) - 1) * SNAPSHOT_EVERY
            self._snapshots.append(self._fold(self._snapshots[-1], begin, begin + SNAPSHOT_EVERY))
        begin, state = wanted * SNAPSHOT_EVERY, self._snapshots[wanted]
        # Playing forwards, the state looked at last is nearer than any kept one.
        if begin < self._latest[0] <= index:
            begin, state = self._latest
        self._latest = index, self._fold(state, begin, index)
        return self._latest[1]

    def _fold(self, state: State, begin: int, end: int) -> State:
        """`state` is that at `begin`; the one at `end`. Progress that a later event writes over is passed by."""
        for index in range(begin + 1, end + 1):
            if self._rewritten[index] > end:
                try:
                    state, _ = reduce(state, self.events[index])
                except (IllegalTransition, LookupError, StopIteration) as error:
                    raise DoesNotFit(index, self.events[index], str(error) or type(error).__name__) from error
        return state

    def index_at(self, time: float) -> int:
        """The position at a recorded time (seconds since the epoch): the last event not after it, or the first."""
        return max(0, bisect_right(self.times, time) - 1)

    def trail(self, kinds: frozenset[MarkKind] | None, experiment: str = "") -> Trail:
        """The marks of these kinds (of all, where None) that are about an experiment (about anything, where empty)."""
        key = kinds, experiment
        if key not in self._trails:
            self._trails[key] = Trail(
                [
                    mark
                    for mark in self.marks
                    if (kinds is None or mark.kind in kinds) and experiment in ("", mark.experiment)
                ]
            )
        return self._trails[key]


def _rewritten(events: Sequence[ev.Event]) -> list[int]:
    """For each event the position of the next one that leaves nothing of it in the state, else one past the end.

    Both are progress of one thing, and only progress comes between them.
    """
    never = len(events)
    found = [never] * never
    later: dict[tuple[str, str], int] = {}
    for index in range(never - 1, -1, -1):
        match event := events[index]:
            case ev.PhaseProgressed():
                key = "launch", event.launch
            case ev.TaskProgressed():
                key = "task", event.task
            case _:
                later.clear()
                continue
        by = later.get(key, never)
        # The time of the state never falls: an event whose time does would leave an earlier one's.
        if by < never and event.at <= events[by].at:
            found[index] = by
        later[key] = index
    return found
