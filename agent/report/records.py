"""A session as JSON objects, one a change, as `--json` prints them. `docs/headless.md` says what each key is."""

import re
from datetime import UTC, datetime

from agent.core import events as ev
from agent.core.needs import Need
from agent.core.saved import paid_loads, saved_loads
from agent.core.state import State
from agent.core.views.asked import asked_facts, asked_text
from agent.core.views.basics import board
from agent.core.views.lines import tell
from agent.report.data import plain
from agent.report.facts import best_of, board_line
from agent.report.record_facts import TOLD, Record, nothing, renamed

FORMAT = 1
"""Grows when a key changes its meaning or goes away; new keys and kinds may come at any time."""


def record_of(before: State, event: ev.Event, after: State) -> Record | None:
    """The object of an event that is neither the first nor the last one; None where it is no line."""
    told = tell(before, event, after)
    if told is None:
        return None
    subject, text = told
    facts = TOLD.get(type(event), nothing)(event, after)
    head = _head(_kind(type(event)), event.at, after)
    return {**head, "experiment": subject if subject in after.experiments else None, "text": text, **facts}


def begun(event: ev.SessionStarted | ev.SessionResumed, after: State) -> Record:
    """The first object of a run of tunebot."""
    host, objective = after.host, after.playbook.objective
    return {
        **_head(_kind(type(event)), event.at, after),
        "format": FORMAT,
        "session": after.session,
        "playbook": after.playbook.name,
        "tunebot": event.version,
        "host": host.name,
        "simulated": host.simulated,
        "gpus": [gpu.name for gpu in host.gpus],
        "experiments": list(after.experiments),
        "objective": {
            "metric": objective.metric,
            "workload": objective.workload,
            "min_gain_fraction": objective.min_gain,
        },
    }


def asked(need: Need, at: float, state: State) -> Record:
    """The object of something that began to wait for a person at `at` (seconds since the epoch)."""
    head = _head("needs-person", at, state)
    return {**head, "experiment": need.experiment, "text": asked_text(need), **asked_facts(need)}


def ended(event: ev.SessionEnded, after: State) -> Record:
    """The last object: the board in numbers, and the best launch command."""
    serving = after.launches[event.serving] if event.serving else None
    best = best_of(after)
    return {
        **_head(_kind(type(event)), event.at, after),
        "ending": event.ending,
        "board": [renamed(plain(board_line(after, row)), {"change": "change_fraction"}) for row in board(after)],
        "loads": len(paid_loads(after)),
        "loads_saved": len(saved_loads(after)),
        "best": best and {"experiment": best.experiment, "launch_command": best.command},
        "serving": serving and {"launch": serving.id, "experiment": serving.experiment, "port": serving.port},
    }


def _head(kind: str, at: float, state: State) -> Record:
    return {"kind": kind, "at": iso(at), "elapsed_s": round(at - state.started_at, 3)}


def iso(at: float) -> str:
    """Seconds since the epoch as `2026-11-30T10:15:00.250Z`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kind(event: type[ev.Event]) -> str:
    """`round-measured` of RoundMeasured."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", event.__name__).lower()
