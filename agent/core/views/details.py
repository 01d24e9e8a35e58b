"""Everything there is to see of one experiment, as plain values: flags, research, loads, numbers, verdicts, its end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.core.model import Answer, Finding, LaunchConfig, PreflightOutcome, Quote, TaskStatus, Verdict
from agent.core.plan import approvals_missing, approvals_needed
from agent.core.smoke import real_launches
from agent.core.state import ExperimentState, Stage, State, TaskState
from agent.core.views.basics import BY_HAND, GLYPHS, Place, command_line, near_text, now_text, place_of, todo_reason
from agent.core.views.dead_ends import changed_since, known_notes, scope_rows
from agent.core.views.expected import Expected, expected_of
from agent.core.views.flags import FlagRow, arg_text, command_of, config_used, demanding, env_rows, flag_rows
from agent.core.views.guard import guard_of_experiment
from agent.core.views.loads import Load, loads_of
from agent.core.views.numbers import Measured, measured_of
from agent.core.views.strategy import strategy_lines
from agent.core.views.tasks import told_of
from agent.core.views.usual import LoadAgainst, loads_against
from agent.playbook.model import ReadEntry

_ABOVE = 3
"""Lines of a reading that are shown above the one that matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A preflight or a research task of the experiment; `summary` is its finding or what it does at the moment.

    The lines from `quotes[gist]` on say most: what was looked for, or what demands more flags. An `answer` of an LLM
    has claims in their place.
    """

    id: str
    kind: str
    title: str
    status: TaskStatus | Literal["running"]
    outcome: PreflightOutcome | None
    summary: str
    quotes: tuple[Quote, ...]
    gist: int
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEnd:
    """Why an idea is not to be pursued, what that was seen on, and what of it has changed since.

    One that is `by_hand` is a person's decision.
    """

    reason: str
    scope: tuple[tuple[str, str], ...]
    changed: tuple[str, ...]
    evidence: tuple[Quote, ...]
    reopened_as: str | None
    by_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A prepare step: the command as one would type it, the `ID@HASH` of its bytes, and how far it is."""

    number: int
    command: str
    creates: str
    needed: str
    status: Literal["done", "running", "failed", "approved", "waits for approval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLine:
    """What a person noted, `at_s` seconds after the session began."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """One experiment. `command` is what one would type; `started` tells whether it ever ran like this.

    `known` is what an earlier session found, where it was a dead end there.
    """

    experiment: str
    glyph: str
    word: str
    now: str
    why: str
    notes: tuple[NoteLine, ...]
    parent: str
    when: str
    incumbent: bool
    flags: tuple[FlagRow, ...]
    env: tuple[FlagRow, ...]
    steps: tuple[Step, ...]
    preflights: tuple[TaskView, ...]
    research: tuple[TaskView, ...]
    loads: tuple[Load, ...]
    against: tuple[LoadAgainst, ...]
    measured: tuple[Measured, ...]
    guard: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    expected: Expected | None
    strategy: tuple[str, ...]
    dead_end: DeadEnd | None
    known: tuple[str, ...]
    command: str
    started: bool


def details(state: State, name: str, now: float) -> Details:
    """The experiment `name` as it is at `now`."""
    experiment = state.experiments[name]
    parent = experiment.spec.based_on
    near = experiment.stage is Stage.NEAR
    told = experiment.planned if near and experiment.planned else experiment
    verdicts = tuple(dict.fromkeys(v for v in (told.parent, told.incumbent) if v))
    config, ended = config_used(state, experiment), experiment.stage is Stage.ENDED
    word = experiment.verdict.word if experiment.verdict else str(place_of(state, experiment)).lower()
    word = "near" if near else BY_HAND if experiment.given_up else word
    notes = tuple(NoteLine(at_s=note.at - state.started_at, text=note.text) for note in experiment.notes)
    return Details(
        experiment=name,
        glyph=GLYPHS.get(word, "●"),
        word=word,
        now=near_text(state, experiment) if near else "" if ended else now_text(state, experiment),
        why=experiment.spec.why,
        notes=notes,
        parent=parent or "",
        when="" if ended else todo_reason(state, experiment),
        incumbent=state.incumbent == name,
        flags=flag_rows(state, experiment, config),
        env=env_rows(state, experiment, config),
        steps=tuple(_steps(state, experiment)),
        preflights=tuple(_tasks(state, experiment, preflights=True)),
        research=tuple(_tasks(state, experiment, preflights=False)),
        loads=loads_of(state, experiment, now),
        against=loads_against(state, experiment, now),
        measured=tuple(measured_of(state, experiment)),
        guard=guard_of_experiment(state, experiment),
        verdicts=verdicts,
        expected=expected_of(state, experiment),
        strategy=strategy_lines(state, name),
        dead_end=_dead_end(state, experiment, config),
        known=known_notes(state, experiment),
        command=command_of(state, name),
        started=any(launch.argv for launch in real_launches(state, experiment)),
    )


def _steps(state: State, experiment: ExperimentState) -> Iterator[Step]:
    needed = approvals_needed(state.playbook, experiment.spec)
    missing = approvals_missing(state.playbook, experiment.spec, state.approved)
    for index, (step, approval) in enumerate(zip(experiment.spec.prepare, needed, strict=True)):
        status: Literal["done", "running", "failed", "approved", "waits for approval"]
        if index < experiment.prepared:
            status = "done"
        elif index == experiment.prepared and experiment.stage is Stage.PREPARING:
            status = "running"
        elif index == experiment.prepared and experiment.verdict and experiment.verdict.word == "failed":
            status = "failed"
        else:
            status = "waits for approval" if approval in missing else "approved"
        yield Step(
            number=index + 1,
            command=command_line(step.run),
            creates=step.creates or "",
            needed=approval,
            status=status,
        )


def _tasks(state: State, experiment: ExperimentState, *, preflights: bool) -> Iterator[TaskView]:
    for task in state.tasks.values():
        if task.task.experiment == experiment.id and task.task.is_check is preflights:
            yield task_view(task)


def task_view(task: TaskState) -> TaskView:
    """One background task."""
    finding = task.finding
    return TaskView(
        id=task.task.id,
        kind=task.task.kind,
        title=task.task.title,
        status=task.status or "running",
        outcome=finding.outcome if finding else None,
        summary=told_of(task),
        quotes=finding.quotes if finding else (),
        gist=_gist(task, finding),
        answer=finding.answer if finding else None,
    )


def _gist(task: TaskState, finding: Finding | None) -> int:
    """Where the lines begin that say most: a little above what was wanted, and above what demands flags."""
    if finding is None or not isinstance(task.task.entry, ReadEntry):
        return 0
    wanted = next((quote for quote in finding.quotes if task.task.entry.task.around in quote.text), None)
    for flag, value in finding.requires.items():
        if demand := demanding(finding.quotes, flag, arg_text(value)):
            wanted = demand
            break
    return max(0, finding.quotes.index(wanted) - _ABOVE) if wanted else 0


def _dead_end(state: State, experiment: ExperimentState, config: LaunchConfig) -> DeadEnd | None:
    verdict = experiment.verdict
    if verdict is None or place_of(state, experiment) is not Place.DEAD_ENDS:
        return None
    host = state.host.name + (" (simulated)" if state.host.simulated else "")
    return DeadEnd(
        reason=experiment.given_up or verdict.reason,
        scope=(("host", host), *scope_rows(experiment.scope, command_line(config.command))),
        changed=changed_since(state, experiment),
        evidence=experiment.evidence,
        reopened_as=experiment.reopened_as,
        by_hand=bool(experiment.given_up),
    )
