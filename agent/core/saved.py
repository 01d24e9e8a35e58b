"""Loads that were never paid: those of what a check ruled out, and of what could not have gained enough at best."""

from agent.core.state import ExperimentState, State
from agent.core.terms import set_aside


def saved_loads(state: State) -> tuple[ExperimentState, ...]:
    """The experiments whose loads were saved, in the order of the plan."""
    return tuple(one for one in state.experiments.values() if _ruled_out(one) or set_aside(one))


def _ruled_out(experiment: ExperimentState) -> bool:
    return experiment.verdict is not None and experiment.verdict.word == "ruled-out"
