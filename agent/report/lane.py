"""The server lane over time: what the states of a session said, one after another, that it did."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.core.events import Event, SessionResumed, SessionStarted
from agent.core.model import Phase
from agent.core.reduce import initial, reduce
from agent.core.state import LaunchStage, Stage, State


class Doing(StrEnum):
    """What the server lane does. AWAY: tunebot was not there to see it, between a cut or an interruption and a resume.

    STOPPING lasts until every process is gone, and begins where a launch fails. IDLE has nothing to do, or waits with
    a server that is up.
    """

    LOADING = "loading"
    MEASURING = "measuring"
    STOPPING = "stopping"
    PREPARING = "preparing"
    IDLE = "idle"
    AWAY = "away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is done for which experiment and launch; `phase` is that of a load. Empty where it is about none."""

    doing: Doing
    experiment: str = ""
    launch: str = ""
    phase: Phase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One act without a break. Times are seconds since the session began."""

    act: Act
    start_s: float
    end_s: float

    @property
    def lasts_s(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


_OF_STAGE = {
    LaunchStage.REQUESTED: Doing.LOADING,
    LaunchStage.LOADING: Doing.LOADING,
    LaunchStage.READY: Doing.IDLE,
    LaunchStage.MEASURING: Doing.MEASURING,
    LaunchStage.FAILED: Doing.STOPPING,
    LaunchStage.STOPPING: Doing.STOPPING,
}


def act_of(state: State) -> Act:
    """What the server lane does in a state."""
    if state.ending:
        return Act(doing=Doing.AWAY)
    if preparing := next((e.id for e in state.experiments.values() if e.stage is Stage.PREPARING), None):
        return Act(doing=Doing.PREPARING, experiment=preparing)
    launch = state.current
    if launch is None:
        return Act(doing=Doing.IDLE)
    doing = _OF_STAGE[launch.stage]
    phase = launch.phase if doing is Doing.LOADING else None
    return Act(doing=doing, experiment=launch.experiment, launch=launch.id, phase=phase)


def fold(events: Sequence[Event], until: float | None = None) -> tuple[State, tuple[Span, ...]]:
    """The last state of a session, and its server lane without gaps up to that state or to the later time `until`.

    Times are seconds since the epoch. Raises ValueError where the first event is not the start of a session,
    IllegalTransition where the events do not fit together.
    """
    start = events[0] if events else None
    if not isinstance(start, SessionStarted):
        raise ValueError("the first event is not the start of a session")
    state = initial(start)
    spans: list[Span] = []
    for event in events[1:]:
        act = Act(doing=Doing.AWAY) if isinstance(event, SessionResumed) else act_of(state)
        after, _ = reduce(state, event)
        _extend(spans, act, state.now - start.at, after.now - start.at)
        state = after
    if until is not None:
        _extend(spans, act_of(state), state.now - start.at, until - start.at)
    return state, tuple(spans)


def _extend(spans: list[Span], act: Act, start_s: float, end_s: float) -> None:
    if end_s <= start_s:
        return
    if spans and spans[-1].act == act:
        start_s = spans.pop().start_s
    spans.append(Span(act=act, start_s=start_s, end_s=end_s))
