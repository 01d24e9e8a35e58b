"""The loads of an experiment on a time line: which phase took how long, and where it broke."""

from dataclasses import dataclass
from typing import Literal

from agent.core.state import ExperimentState, Launch, LaunchStage, State

PhaseStatus = Literal["done", "running", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBar:
    """A phase of a load: seconds from the launch to its begin, and how long it took (or has taken so far)."""

    phase: str
    start_s: float
    duration_s: float
    status: PhaseStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One launch. `total_s` is the time until ready, or until now or its end where it is not."""

    number: int
    purpose: str
    stage: str
    phases: tuple[PhaseBar, ...]
    total_s: float
    ready: bool
    failure: str
    left: tuple[int, ...]


def loads_of(state: State, experiment: ExperimentState, now: float) -> tuple[Load, ...]:
    """All launches of an experiment, first to last."""
    return tuple(_load(state.launches[name], number, now) for number, name in enumerate(experiment.launches, 1))


def _load(launch: Launch, number: int, now: float) -> Load:
    ready = launch.load_s is not None
    begun = launch.requested_at
    last = launch.phases[-1][1] if launch.phases else begun
    # A phase that became ready has no length; one that broke lasts, as far as is known, until the stop.
    end = last if ready else launch.ended_at if launch.ended_at is not None else max(now, last)
    marks = [("launch", begun), *((str(phase), at) for phase, at in launch.phases)]
    bars = []
    for index, (phase, at) in enumerate(marks):
        until = marks[index + 1][1] if index + 1 < len(marks) else end
        # Rounded, so that a view changes at most ten times a second.
        start, length = round(at - begun, 1), round(max(0.0, until - at), 1)
        status: PhaseStatus = "done"
        if index + 1 == len(marks) and not ready:
            status = "failed" if launch.failure else "running" if launch.is_up else "done"
        bars.append(PhaseBar(phase=phase, start_s=start, duration_s=length, status=status))
    return Load(
        number=number,
        purpose=launch.purpose,
        stage="failed" if launch.failure else _stage_word(launch),
        phases=tuple(bars),
        total_s=round(end - begun, 1),
        ready=ready,
        failure=_failure(launch),
        left=launch.left,
    )


def _stage_word(launch: Launch) -> str:
    return "ready" if launch.stage is LaunchStage.STOPPED and launch.load_s is not None else str(launch.stage)


def _failure(launch: Launch) -> str:
    if (failure := launch.failure) is None:
        return ""
    rank = "" if failure.rank is None else f" on rank {failure.rank}"
    code = "" if failure.exit_code is None else f" (exit {failure.exit_code})"
    return f"failed in {failure.phase}{rank}{code}"
