"""Whether a person can change the plan in some way now; if not, why, in a few words.

`refusal` is about what would break the plan. What a screen refuses beside that, since it would change nothing, is no
part of it: a journal must stay readable when that is judged in another way.
"""

from collections.abc import Iterator

from agent.core import events as ev
from agent.core.pivots import waits_for
from agent.core.state import ExperimentState, Stage, State
from agent.text import one_line

LONGEST = 500
"""Characters of a note, a reason, or of what is to do."""

EDITS = (
    ev.ExperimentMoved,
    ev.ExperimentChanged,
    ev.DeadEndMarked,
    ev.NoteWritten,
    ev.NoteTakenBack,
    ev.TodoAdded,
    ev.TodoTicked,
)
"""The wishes that these rules are for."""

_DEAD = ("failed", "ruled-out")


def refusal(state: State, edit: ev.Event) -> str | None:
    """Why an edit cannot be made, None if it can."""
    name = getattr(edit, "experiment", None)
    if name is not None and name not in state.experiments:
        return f"there is no experiment {one_line(name, 80)}"
    match edit:
        case ev.ExperimentMoved():
            return _not_beside(state, edit.experiment, edit.past)
        case ev.ExperimentChanged():
            return cannot_change(state, edit.experiment)
        case ev.DeadEndMarked():
            return cannot_give_up(state, edit.experiment) or _bad_text(edit.reason)
        case ev.NoteWritten() | ev.TodoAdded():
            return _bad_text(edit.text)
        case ev.NoteTakenBack():
            return cannot_take_back(state, edit.experiment, edit.written_at)
        case ev.TodoTicked():
            return cannot_tick(state, edit.todo, edit.done)
    raise TypeError(f"{type(edit).__name__} is no edit")


def _bad_text(text: str) -> str | None:
    good = text and one_line(text, LONGEST) == text
    return None if good else f"it needs one line of at most {LONGEST} characters"


def neighbour(state: State, experiment: str, steps: int) -> str | None:
    """The experiment in line that comes `steps` after (or before) another, None where there is none."""
    line = [e.id for e in state.experiments.values() if e.stage is Stage.TODO or e.id == experiment]
    place = line.index(experiment) + steps
    return line[place] if 0 <= place < len(line) else None


def cannot_change_places(state: State, experiment: str, past: str | None) -> str | None:
    """Why moving an experiment past another one does nothing; None of `past` is the end of the line."""
    if (reason := _not_beside(state, experiment, past)) or past is None:
        return reason
    for later, earlier in ((experiment, past), (past, experiment)):
        if earlier in _awaited(state, later):
            return f"{later} waits for {earlier} wherever it stands: moving it changes nothing"
    return None


def _not_beside(state: State, experiment: str, past: str | None) -> str | None:
    """Why two experiments do not both stand in line."""
    if reason := _not_in_line(state.experiments[experiment]):
        return reason
    if past is None or past == experiment:
        return f"{experiment} stands at the end of the line"
    other = state.experiments.get(past)
    return f"{one_line(past, 80)} is not in line any more" if other is None or _not_in_line(other) else None


def _not_in_line(experiment: ExperimentState) -> str | None:
    match experiment.stage:
        case Stage.TODO:
            return None
        case Stage.PROPOSED:
            return f"{experiment.id} is proposed: y shows what it would run"
        case Stage.ENDED:
            return f"{experiment.id} has ended: r tries it again"
    return f"{experiment.id} has begun"


def _awaited(state: State, experiment: str) -> frozenset[str]:
    """All that an experiment waits for: its parent, those of its `when` and of the strategy before, and so on."""
    found: set[str] = set()
    open_ = [experiment]
    while open_:
        ahead = [name for name in _waits_for(state, state.experiments[open_.pop()]) if name not in found]
        found.update(ahead)
        open_ += ahead
    return frozenset(found)


def _waits_for(state: State, experiment: ExperimentState) -> Iterator[str]:
    if experiment.spec.based_on:
        yield experiment.spec.based_on
    if (when := experiment.spec.when) and not experiment.overruled:
        yield from (*when.all_of, *when.any_of)
    if group := waits_for(state, experiment):
        yield from group.members


def cannot_change(state: State, experiment: str) -> str | None:
    """Why the flags of an experiment cannot be changed, None if they can."""
    found = state.experiments[experiment]
    if found.stage is Stage.PROPOSED:
        return f"{experiment} is proposed: y shows what it would run"
    if found.stage is Stage.ENDED:
        return f"{experiment} has ended: n makes another one"
    if found.stage is not Stage.TODO or found.launches or found.prepared:
        return f"{experiment} has begun: n makes another one"
    return f"{experiment} is the baseline: n makes one on top of it" if found.spec.baseline else None


def cannot_give_up(state: State, experiment: str) -> str | None:
    """Why a person cannot make an experiment a dead end, None if that can be."""
    found = state.experiments[experiment]
    if found.stage in (Stage.PREPARING, Stage.RUNNING):
        return f"{experiment} runs: e ends its launch"
    if found.stage is Stage.PROPOSED:
        return f"{experiment} is proposed: s drops it"
    if found.spec.baseline:
        return f"{experiment} is the baseline: all others are compared with it"
    word = found.verdict.word if found.verdict else ""
    heirs = any(other.spec.based_on == experiment for other in state.experiments.values())
    if found.given_up or word in _DEAD or (word == "worse" and not heirs):
        return f"{experiment} is a dead end already: m adds a note"
    return f"{experiment} is kept: m notes what speaks against it" if word == "keep" else None


def cannot_take_back(state: State, experiment: str, written_at: float) -> str | None:
    """Why the note of a time (seconds since the epoch) cannot be taken back, None if it can."""
    known = any(note.at == written_at for note in state.experiments[experiment].notes)
    return None if known else f"{experiment} has no such note any more"


def cannot_tick(state: State, todo: int, done: bool) -> str | None:
    """Why something to do cannot be ticked off (or opened again), None if it can."""
    if not 0 <= todo < len(state.todos):
        return "there is no such thing to do"
    return f"it is {'done' if done else 'open'} already" if state.todos[todo].done == done else None
