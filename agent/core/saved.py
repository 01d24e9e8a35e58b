"""Loads that were paid, and those that never were: ruled out by a check, or not worth one at best."""

from agent.core.state import ExperimentState, Launch, State
from agent.core.terms import set_aside


def paid_loads(state: State, *, smoke: bool = False) -> list[Launch]:
    """The servers that tunebot started, first to last: their real loads, or the smoke loads."""
    started = (launch for launch in state.launches.values() if launch.pid is not None)
    return [launch for launch in started if (launch.purpose == "smoke") is smoke]


def saved_loads(state: State) -> tuple[ExperimentState, ...]:
    """The experiments whose loads were saved, in the order of the plan."""
    return tuple(one for one in state.experiments.values() if _ruled_out(one) or set_aside(one))


def _ruled_out(experiment: ExperimentState) -> bool:
    return experiment.verdict is not None and experiment.verdict.word == "ruled-out"
