"""All background tasks, in order and in full: what the research view shows."""

from dataclasses import dataclass
from typing import Any, Literal

from agent.core.model import Answer, CallTimes, PreflightOutcome, Quote, Spent, TaskStatus
from agent.core.state import State, TaskState
from agent.core.views.basics import duration
from agent.core.views.flags import arg_text
from agent.playbook.model import PreflightEntry, ResearchEntry

RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """A task in the list; `told` is what it found or does at the moment, `elapsed` a duration in words.

    `group` is RUNNING or the experiment's id.
    """

    id: str
    group: str
    experiment: str
    kind: str
    title: str
    status: TaskStatus | Literal["running"]
    outcome: PreflightOutcome | None
    told: str
    elapsed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A task in full: what was wanted, what it found, every quote, and the flags that it says are demanded.

    `answer` is an LLM's; `spent` what the question has used, in words.
    """

    line: TaskLine
    needed: bool
    gpu: bool
    entry: tuple[tuple[str, str], ...]
    requires: tuple[tuple[str, str], ...]
    quotes: tuple[Quote, ...]
    answer: Answer | None
    spent: str


def task_lines(state: State, now: float) -> tuple[TaskLine, ...]:
    """All tasks: the running ones first, then those of each experiment, in the order in which they began."""
    order = {RUNNING: -1} | {name: place for place, name in enumerate(state.experiments)}
    made = [_line(task, now) for task in state.tasks.values()]
    return tuple(sorted(made, key=lambda line: order[line.group]))


def transcript(state: State, task: str, now: float) -> Transcript:
    """One task in full."""
    found = state.tasks[task]
    finding = found.finding
    return Transcript(
        line=_line(found, now),
        needed=found.task.needed,
        gpu=found.task.gpu,
        entry=entry_facts(found.task.entry),
        requires=tuple((f"--{flag}", arg_text(value)) for flag, value in finding.requires.items()) if finding else (),
        quotes=finding.quotes if finding else (),
        answer=finding.answer if finding else None,
        spent=_spent_text(found.spent),
    )


def _spent_text(spent: Spent | None) -> str:
    if spent is None:
        return ""
    cost = "cost unknown" if spent.cost_usd is None else f"${spent.cost_usd:.2f}"
    return f"{spent.calls} tool calls, {spent.input_tokens:,} + {spent.output_tokens:,} tokens, {cost}"


def entry_facts(entry: PreflightEntry | ResearchEntry | CallTimes | None) -> tuple[tuple[str, str], ...]:
    """What the playbook says, name by name, without what it leaves at its default."""
    if entry is None:
        return ()
    if isinstance(entry, CallTimes):
        more = {"per layer": entry.per_layer, "run": entry.run}
        return (("bytes", _text(entry.sizes)), *((name, _text(value)) for name, value in more.items() if value))
    whole: dict[str, Any] = entry.model_dump(by_alias=True, exclude_defaults=True)
    kind = next(info.alias for info in type(entry).model_fields.values() if info.alias) or ""
    wanted = whole.get(kind)
    if not isinstance(wanted, dict):
        return ((kind, str(wanted)),)
    return tuple((name, _text(value)) for name, value in wanted.items())


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def told_of(task: TaskState) -> str:
    """What a task found, or does at the moment; of one that is out of date that, too."""
    told = task.finding.summary if task.finding else task.action
    return f"before the flags were changed: {told}" if task.stale else told


def _line(task: TaskState, now: float) -> TaskLine:
    status: TaskStatus | Literal["running"] = task.status or "running"
    end = task.ended_at if task.ended_at is not None else max(now, task.started_at)
    return TaskLine(
        id=task.task.id,
        group=RUNNING if task.status is None else task.task.experiment,
        experiment=task.task.experiment,
        kind=task.task.kind,
        title=task.task.title,
        status=status,
        outcome=task.finding.outcome if task.finding else None,
        told=told_of(task),
        elapsed=duration(end - task.started_at),
    )
