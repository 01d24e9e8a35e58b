"""The phases of a load against those of earlier loads of the same kind: what is slower than usual, and perhaps why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from agent.core.model import Phase
from agent.core.scope import model_of
from agent.core.smoke import is_dummy
from agent.core.state import ExperimentState, Launch, LaunchStage, State
from agent.core.views.basics import duration
from agent.core.views.loads import PhaseStatus

SLOW = 1.5
"""A phase is slow from so many times its usual length on. In recorded starts of one model on one host, phases of some
seconds differ by less, but where something was read, compiled or set up for the first time."""

LEAST_S = 5.0
LEAST_SHARE = 0.05
"""And only if it takes so many seconds more, and that share of the usual load: nobody looks for the cause of less."""

_GUESSES: Mapping[Phase, str] = {
    Phase.LOAD_WEIGHTS: "cold page cache, slow disk?",
    Phase.COMPILE: "empty compile cache?",
    Phase.GRAPH_CAPTURE: "more sizes, or kernels compiled anew?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseAgainst:
    """A phase of a load, its parts added up: the seconds that it took (or has taken so far), and takes usually.

    `usual_s` is None where no earlier load had it; `slow` says in words that it is slower than usual, if it is.
    """

    phase: str
    took_s: float
    usual_s: float | None
    status: PhaseStatus
    slow: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAgainst:
    """A launch of an experiment (its first is number 1) beside what is usual, and what that stands on."""

    number: int
    basis: str
    phases: tuple[PhaseAgainst, ...]


def loads_against(state: State, experiment: ExperimentState, now: float) -> tuple[LoadAgainst, ...]:
    """Those launches of an experiment that an earlier load can be held against, first to last."""
    made = []
    for number, name in enumerate(experiment.launches, 1):
        launch = state.launches[name]
        usual, basis = usual_of(state, launch)
        if usual and launch.phases and _is_watched(state, launch):
            made.append(LoadAgainst(number=number, basis=basis, phases=tuple(_phases(launch, usual, now))))
    return tuple(made)


def slow_now(state: State, launch: Launch, now: float) -> tuple[str, float] | None:
    """What to say of the phase that a load is in, and how many times its usual length it has taken, if it is slow."""
    if launch.stage is not LaunchStage.LOADING or not _is_watched(state, launch):
        return None
    usual, _ = usual_of(state, launch)
    took_s = _durations(launch, now).get(launch.phase)
    if took_s is None or launch.phase not in usual:
        return None
    text = _slow(launch.phase, took_s, usual)
    return (text, took_s / max(usual[launch.phase], 1.0)) if text else None


def usual_of(state: State, launch: Launch) -> tuple[Mapping[Phase, float], str]:
    """The usual seconds of each phase for a launch, and what they stand on; empty where nothing like it was loaded.

    What the host's history said when it was launched counts: loads of this session are in it. A journal without that
    has the earlier launches of the session only.
    """
    if launch.usual_s:
        return launch.usual_s, "the latest loads of this model on this host"
    alike = launch.config.kind, model_of(launch.config), is_dummy(launch.config)
    loads = [
        _durations(other, other.requested_at)
        for other in takewhile(lambda other: other is not launch, state.launches.values())
        if other.load_s is not None
        and other.phases
        and not other.unwatched
        and (other.config.kind, model_of(other.config), is_dummy(other.config)) == alike
    ]
    found = {p: median(load[p] for load in loads if p in load) for p in Phase if any(p in load for load in loads)}
    count = f"{len(loads)} earlier loads" if len(loads) > 1 else "the one earlier load"
    return found, f"{count} of this model in this session"


def _is_watched(state: State, launch: Launch) -> bool:
    """Whether the times of its phases can be believed: none was entered while nobody could look."""
    return not launch.unwatched and (launch.load_s is not None or state.unreachable_since is None)


def _durations(launch: Launch, now: float) -> dict[Phase, float]:
    """Seconds of each phase until ready, until its end, or until `now`. One that it came back to counts as one."""
    marks = [(Phase.LAUNCH, launch.requested_at), *launch.phases]
    if launch.load_s is not None:
        end = marks[-1][1]
    else:
        end = launch.ended_at if launch.ended_at is not None else max(now, marks[-1][1])
    found: dict[Phase, float] = {}
    for (phase, at), until in zip(marks, [*(at for _, at in marks[1:]), end], strict=True):
        if phase not in (Phase.READY, Phase.SERVING):
            found[phase] = found.get(phase, 0.0) + until - at
    return found


def _phases(launch: Launch, usual: Mapping[Phase, float], now: float) -> Iterator[PhaseAgainst]:
    took = _durations(launch, now)
    for phase in Phase:
        if phase not in took:
            continue
        status: PhaseStatus = "done"
        if launch.load_s is None and phase is launch.phase:
            status = "failed" if launch.failure else "running" if launch.is_up else "done"
        told = status != "failed" and phase in usual
        yield PhaseAgainst(
            phase=str(phase),
            took_s=round(took[phase], 1),  # a view changes at most ten times a second
            usual_s=usual.get(phase),
            status=status,
            slow=_slow(phase, took[phase], usual) if told else "",
        )


def _slow(phase: Phase, took_s: float, usual: Mapping[Phase, float]) -> str:
    """`load-weights 14:20, 2.1x the usual 6:52: cold page cache, slow disk?`; empty if it is not slow."""
    usual_s = usual[phase]
    more_s = took_s - usual_s
    if took_s < SLOW * usual_s or more_s < max(LEAST_S, LEAST_SHARE * sum(usual.values())):
        return ""
    before = f"{took_s / usual_s:.1f}x the usual {duration(usual_s)}" if usual_s >= 1 else "usually under a second"
    guess = f": {_GUESSES[phase]}" if phase in _GUESSES else ""
    return f"{phase} {duration(took_s)}, {before}{guess}"
