"""What the guard saw of a launch, in words."""

from statistics import fmean

from agent.core.guard import blind_spots, guard_notes, right_of
from agent.core.state import ExperimentState, Launch, State
from agent.core.verdict import counted, guard_reference, trouble

MOVED = 0.05
"""A relative change of the accept length that is worth a sentence: rounds of one launch differ by a few percent."""


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
    return (*wrong, *guard_lines(state, asked[-1]), *_moved(state, experiment))


def _moved(state: State, experiment: ExperimentState) -> tuple[str, ...]:
    """Where speculation keeps another number of tokens than its parent's, the answers may be others too."""
    parent = experiment.spec.based_on
    if parent is None:
        return ()
    ours, theirs = (_accept_length(state, state.experiments[name]) for name in (experiment.id, parent))
    if ours is None or theirs is None or abs(ours / theirs - 1) < MOVED:
        return ()
    return (f"accept length {ours:.2f}, that of {parent} {theirs:.2f}: speculation guesses another text",)


def _accept_length(state: State, experiment: ExperimentState) -> float | None:
    rounds = [r.metrics.accept_length for launch in counted(state, experiment) for r in launch.rounds]
    known = [length for length in rounds if length is not None]
    return fmean(known) if known else None
