"""The moments of a recorded session that are worth going to, each in a word or two."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.core import events as ev
from agent.core.model import Task
from agent.core.reduce import free_id

MarkKind = Literal[
    "start", "check", "research", "step", "launch", "phase", "doubt", "ready", "round", "verdict", "dead end", "plan",
    "wish", "needs",
]  # fmt: skip

DECISIONS: frozenset[MarkKind] = frozenset({"launch", "verdict", "dead end", "plan", "wish"})
"""What was decided, by the scheduler or by a person: a replay pauses there, for it to be read."""

TICKS = (ev.PhaseProgressed, ev.TaskProgressed)
"""Nearly all events of a long session are of these, and none of them is worth going to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment worth going to. `at` is its recorded time; `word` says what happened to the experiment: `keep`.

    `experiment` is empty where it is about the whole session.
    """

    kind: MarkKind
    index: int
    at: float
    experiment: str
    word: str

    @property
    def text(self) -> str:
        """`ep-plain keep`."""
        return f"{self.experiment} {self.word}".lstrip()


class Trail:
    """Some of the marks of a recording, in their order, to go along."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self.marks = tuple(marks)
        self._indices = [mark.index for mark in marks]

    def after(self, index: int) -> Mark | None:
        """The first mark after a position."""
        place = bisect_right(self._indices, index)
        return self.marks[place] if place < len(self.marks) else None

    def before(self, index: int) -> Mark | None:
        """The last mark before a position."""
        place = bisect_left(self._indices, index)
        return self.marks[place - 1] if place else None

    def reached(self, index: int) -> int:
        """How many of its marks a position has come to: that many is the number of the latest one."""
        return bisect_right(self._indices, index)


def marks_of(events: Sequence[ev.Event]) -> tuple[Mark, ...]:
    """All marks of a session, in its order."""
    teller = _Teller()
    return tuple(
        Mark(kind=kind, index=index, at=event.at, experiment=experiment, word=word)
        for index, event in enumerate(events)
        if not isinstance(event, TICKS)
        for kind, experiment, word in teller.tell(event)
    )


def positions_about(events: Sequence[ev.Event], experiment: str) -> frozenset[int]:
    """The positions of all events that are about an experiment, progress among them."""
    teller, found = _Teller(), set()
    for index, event in enumerate(events):
        told = () if isinstance(event, TICKS) else tuple(teller.tell(event))
        if teller.whose(event) == experiment or any(about == experiment for _, about, _ in told):
            found.add(index)
    return frozenset(found)


_Told = tuple[MarkKind, str, str]
_PURPOSES: dict[ev.Purpose, str] = {
    "measure": "", "serve": " to serve", "attach": ": attaching", "smoke": ": smoke load"
}  # fmt: skip


@dataclass(slots=True)
class _Teller:
    """What an event says by itself, given whose the launches and tasks before it are."""

    launched: dict[str, str] = field(default_factory=dict)
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    parents: set[str | None] = field(default_factory=set)

    def tell(self, event: ev.Event) -> Iterator[_Told]:
        """Kind, experiment and word of each mark."""
        match event:
            case ev.SessionStarted():
                for spec in event.playbook.experiments:
                    self._know(spec.id, spec.based_on)
                    yield "start", spec.id, "in the playbook"
            case ev.ExperimentReopened() | ev.ExperimentAdded() | ev.DeadEndReopened():
                yield from self._more(event)
            case ev.TaskRequested():
                self.asked[event.task.id] = event.task.experiment, event.task.kind
            case ev.TaskFinished():
                yield from self._task(event)
            case ev.LaunchRequested():
                self.launched[event.launch] = event.experiment
                yield "launch", event.experiment, f"launch {len(self.launched)}{_PURPOSES[event.purpose]}"
            case ev.VerdictReached():
                word = event.parent.word
                # As on the board: what others are based on stays a result, however slow it is.
                dead = word == "failed" or (word == "worse" and event.experiment not in self.parents)
                yield "dead end" if dead else "verdict", event.experiment, word
            case ev.Wish() | ev.InterruptRequested() | ev.SessionResumed():
                yield "wish", self.whose(event), _wish(event)
            case _:
                yield from self._of_load(event)
                yield from _of_plan(event)

    def _know(self, name: str, based_on: str | None) -> None:
        self.names.add(name)
        self.parents.add(based_on)

    def _more(self, event: ev.ExperimentReopened | ev.ExperimentAdded | ev.DeadEndReopened) -> Iterator[_Told]:
        if isinstance(event, ev.ExperimentAdded):
            self._know(event.spec.id, event.spec.based_on)
            yield "wish", event.spec.id, "added"
            return
        kind: MarkKind
        base: str | None
        if isinstance(event, ev.DeadEndReopened):
            kind, name, base = "wish", f"{event.experiment}@{event.base}", event.base
        else:
            kind, name, base = "plan", event.spec.id, event.spec.based_on
        self._know(name, base)
        yield kind, event.experiment, f"reopened as {name}"
        yield "start", name, f"{event.experiment} again"

    def _task(self, event: ev.TaskFinished) -> Iterator[_Told]:
        experiment, kind = self.asked.get(event.task, ("", "task"))
        if event.status == "needs-key":
            yield "needs", experiment, "needs a key"
        else:
            outcome = event.finding.outcome or event.status
            yield "check" if kind in ("flags", "preflight") else "research", experiment, f"{kind} {outcome}"
        proposed = event.finding.proposal
        if proposed is not None and proposed.based_on in self.names:
            name = free_id(self.names, proposed.id)
            self._know(name, proposed.based_on)
            yield "start", name, "proposed"

    def _of_load(self, event: ev.Event) -> Iterator[_Told]:
        about = self.whose(event)
        match event:
            case ev.PhaseEntered():
                yield "phase", about, str(event.phase)
            case ev.ServerFailed():
                yield "phase", about, f"failed in {event.failure.phase}"
            case ev.LaunchVoid():
                yield "phase", about, "nothing was started"
            case ev.LoadDoubted():
                yield "doubt", about, "suspect" if event.text else "goes on"
            case ev.ServerReady():
                yield "ready", about, "ready"
            case ev.RoundMeasured():
                yield "round", about, f"{event.workload} round {event.index + 1}"
            case ev.RoundFailed():
                yield "round", about, f"{event.workload} round {event.index + 1} failed"
            case ev.RoundSpoilt():
                yield "round", about, f"{event.workload} round {event.index + 1} spoilt"
            case ev.GuardEnded():
                yield "round", about, "guard"

    def whose(self, event: ev.Event) -> str:
        """The experiment that an event is about; empty where it is about none."""
        if isinstance(event, ev.ApprovalGiven):
            return event.needed.partition("@")[0]
        if name := getattr(event, "experiment", ""):
            return str(name)
        task = getattr(event, "task", "")
        if isinstance(task, Task):
            return task.experiment
        return self.asked[task][0] if task in self.asked else self.launched.get(getattr(event, "launch", ""), "")


def _of_plan(event: ev.Event) -> Iterator[_Told]:
    match event:
        case ev.ExperimentRuledOut():
            yield "dead end", event.experiment, "ruled-out"
        case ev.PrepareFinished(ok=False):
            yield "dead end", event.experiment, "failed"
        case ev.PrepareFinished():
            yield "step", event.experiment, f"prepare step {event.step + 1} done"
        case ev.PrepareRequested():
            yield "step", event.experiment, f"prepare step {event.step + 1}"
        case ev.ExperimentNotReached():
            yield "plan", event.experiment, "not-reached"
        case ev.ExperimentCompleted():
            yield "plan", event.experiment, "completed"
        case ev.PivotReached():
            yield "plan", "", f"{event.group} is given up" + (f", next {event.to}" if event.to else "")
        case ev.LaunchPlanned():
            again = "launch" if event.of == event.experiment else f"launch of {event.of}"
            yield "plan", event.experiment, f"near: another {again}"
        case ev.TargetLost():
            yield "needs", "", "the target is lost"


_WISHES: dict[type[ev.Event], str] = {
    ev.ApprovalGiven: "approved",
    ev.ProposalApproved: "approved",
    ev.ExperimentSkipped: "skipped",
    ev.ExperimentRetried: "tried again",
    ev.ResearchAdded: "looked up more",
    ev.ExperimentMoved: "moved",
    ev.ExperimentChanged: "changed",
    ev.DeadEndMarked: "marked as a dead end",
    ev.NoteWritten: "noted",
    ev.NoteTakenBack: "a note taken back",
    ev.LaunchAbandoned: "ended by hand",
    ev.TaskAbandoned: "task cancelled",
    ev.InterruptRequested: "interrupted",
    ev.SessionResumed: "resumed",
}


def _wish(event: ev.Event) -> str:
    if isinstance(event, ev.PauseSet):
        return "paused" if event.on else "goes on"
    # A wish without words of its own is told by its name.
    return _WISHES.get(type(event)) or re.sub(r"(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()
