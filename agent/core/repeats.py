"""Which spoilt round is measured again on the same launch, and the seed of each round."""

from collections.abc import Sequence

from agent.core import events as ev
from agent.core.state import Launch, Round, Stage, State
from agent.playbook.workload import Workload


def next_spoilt(state: State, launch: Launch) -> ev.RoundSpoilt | None:
    """The next round of a launch to be repeated, or None.

    It comes when its workload is measured through, so that what spoilt it has time to pass. At most as many rounds are
    repeated as the workload has; what is spoilt after that is not comparable.
    """
    if not _is_waited_for(state, launch):
        return None
    for workload in state.playbook.workloads:
        rounds = _of(workload, launch.rounds)
        if len(rounds) < workload.rounds or len(_of(workload, launch.spoilt)) == workload.rounds:
            continue
        for one in rounds:
            if reason := one.metrics.spoilt:
                return ev.RoundSpoilt(
                    at=state.now, launch=launch.id, workload=workload.name, index=one.index, reason=reason
                )
    return None


def _is_waited_for(state: State, launch: Launch) -> bool:
    """Whether a verdict may still come of what a launch measures: its own, or one that is near."""
    stages = {experiment.stage for experiment in state.experiments.values()}
    return state.experiments[launch.experiment].stage is Stage.RUNNING or Stage.NEAR in stages


def seed_of(state: State, launch: Launch, workload: Workload, index: int) -> int:
    """The seed of a round that is to be measured now: no two rounds have the same, so no two have the same prompts.

    That holds for every launch, for a round that is repeated, and for one that was cut off and comes again.
    """
    spoilt = _of(workload, launch.spoilt)
    place = workload.rounds + len(spoilt) - 1 if any(one.index == index for one in spoilt) else index
    series = 1_000 * state.resumes + len(state.launches)
    return state.seed + 1_000_000 * series + 1_000 * state.playbook.workloads.index(workload) + place


def _of(workload: Workload, rounds: Sequence[Round]) -> list[Round]:
    return [one for one in rounds if one.workload == workload.name]
