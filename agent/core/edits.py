"""How the state changes by what a person does to the plan. What may be done is in `edit_rules`."""

from dataclasses import replace
from typing import Any

from agent.core import events as ev
from agent.core.model import Verdict
from agent.core.state import ExperimentState, Note, Stage, State, TaskState, Todo
from agent.playbook.model import VerdictWord


def moved(state: State, event: ev.ExperimentMoved) -> State:
    """Two experiments in line change places; all others stay where they are."""
    swapped = {event.experiment: event.past, event.past: event.experiment}
    order = (swapped.get(name, name) for name in state.experiments)
    return replace(state, experiments={name: state.experiments[name] for name in order})


def changed(state: State, event: ev.ExperimentChanged) -> State:
    """It has other flags, and so has what is based on it: what was found out about the former ones decides nothing."""
    found = state.experiments[event.experiment]
    spec = found.spec.model_copy(update={"args": event.args, "env": event.env, "why": event.why})
    same = (spec.args, spec.env) == (found.spec.args, found.spec.env)
    state = state.with_experiment(event.experiment, spec=spec)
    if same:
        return state
    state = state.with_experiment(event.experiment, added={})
    heirs = _heirs(state, event.experiment)
    for name in heirs:
        state = state.with_experiment(name, revision=state.experiments[name].revision + 1)
    return replace(state, tasks={name: _outdated(state, task, heirs) for name, task in state.tasks.items()})


def _heirs(state: State, experiment: str) -> list[str]:
    """The experiment, and all that have its flags."""
    names = [experiment]
    for name in names:
        names += [e.id for e in state.experiments.values() if e.spec.based_on == name]
    return names


def _outdated(state: State, task: TaskState, heirs: list[str]) -> TaskState:
    """What a person or a playbook asked in words was answered in words: the answer stays one."""
    name = task.task.experiment
    asked = task.task.kind == "ask" or task.task.entry in state.experiments[name].asked
    return task if asked or name not in heirs else replace(task, stale=True)


def dead_end_marked(state: State, event: ev.DeadEndMarked) -> State:
    """A measured one keeps its verdict; of one that never ran there is none but this."""
    experiment = state.experiments[event.experiment]
    if experiment.stage is not Stage.ENDED:
        state = ended_early(state, event.experiment, _by_hand(event.reason), "given up by hand")
    return state.with_experiment(event.experiment, given_up=event.reason)


def _by_hand(reason: str) -> str:
    return f"by hand: {reason}"


def was_given_up_in_line(experiment: ExperimentState) -> bool:
    """Whether an experiment stood in line when a person gave it up: taken back, it stands there as it did."""
    return bool(experiment.given_up) and experiment.reason == _by_hand(experiment.given_up)


def skipped(state: State, event: ev.ExperimentSkipped) -> State:
    """It ends, without another launch."""
    return ended_early(state, event.experiment, "skipped by hand", "no further launch is wanted")


def ended_early(state: State, experiment: str, unlaunched: str, measured: str) -> State:
    """The state where one that waits, to be launched or for another launch, does not wait any more.

    `unlaunched` is the reason of one that was not measured, `measured` is added to what was measured.
    """
    if planned := state.experiments[experiment].planned:
        reason = f"{planned.parent.reason}; {measured}"
        parent = replace(planned.parent, reason=reason)
        return state.with_experiment(
            experiment, stage=Stage.ENDED, parent=parent, incumbent=planned.incumbent, reason=reason
        )
    return end_unlaunched(state, experiment, "not-reached", unlaunched)


def end_unlaunched(state: State, experiment: str, word: VerdictWord, reason: str, **changes: Any) -> State:
    """The state where an experiment ends with a verdict that nothing was measured for."""
    against = state.experiments[experiment].spec.based_on or experiment
    verdict = Verdict(word=word, against=against, reason=reason)
    return state.with_experiment(
        experiment, stage=Stage.ENDED, parent=verdict, incumbent=verdict, reason=reason, **changes
    )


def note_written(state: State, event: ev.NoteWritten) -> State:
    """One note more."""
    notes = (*state.experiments[event.experiment].notes, Note(at=event.at, text=event.text))
    return state.with_experiment(event.experiment, notes=notes)


def note_taken_back(state: State, event: ev.NoteTakenBack) -> State:
    """One note less."""
    notes = tuple(note for note in state.experiments[event.experiment].notes if note.at != event.written_at)
    return state.with_experiment(event.experiment, notes=notes)


def todo_added(state: State, event: ev.TodoAdded) -> State:
    """One thing more to do."""
    return replace(state, todos=(*state.todos, Todo(text=event.text)))


def todo_ticked(state: State, event: ev.TodoTicked) -> State:
    """It is done, or not yet after all."""
    todos = list(state.todos)
    todos[event.todo] = replace(todos[event.todo], done=event.done)
    return replace(state, todos=tuple(todos))
