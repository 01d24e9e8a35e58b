"""The ledger: what really happened on a simulated host, written by the simulated processes themselves.

One JSON object a line; `kind` says what it is, `t` is Unix time in seconds, `pid` the writer. Kinds: `launch`, `rate`
(true tokens/s drawn for a launch, and what a step of it is made of), `rank_start`, `rank_end`, `phase`, `ready`,
`request`, `flush`, `signal`, `exit`, `pip`, `venv`, `allreduce` (the benchmark). Tests compare tunebot's claims with
it; tunebot itself never reads it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Span:
    """Something that took the host's time, from `start` to `end` (Unix time in seconds).

    `kind` is `launch` (all of a load; `name` is ready or failed), `phase` (a part of it), `request` (its prompt's first
    letters), `stop` (the signal), or `prepare` (what was made or installed) and `allreduce`; `launch` is the pid of the
    launcher, None for the last two.
    """

    kind: str
    name: str
    start: float
    end: float
    launch: int | None


def spans(path: Path) -> list[Span]:
    """All that took time, by its start: with it the time of a campaign can be held against that of its steps."""
    return sorted((*_loads(path), *_spans(read_ledger(path))), key=lambda span: span.start)


def _loads(path: Path) -> Iterator[Span]:
    ends = {record["pid"]: float(record["t"]) for record in read_ledger(path) if record["kind"] == "exit"}
    for launch in launches(path):
        end = launch["ready"] or ends.get(launch["pid"])
        if end is not None:
            yield Span("launch", "ready" if launch["ready"] else "failed", launch["t"], end, launch["pid"])


def _spans(records: list[dict[str, Any]]) -> Iterator[Span]:
    asked: dict[int, dict[str, Any]] = {}
    for record in records:
        kind, pid, end = record["kind"], record["pid"], float(record["t"])
        start = float(record.get("start") or end)
        if kind == "phase":
            yield Span("phase", record["phase"], start, record["end"], record.get("launcher", pid))
        elif kind == "request":
            yield Span("request", record["prompt"], start, record["end"], pid)
        elif kind == "signal":
            asked.setdefault(pid, record)
        elif kind == "exit" and pid in asked:
            yield Span("stop", asked[pid]["signal"], asked[pid]["t"], end, pid)
        elif kind in ("pip", "venv"):
            yield Span("prepare", record.get("requirement") or record["folder"], start, end, None)
        elif kind == "allreduce":
            yield Span("allreduce", f"{record['ranks']} ranks", start, end, None)


def alive_pids(path: Path) -> list[int]:
    """Pids of launchers and ranks in the ledger that are still the processes that wrote it."""
    started = {r["pid"]: r["start"] for r in read_ledger(path) if r["kind"] in ("launch", "rank_start")}
    return [pid for pid, start in started.items() if start_time(pid) == start]
