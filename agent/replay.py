"""A recorded session as states by position: any moment of it can be looked at, forwards and backwards."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from agent.core import events as ev
from agent.core.reduce import initial, reduce
from agent.core.state import State

SNAPSHOT_EVERY = 500
"""Events between two kept states: a seek folds at most that many."""

LONGEST_GAP_S = 2.0
"""What an idle time counts at most on the playing clock."""

MarkKind = Literal["launch", "phase", "ready", "verdict", "dead end", "needs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment worth going to. `at` is its recorded time, `text` a few words such as `ep-plain keep`."""

    kind: MarkKind
    index: int
    at: float
    text: str


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
        self.offsets = list(accumulate((_counted(a, b) for a, b in pairwise(self.times)), initial=0.0))
        self.marks = tuple(_marks(events, start))
        self._mark_indices = [mark.index for mark in self.marks]
        self._snapshots = [initial(start)]
        self._latest = 0, self._snapshots[0]
        self._superseded = [_supersedes(later, earlier) for earlier, later in pairwise(events)]

    @property
    def last(self) -> int:
        """The position of the last event."""
        return len(self.events) - 1

    @property
    def playing_s(self) -> float:
        """Seconds of the whole recording on the playing clock."""
        return self.offsets[-1]

    def state_at(self, index: int) -> State:
        """The state after the event at `index`. Raises IllegalTransition where the events do not fit together."""
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
        """`state` is that at `begin`; the one at `end`. Progress that the next event writes over is passed by."""
        for index in range(begin + 1, end + 1):
            if index == end or not self._superseded[index]:
                state, _ = reduce(state, self.events[index])
        return state

    def index_at(self, time: float) -> int:
        """The position at a recorded time (seconds since the epoch): the last event not after it, or the first."""
        return max(0, bisect_right(self.times, time) - 1)

    def index_played(self, offset: float) -> int:
        """The position after `offset` seconds on the playing clock."""
        return max(0, bisect_right(self.offsets, offset) - 1)

    def time_played(self, index: int, offset: float) -> float:
        """The recorded time at `offset` on the playing clock, where the last event was `index`.

        Within a shortened gap it runs faster, so that it meets the next event.
        """
        if index == self.last:
            return self.times[-1]
        gap = self.offsets[index + 1] - self.offsets[index]
        share = min(1.0, max(0.0, (offset - self.offsets[index]) / gap)) if gap else 0.0
        return self.times[index] + share * (self.times[index + 1] - self.times[index])

    def next_mark(self, index: int, kinds: Collection[MarkKind]) -> Mark | None:
        """The first mark of these kinds after a position."""
        first = bisect_right(self._mark_indices, index)
        return next((mark for mark in self.marks[first:] if mark.kind in kinds), None)

    def previous_mark(self, index: int, kinds: Collection[MarkKind]) -> Mark | None:
        """The last mark of these kinds before a position."""
        stop = bisect_left(self._mark_indices, index)
        return next((mark for mark in reversed(self.marks[:stop]) if mark.kind in kinds), None)

    def mark_before(self, index: int, kinds: Collection[MarkKind]) -> Mark | None:
        """The latest mark of these kinds that the position has reached."""
        return self.previous_mark(index + 1, kinds)


def _counted(earlier: float, later: float) -> float:
    return min(later - earlier, LONGEST_GAP_S)


def _supersedes(later: ev.Event, earlier: ev.Event) -> bool:
    """Whether nothing of `earlier` is left in the state after `later`: both are progress of the same thing."""
    match earlier, later:
        case ev.PhaseProgressed(launch=one), ev.PhaseProgressed(launch=other):
            return one == other and earlier.at <= later.at
        case ev.TaskProgressed(task=one), ev.TaskProgressed(task=other):
            return one == other and earlier.at <= later.at
        case _:
            return False


def _marks(events: Sequence[ev.Event], start: ev.SessionStarted) -> list[Mark]:
    marks = []
    experiment_of: dict[str, str] = {}
    parents = {spec.based_on for spec in start.playbook.experiments}
    for index, event in enumerate(events):
        match event:
            case ev.LaunchRequested():
                experiment_of[event.launch] = event.experiment
            case ev.ExperimentAdded() | ev.ExperimentReopened():
                parents.add(event.spec.based_on)
        if (told := _told(event, experiment_of, parents)) is not None:
            kind, text = told
            marks.append(Mark(kind=kind, index=index, at=event.at, text=text))
    return marks


def _told(
    event: ev.Event, experiment_of: dict[str, str], parents: Collection[str | None]
) -> tuple[MarkKind, str] | None:
    match event:
        case ev.LaunchRequested():
            return "launch", event.experiment
        case ev.PhaseEntered():
            return "phase", f"{experiment_of[event.launch]} {event.phase}"
        case ev.ServerReady():
            return "ready", experiment_of[event.launch]
        case ev.VerdictReached():
            word = event.parent.word
            # As on the board: what others are based on stays a result, however slow it is.
            dead = word == "failed" or (word == "worse" and event.experiment not in parents)
            return "dead end" if dead else "verdict", f"{event.experiment} {word}"
        case ev.ExperimentRuledOut():
            return "dead end", f"{event.experiment} ruled-out"
        case ev.PrepareFinished(ok=False):
            return "dead end", f"{event.experiment} failed"
        case ev.TaskFinished(status="needs-key"):
            return "needs", f"{event.task} needs a key"
        case ev.ApprovalGiven():
            return "needs", f"{event.needed.partition('@')[0]} approved"
        case ev.TargetLost():
            return "needs", "the target is lost"
        case _:
            return None
