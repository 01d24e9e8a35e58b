"""The background lane: which task starts next, and what a finding decides about the experiment that it is for."""

from collections.abc import Callable, Iterator, Mapping

from agent.core import events as ev
from agent.core.model import CallTimes, Task, TaskKind
from agent.core.plan import config_of, lineage
from agent.core.state import ExperimentState, Stage, State
from agent.core.terms import task_of_term
from agent.core.views.briefing import briefing
from agent.playbook.model import AskEntry, GrepEntry, PreflightEntry, ProbeEntry, ReadEntry, ResearchEntry
from agent.text import one_line

BACKGROUND_TASKS = 4
"""How many background tasks run at a time."""


def rule_out(state: State) -> ev.Event | None:
    """A check that says so ends its experiment before the launch."""
    for task in state.tasks.values():
        experiment = state.experiments[task.task.experiment]
        if experiment.stage is not Stage.TODO or experiment.overruled or task.stale or not task.task.is_check:
            continue
        if task.finding and task.finding.outcome in ("fails", "no-effect"):
            word = "would fail" if task.finding.outcome == "fails" else "would have no effect"
            return ev.ExperimentRuledOut(
                at=state.now,
                experiment=experiment.id,
                task=task.task.id,
                reason=f"{word}: {task.finding.summary}",
                evidence=task.finding.quotes,
            )
    return None


def complete(state: State) -> ev.Event | None:
    """What the source demands is added where the playbook says so; what an LLM says never is by itself."""
    if state.playbook.accept != "resolver":
        return None
    for task in state.tasks.values():
        if task.stale or not task.finding or not task.finding.requires or task.task.kind == "ask":
            continue
        experiment = state.experiments[task.task.experiment]
        if experiment.stage is not Stage.TODO:
            continue
        present = config_of(state, experiment.id).args
        adds = {flag: value for flag, value in task.finding.requires.items() if present.get(flag) != value}
        if adds:
            return ev.ExperimentCompleted(at=state.now, experiment=experiment.id, adds=adds, task=task.task.id)
    return None


_TITLES: Mapping[type, tuple[TaskKind, Callable[..., str]]] = {
    GrepEntry: ("grep", lambda e: e.task.pattern),
    ReadEntry: ("read", lambda e: f"{e.task.file} around {e.task.around}"),
    AskEntry: ("ask", lambda e: e.task),
    ProbeEntry: ("probe", lambda e: one_line(" ".join(e.task.run))),
}


def _task_id(experiment: ExperimentState, key: str, entry: object = None) -> str:
    """`idea/check1`, or `idea/check1.2` where the flags of the experiment were changed once: it is looked at again.

    A question to an LLM is in words and costs money: it is asked once.
    """
    again = experiment.revision and not isinstance(entry, AskEntry)
    return f"{experiment.id}/{key}" + (f".{experiment.revision + 1}" if again else "")


def _flags_task(state: State, experiment: ExperimentState) -> Task | None:
    """Its flags against the source of its server, where the playbook says where that is."""
    server = state.playbook.server
    overrides = (link.spec.server for link in lineage(state.experiments, experiment.id))
    # Asked for each experiment at every decision: its whole configuration is made only where there is a task.
    sources = (server.source, *(override.source or {} for override in overrides if override))
    if experiment.spec.baseline == "attach" or not any(server.kind in source for source in sources):
        return None
    return Task(
        id=_task_id(experiment, "flags"),
        experiment=experiment.id,
        kind="flags",
        title=" ".join(f"--{flag}" for flag in experiment.spec.args) or "those that it inherits",
        entry=None,
        config=config_of(state, experiment.id),
        needed=True,
    )


def _task_of(state: State, experiment: ExperimentState, name: str, entry: PreflightEntry | ResearchEntry) -> Task:
    kind, title = _TITLES.get(type(entry), ("preflight", lambda e: _check_title(e)))
    return Task(
        id=name,
        experiment=experiment.id,
        kind=kind,
        title=title(entry),
        entry=entry,
        config=config_of(state, experiment.id),
        needed=getattr(entry, "needed", True),
        gpu=isinstance(entry, ProbeEntry) and entry.task.gpu,
        board=briefing(state) if kind == "ask" else "",
    )


_SUBJECTS = ("table", "name", "module", "exists", "absent")


def _check_title(entry: PreflightEntry) -> str:
    """`table-has-key TABLE`: what is checked, by its kind and the name that says most."""
    check = entry.check
    subject = next((value for name in _SUBJECTS if (value := getattr(check, name, None))), "")
    return f"{type(entry).model_fields['check'].alias} {subject}".rstrip()


def _term_tasks(state: State) -> Iterator[Task]:
    """What measures terms of the cost model, with the GPUs to itself: only before the baseline's first launch."""
    baseline = state.baseline
    ahead = baseline.stage is Stage.TODO and baseline.spec.baseline != "attach" and _is_prepared(state, baseline)
    for name, term in state.playbook.terms.items() if ahead else ():
        task = task_of_term(state, name)
        if term.measured_by is None or task in state.tasks:
            continue
        sizes = tuple(size for size in (term.bytes, term.bytes_verify) if size is not None)
        yield Task(
            id=task,
            experiment=baseline.id,
            kind="probe",
            title=f"{term.measured_by} of {' and '.join(map(str, sizes))} bytes",
            entry=CallTimes(sizes=sizes, run=term.run, per_layer=term.per_layer),
            config=config_of(state, baseline.id),
            needed=True,
            gpu=True,
        )


def _is_prepared(state: State, experiment: ExperimentState) -> bool:
    """Whether the environment it would run in exists: nothing can be read of one that is not built yet."""
    return all(link.prepared == len(link.spec.prepare) for link in lineage(state.experiments, experiment.id))


def _unstarted(state: State) -> Iterator[Task]:
    """What measures terms; checks of all experiments ahead, then the research, in the playbook's order."""
    yield from _term_tasks(state)
    prepared = [e for e in state.experiments.values() if _is_prepared(state, e)]
    for experiment in (e for e in prepared if e.stage is Stage.TODO):
        if _task_id(experiment, "flags") not in state.tasks and (task := _flags_task(state, experiment)):
            yield task
        for index, check in enumerate(experiment.spec.preflight):
            if (name := _task_id(experiment, f"check{index + 1}")) not in state.tasks:
                yield _task_of(state, experiment, name, check)
    # What is asked about the experiment that loads right now is of use for the next ones.
    for experiment in prepared:
        planned = experiment.spec.research if experiment.stage in (Stage.TODO, Stage.RUNNING) else ()
        named = [(_task_id(experiment, str(n), entry), entry) for n, entry in enumerate(planned, 1)]
        named += [(f"{experiment.id}/asked{n}", entry) for n, entry in enumerate(experiment.asked, 1)]
        for name, entry in named:
            if name not in state.tasks:
                yield _task_of(state, experiment, name, entry)


def running_tasks(state: State) -> list[Task]:
    """The tasks that run now."""
    return [t.task for t in state.tasks.values() if t.status is None]


def start_task(state: State) -> ev.Event | None:
    """The next background task, as far as the machine may be used for it."""
    running = running_tasks(state)
    if state.measuring or len(running) >= BACKGROUND_TASKS:
        return None
    for task in _unstarted(state):
        if not task.gpu:
            return ev.TaskRequested(at=state.now, task=task)
        # A probe that needs a GPU has the machine to itself: nothing loaded, no other such probe.
        if state.current is None and not any(other.gpu for other in running):
            return ev.TaskRequested(at=state.now, task=task)
    return None


def must_wait(state: State, experiment: ExperimentState) -> bool:
    """Its preflights and the answers that it needs come first; so does a probe that has a GPU."""
    unanswered = [*_unstarted(state), *running_tasks(state)]
    return any(task.gpu or (task.needed and task.experiment == experiment.id) for task in unanswered)
