"""What the JSON object of each kind of event says beside the words of its line. Units are in the names of the keys."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from agent.core import events as ev
from agent.core.metrics import RoundMetrics
from agent.core.model import Quote
from agent.core.state import State
from agent.core.verdict import counted
from agent.core.views.basics import board
from agent.report.data import plain
from agent.report.facts import board_line

Record = dict[str, Any]

SILENT: frozenset[type[ev.Event]] = frozenset(
    {
        ev.TaskProgressed,  # what a task does at the moment: its end is told
        ev.ToolUsed,
        ev.LlmSpent,
        ev.RoundRequested,  # the round itself is told
        ev.GuardRequested,
        ev.ResearchAdded,  # its task is told
        ev.TaskAbandoned,  # its end is told
    }
)
"""Events that are no line."""


def _fields(event: ev.Event, after: State) -> Record:
    """What the event itself says, where that is a few scalars."""
    kept = (field.name for field in fields(event) if field.name not in ("at", "experiment", "text"))
    return {name: _value(getattr(event, name)) for name in kept}


def _value(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else plain(value)


def _task_begun(event: Any, after: State) -> Record:
    task = event.task
    return {"task": task.id, "task_kind": task.kind, "title": task.title, "needed": task.needed}


def _task_ended(event: Any, after: State) -> Record:
    task, finding = after.tasks[event.task].task, event.finding
    return {
        "task": task.id,
        "task_kind": task.kind,
        "title": task.title,
        "status": event.status,
        "outcome": finding.outcome,
        "summary": finding.summary,
        "requires": dict(finding.requires),
        "quotes": _quotes(finding.quotes),
    }


def _ruled_out(event: Any, after: State) -> Record:
    return {"task": event.task, "reason": event.reason, "evidence": _quotes(event.evidence)}


def _prepare_begun(event: Any, after: State) -> Record:
    step = after.experiments[event.experiment].spec.prepare[event.step]
    return {"step": event.step + 1, "command": list(step.run)}


def _prepare_ended(event: Any, after: State) -> Record:
    return {"step": event.step + 1, "ok": event.ok, "summary": event.summary}


def _launch_asked(event: Any, after: State) -> Record:
    number = len(counted(after, after.experiments[event.experiment]))
    return {"launch": event.launch, "purpose": event.purpose, "number": number}


def _launch_begun(event: Any, after: State) -> Record:
    return {"launch": event.launch, "pid": event.pid, "port": event.port, "command": list(event.argv)}


def _ready(event: Any, after: State) -> Record:
    return {"launch": event.launch, "load_s": event.load_s, "flags": plain(event.flags)}


def _failed(event: Any, after: State) -> Record:
    why = event.failure
    return {
        "launch": event.launch,
        "phase": str(why.phase),
        "reason": why.reason,
        "category": why.category,
        "rank": why.rank,
        "exit_code": why.exit_code,
        "evidence": _quotes(why.evidence),
    }


_METRICS = {
    "output_throughput": "output_tok_per_s",
    "steady_output_throughput": "steady_output_tok_per_s",
    "request_throughput": "requests_per_s",
    "goodput": "goodput_requests_per_s",
    "ttft": "ttft_spread_ms",
    "tpot": "tpot_spread_ms",
    "itl": "itl_spread_ms",
    "chunk_gap": "chunk_gap_spread_ms",
    "e2e": "e2e_spread_ms",
    "prompt_len": "prompt_tokens_per_request",
    "output_len": "output_tokens_per_request",
    "cache_hit_rate": "cache_hit_fraction",
    "accept_length": "accept_length_tokens",
}
"""What the numbers of a round are called where a name has to say its unit."""


def _measured(event: Any, after: State) -> Record:
    metrics: RoundMetrics = event.metrics
    known = {name: value for name, value in plain(metrics).items() if value is not None}
    return {**_round(event, after), **renamed(known, _METRICS), "comparable": metrics.not_comparable is None}


def _round(event: Any, after: State) -> Record:
    return {"launch": event.launch, "workload": event.workload, "round": event.index + 1}


def _round_failed(event: Any, after: State) -> Record:
    return {**_round(event, after), "reason": event.reason}


def _guard(event: Any, after: State) -> Record:
    result = event.result
    score = {} if result is None else {"right": result.right.count("1"), "questions": len(result.right)}
    return {"launch": event.launch, "error": event.error, **score}


def _planned(event: Any, after: State) -> Record:
    verdicts = {"parent": _verdict(event.parent), "incumbent": _verdict(event.incumbent)}
    return {"of": event.of, "number": event.number, "cost_s": event.cost_s, **verdicts}


def _judged(event: Any, after: State) -> Record:
    row = next(row for row in board(after) if row.experiment == event.experiment)
    line = board_line(after, row)
    return {
        "parent": _verdict(event.parent),
        "incumbent": _verdict(event.incumbent),
        "place": line.place,
        "metric": after.playbook.objective.metric,
        "mean": plain(line.mean),
        "half_width_95": plain(line.half_width_95),
        "change_fraction": plain(line.change),
        "is_incumbent": line.incumbent,
    }


def _verdict(verdict: Any) -> Record:
    names = {"gain": "gain_fraction", "low": "low_fraction", "high": "high_fraction"}
    return renamed(plain(verdict), names)


def _added(event: Any, after: State) -> Record:
    return {"based_on": event.spec.based_on, "args": dict(event.spec.args), "env": dict(event.spec.env)}


def _changed(event: Any, after: State) -> Record:
    return {"args": dict(event.args), "env": dict(event.env), "why": event.why}


def _reopened(event: Any, after: State) -> Record:
    return {"reopened_as": event.spec.id}


def nothing(event: Any, after: State) -> Record:
    """The words of the line are all."""
    return {}


def _quotes(quotes: tuple[Quote, ...]) -> Any:
    return plain(quotes)


def renamed(record: Mapping[str, Any], names: Mapping[str, str]) -> Record:
    """The same with other names for some of its keys."""
    return {names.get(key, key): value for key, value in record.items()}


TOLD: Mapping[type[ev.Event], Callable[[Any, State], Record]] = {
    ev.Noted: nothing,
    ev.TaskRequested: _task_begun,
    ev.TaskFinished: _task_ended,
    ev.ExperimentRuledOut: _ruled_out,
    ev.ExperimentNotReached: _fields,
    ev.ExperimentCompleted: _fields,
    ev.ExperimentReopened: _reopened,
    ev.PrepareRequested: _prepare_begun,
    ev.PrepareFinished: _prepare_ended,
    ev.LaunchRequested: _launch_asked,
    ev.LaunchStarted: _launch_begun,
    ev.LaunchVoid: _fields,
    ev.PhaseEntered: _fields,
    ev.PhaseProgressed: _fields,
    ev.LoadDoubted: nothing,
    ev.ServerReady: _ready,
    ev.ServerFailed: _failed,
    ev.RoundMeasured: _measured,
    ev.RoundFailed: _round_failed,
    ev.RoundSpoilt: _round_failed,
    ev.GuardEnded: _guard,
    ev.LaunchPlanned: _planned,
    ev.VerdictReached: _judged,
    ev.StopRequested: _fields,
    ev.ServerStopped: _fields,
    ev.ApprovalGiven: _fields,
    ev.ProposalApproved: _fields,
    ev.ExperimentAdded: _added,
    ev.ExperimentSkipped: nothing,
    ev.ExperimentRetried: nothing,
    ev.LaunchAbandoned: _fields,
    ev.PauseSet: _fields,
    ev.InterruptRequested: _fields,
    ev.LinkLost: _fields,
    ev.LinkRestored: nothing,
    ev.TargetLost: _fields,
    ev.FactsRead: nothing,
    ev.PivotReached: _fields,
    ev.DeadEndReopened: _fields,
    ev.ExperimentMoved: _fields,
    ev.ExperimentChanged: _changed,
    ev.DeadEndMarked: _fields,
    ev.NoteWritten: nothing,
    ev.NoteTakenBack: nothing,
    ev.TodoAdded: nothing,
    ev.TodoTicked: _fields,
}
"""Events that are lines, with what their objects say beside the line's own words."""
