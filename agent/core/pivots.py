"""Strategies: groups of experiments, what became of each, and where the board moves when one is given up.

A group that another names in `then` is only tried once that one is given up: until then its members wait, and where a
member of that one is kept they are not reached. All other groups are open from the start. `when` is about single
verdicts; a whole strategy is a group.
"""

from dataclasses import replace
from enum import StrEnum

from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.model import Tried
from agent.core.state import ExperimentState, Stage, State
from agent.playbook.model import Group, Playbook


class Standing(StrEnum):
    """What became of a strategy. WAITS: for the one before it to be given up."""

    WAITS = "waits"
    PRESENT = "present"
    KEPT = "kept"
    GIVEN_UP = "given up"
    NOT_REACHED = "not reached"


def standing(state: State, group: Group) -> Standing:
    """How a strategy stands."""
    if keeper(state, group):
        return Standing.KEPT
    if any(pivot.group == group.id for pivot in state.pivots):
        return Standing.GIVEN_UP
    if is_reached(state, group):
        return Standing.PRESENT
    return Standing.NOT_REACHED if _never(state, group) else Standing.WAITS


def group_of(playbook: Playbook, experiment: str) -> Group | None:
    """The strategy that an experiment belongs to."""
    return next((group for group in playbook.groups if experiment in group.members), None)


def group_before(playbook: Playbook, group: Group) -> Group | None:
    """The strategy that is tried before this one, if any."""
    return next((other for other in playbook.groups if other.then == group.id), None)


def keeper(state: State, group: Group) -> str | None:
    """The first member that is kept against its parent: its idea worked, and no person gave it up."""
    for name in group.members:
        member = state.experiments[name]
        if member.verdict and member.verdict.word == "keep" and not member.given_up:
            return name
    return None


def is_reached(state: State, group: Group) -> bool:
    """Whether the members of a group may be launched."""
    before = group_before(state.playbook, group)
    return before is None or any(pivot.group == before.id for pivot in state.pivots)


def waits_for(state: State, experiment: ExperimentState) -> Group | None:
    """The strategy that has to be given up before an experiment is launched, where it waits for one."""
    group = group_of(state.playbook, experiment.id)
    if group is None or experiment.overruled or is_reached(state, group):
        return None
    return group_before(state.playbook, group)


def unreachable(state: State, experiment: ExperimentState) -> str | None:
    """Why the strategy of an experiment is never tried, None while it may be."""
    group = group_of(state.playbook, experiment.id)
    return _never(state, group) if group else None


def _never(state: State, group: Group) -> str | None:
    step: Group | None = group
    while step is not None and not is_reached(state, step):
        step = group_before(state.playbook, step)
        if step is not None and (kept := keeper(state, step)):
            return f"{group.title} is for where {step.title} does not work, and {kept} is keep"
    return None


def pivot(state: State) -> ev.PivotReached | None:
    """The next strategy to be given up: it was reached, every member has ended, and none is kept."""
    given_up = {one.group for one in state.pivots}
    for group in state.playbook.groups:
        members = [state.experiments[name] for name in group.members]
        ended = all(member.stage is Stage.ENDED for member in members)
        if ended and group.id not in given_up and is_reached(state, group) and not keeper(state, group):
            trail = tuple(
                Tried(experiment=member.id, word=member.verdict.word, reason=member.reason)
                for member in members
                if member.verdict
            )
            return ev.PivotReached(at=state.now, group=group.id, to=group.then or "", trail=trail)
    return None


def reached(state: State, event: ev.PivotReached) -> State:
    """The state after a strategy was given up. Raises IllegalTransition for one that is unknown or was before."""
    known = any(group.id == event.group for group in state.playbook.groups)
    if not known or any(one.group == event.group for one in state.pivots):
        raise IllegalTransition(state, event, event.group, "given up" if known else "unknown")
    return replace(state, pivots=(*state.pivots, event))
