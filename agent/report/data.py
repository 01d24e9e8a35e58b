"""A report as one JSON object. `docs/report.md` says what each key is, with its unit."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

from agent.core.views.strategy import Strategy
from agent.report.model import LaunchFacts, Report, Trial

FORMAT = 1
"""Grows when a key changes its meaning or goes away; new keys may come at any time."""


def as_json(report: Report) -> dict[str, Any]:
    """Every fact of a report as JSON-ready values; what is not known is None."""
    head = plain(report.head)
    objective = {key: head.pop(key) for key in ("metric", "unit", "workload", "min_gain")}
    return {
        "format": FORMAT,
        **head,
        "objective": objective,
        "best": report.best and {"experiment": report.best.experiment, "launch_command": report.best.command},
        "board": plain(report.board),
        "todos": plain(report.todos),
        "strategies": [_strategy(strategy, report.head.began_at) for strategy in report.strategies],
        "experiments": [_trial(trial) for trial in report.trials],
        "tasks": plain(report.tasks),
        "timeline": [
            {**plain(span.act), "start_s": plain(span.start_s), "end_s": plain(span.end_s)} for span in report.lane
        ],
        "ledger": {**plain(report.ledger), "tasks": dict(report.ledger.tasks)},
    }


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as arrays. A number that JSON does not have is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _trial(trial: Trial) -> dict[str, Any]:
    about = trial.details
    dead = about.dead_end
    return {
        "id": about.experiment,
        "place": trial.place,
        "word": about.word,
        "based_on": about.parent or None,
        "why": about.why,
        "notes": plain(about.notes),
        "command": about.command,
        "changes": plain(trial.changes),
        "prepare": [{"command": step.command, "status": step.status} for step in about.steps],
        "expected": plain(about.expected),
        "verdicts": {"parent": plain(trial.parent), "incumbent": plain(trial.incumbent)},
        "evidence": plain(trial.evidence),
        "dead_end": dead
        and {
            "reason": dead.reason,
            "scope": dict(dead.scope),
            "changed": list(dead.changed),
            "reopened_as": dead.reopened_as,
        },
        "launches": [_launch(launch) for launch in trial.launches],
    }


def _strategy(strategy: Strategy, began_at: float) -> dict[str, Any]:
    facts: dict[str, Any] = plain(strategy)
    at = facts.pop("at")
    return {**facts, "given_up_s": None if at is None else plain(at - began_at)}


def _launch(launch: LaunchFacts) -> dict[str, Any]:
    return {
        "id": launch.id,
        "number": launch.number,
        "purpose": launch.load.purpose,
        "stage": launch.load.stage,
        "load_s": plain(launch.load_s),
        "reason": launch.reason,
        "phases": plain(launch.load.phases),
        "measured": plain(launch.measured),
    }
