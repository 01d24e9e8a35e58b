"""Makes the report of a state. Nothing here reads a clock: `now` is given."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from statistics import fmean
from typing import Any

from agent.core.model import RoundMetrics
from agent.core.scope import READ
from agent.core.state import ExperimentState, Launch, State, TaskState
from agent.core.verdict import interval95
from agent.core.views.basics import Row, board, measured
from agent.core.views.board import board_view
from agent.core.views.details import details, task_view
from agent.core.views.flags import arg_text, command_of
from agent.core.views.loads import loads_of
from agent.core.views.numbers import in_order
from agent.core.views.strategy import strategies
from agent.report.lane import Span
from agent.report.ledger import ledger_of
from agent.report.model import Best, BoardLine, Head, LaunchFacts, Mean, Measured, Report, TaskFacts, Trial

UNITS = {"output_throughput": "tok/s", "request_throughput": "req/s", "ttft_ms": "ms", "tpot_ms": "ms"}
"""The metrics whose means are reported for every workload, whatever the objective is."""


def report_of(state: State, lane: tuple[Span, ...], *, now: float, live: bool) -> Report:
    """The report of a session at `now` (seconds since the epoch), with its server lane.

    `live` tells that some tunebot runs it; one that has not ended otherwise was cut off.
    """
    tasks = tuple(_task(state, task, now) for task in state.tasks.values())
    rows = board(state)
    return Report(
        head=_head(state, now, live),
        board=tuple(board_line(state, row) for row in rows),
        todos=state.todos,
        strategies=tuple(strategies(state)),
        best=best_of(state),
        trials=tuple(_trial(state, row, now) for row in rows),
        tasks=tasks,
        lane=lane,
        ledger=ledger_of(state, lane, tasks, now - state.started_at),
    )


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A value with every text in it changed: texts, tuples, and dataclasses of those. Words of an enum stay."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        return tuple(with_texts(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: with_texts(getattr(value, f.name), change) for f in fields(value)})
    return value


def _head(state: State, now: float, live: bool) -> Head:
    objective = state.playbook.objective
    read = state.facts.get("", {})
    kinds = Counter(f"{gpu.name} (SM{gpu.sm_major}{gpu.sm_minor}), driver {gpu.driver}" for gpu in state.host.gpus)
    return Head(
        session=state.session,
        playbook=state.playbook.name,
        host=state.host.name,
        simulated=state.host.simulated,
        gpus=tuple(f"{count} x {kind}" for kind, count in kinds.items()),
        host_facts=tuple(f"{name} {read[name]}" for name in READ if name in read),
        began_at=state.started_at,
        now=now,
        ending=state.ending or ("still running" if live else "cut off"),
        resumes=state.resumes,
        metric=objective.metric,
        unit=board_view(state)[0].unit,
        workload=objective.workload,
        min_gain=objective.min_gain,
    )


def board_line(state: State, row: Row) -> BoardLine:
    """A row of the board in numbers."""
    baseline = state.baseline
    experiment = state.experiments[row.experiment]
    ours, theirs = measured(state, experiment), measured(state, baseline)
    compares = ours and theirs and experiment is not baseline
    return BoardLine(
        place=str(row.place),
        experiment=row.experiment,
        glyph=row.glyph,
        word=row.word,
        incumbent=row.incumbent,
        mean=fmean(ours) if ours else None,
        half_width_95=interval95(ours) if ours else None,
        change=fmean(ours) / fmean(theirs) - 1 if compares else None,
        reason=row.reason,
    )


def best_of(state: State) -> Best | None:
    """The incumbent, where it was launched by a command."""
    name = state.incumbent
    if name is None or not any(state.launches[one].argv for one in state.experiments[name].launches):
        return None
    return Best(experiment=name, command=command_of(state, name))


def _trial(state: State, row: Row, now: float) -> Trial:
    experiment = state.experiments[row.experiment]
    return Trial(
        place=str(row.place),
        details=details(state, row.experiment, now),
        parent=experiment.parent,
        incumbent=experiment.incumbent,
        evidence=experiment.evidence,
        launches=tuple(_launches(state, experiment, now)),
    )


def _launches(state: State, experiment: ExperimentState, now: float) -> Iterator[LaunchFacts]:
    numbers = {name: number for number, name in enumerate(state.launches, 1)}
    for name, load in zip(experiment.launches, loads_of(state, experiment, now), strict=True):
        launch = state.launches[name]
        yield LaunchFacts(
            id=name,
            number=numbers[name],
            load=load,
            load_s=launch.load_s,
            reason=launch.failure.reason if launch.failure else launch.round_error or "",
            measured=tuple(_measured(state, launch)),
        )


def _measured(state: State, launch: Launch) -> Iterator[Measured]:
    for workload in state.playbook.workloads:
        rounds = tuple(r.metrics for r in in_order(launch, workload.name))
        if rounds:
            means = tuple(_mean(rounds, metric) for metric in UNITS)
            repeated = tuple(
                f"round {one.index + 1}: {one.metrics.not_comparable}"
                for one in launch.spoilt
                if one.workload == workload.name
            )
            yield Measured(workload=workload.name, rounds=rounds, means=means, repeated=repeated)


def _mean(rounds: Sequence[RoundMetrics], metric: str) -> Mean:
    values = [float(getattr(one, metric)) for one in rounds]
    half = interval95(values) if len(values) > 1 else None
    return Mean(metric=metric, unit=UNITS[metric], mean=fmean(values), half_width_95=half)


def _task(state: State, task: TaskState, now: float) -> TaskFacts:
    view, finding = task_view(task), task.finding
    return TaskFacts(
        id=view.id,
        experiment=task.task.experiment,
        kind=view.kind,
        title=view.title,
        status=view.status,
        outcome=view.outcome,
        summary=view.summary,
        requires=tuple((f"--{flag}", arg_text(value)) for flag, value in finding.requires.items()) if finding else (),
        quotes=view.quotes,
        gist=view.gist,
        answer=finding.answer if finding else None,
        spent=task.spent,
        start_s=task.started_at - state.started_at,
        end_s=(now if task.ended_at is None else task.ended_at) - state.started_at,
    )
