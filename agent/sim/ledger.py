"""The ledger: what really happened on a simulated host, written by the simulated processes themselves.

One JSON object a line; `kind` says what it is, `t` is Unix time in seconds, `pid` the writer. Kinds: `launch`, `rate`
(true tokens/s drawn for a launch), `rank_start`, `rank_end`, `phase`, `ready`, `request`, `flush`, `signal`, `exit`,
`pip`, `venv`. Tests compare tunebot's claims with it; tunebot itself never reads it.
"""

import json
from pathlib import Path
from typing import Any

from agent.sim.procs import start_time


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """All records so far, oldest first; none if nothing ran yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def launches(path: Path) -> list[dict[str, Any]]:
    """One record a launch: its `launch` record with `tok_s` (None if it never resolved), `ready` (Unix time or None)
    and `exit` (code or None) filled in."""
    found: dict[int, dict[str, Any]] = {}
    order: list[dict[str, Any]] = []
    for record in read_ledger(path):
        kind, pid = record["kind"], record["pid"]
        if kind == "launch":
            found[pid] = {**record, "tok_s": None, "ready": None, "exit": None}
            order.append(found[pid])
        elif pid in found:
            if kind == "rate":
                found[pid]["tok_s"] = record["tok_s"]
            elif kind == "ready":
                found[pid]["ready"] = record["t"]
            elif kind == "exit":
                found[pid]["exit"] = record["code"]
    return order


def alive_pids(path: Path) -> list[int]:
    """Pids of launchers and ranks in the ledger that are still the processes that wrote it."""
    started = {r["pid"]: r["start"] for r in read_ledger(path) if r["kind"] in ("launch", "rank_start")}
    return [pid for pid, start in started.items() if start_time(pid) == start]
