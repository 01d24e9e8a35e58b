"""What the guard saw of a launch, in words."""

from agent.core.guard import blind_spots, guard_notes, right_of
from agent.core.state import ExperimentState, Launch, State
from agent.core.verdict import counted, guard_reference, trouble


def guard_lines(state: State, launch: Launch) -> tuple[str, ...]:
    """A sentence for each thing that it saw or could not see; none where the launch was not asked."""
    if launch.guard_error:
        return (f"could not be asked: {launch.guard_error}",)
    if launch.guard is None:
        return ()
    reference = guard_reference(state, launch)
    if reference is not None:
        return guard_notes(launch.guard, reference)
    return (f"{right_of(launch.guard)} right", *blind_spots(launch.guard))


def guard_of_experiment(state: State, experiment: ExperimentState) -> tuple[str, ...]:
    """The lines of its latest launch that was asked, and in front why it is wrong, if it is."""
    asked = [launch for launch in counted(state, experiment) if launch.guard or launch.guard_error]
    if not asked:
        return ()
    found = trouble(state, asked[-1])
    wrong = (found[1],) if found and found[0] == "invalid" else ()
    return (*wrong, *guard_lines(state, asked[-1]))
