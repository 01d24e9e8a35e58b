"""A recorded start, fed to the live engine in its own order and times."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import yaml

from agent.core.model import Phase
from agent.ports import WatchUpdate
from agent.servers import server_kind
from agent.watch.host import Activity, Look
from agent.watch.outcome import Diagnosis
from agent.watch.watch import LoadWatch

KIND = server_kind("sglang", httpx.AsyncClient())
_TICKS = 100
_BUSY = re.compile(r"Remaining number of requests [1-9]")


@dataclass(frozen=True)
class Case:
    """One recording."""

    path: Path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the driver of the recording noted."""
        loaded: dict[str, Any] = json.loads((self.path / "case.json").read_text())
        return loaded

    @cached_property
    def expected(self) -> dict[str, Any]:
        """What the engine has to find."""
        loaded: dict[str, Any] = yaml.safe_load((self.path / "expected.yaml").read_text())
        return loaded

    @cached_property
    def gave_up_s(self) -> float | None:
        """When the driver gave up waiting; what the log says later is about its stop."""
        gave_up = [event["t"] for event in self.facts.get("events", ()) if event["what"] == "driver gave up waiting"]
        return float(gave_up[0]) if gave_up else None

    @property
    def stopped_by_driver(self) -> bool:
        """Whether the driver ended an idle server after its measurements, as tunebot itself would."""
        stop = self.facts.get("stop")
        sent = isinstance(stop, dict) and stop.get("sig") is not None and self.gave_up_s is None
        return sent and _BUSY.search((self.path / "server.log").read_text(errors="replace")) is None

    def chunks(self) -> Iterator[tuple[float, bytes]]:
        """Each read of the pipe with its time."""
        for row in (self.path / "chunks.jsonl").read_text().splitlines():
            chunk = json.loads(row)
            yield chunk["t"], chunk["text"].encode() if "text" in chunk else base64.b64decode(chunk["b64"])

    def samples(self) -> Iterator[tuple[float, Activity]]:
        """What the host showed, once a second."""
        for row in (self.path / "samples.jsonl").read_text().splitlines():
            sample = json.loads(row)
            looks = (
                Look(pid=pid, name=name, title=title, state=state, cpu_s=ticks / _TICKS)
                for pid, _, state, ticks, name, title in sample["procs"]
            )
            used = [int(gpu.split(",")[2]) for gpu in sample["gpu"]]
            yield sample["t"], Activity(processes=tuple(looks), gpu_mib=sum(used))


@dataclass
class Replayed:
    """What the engine said, and when."""

    began: dict[Phase, float] = field(default_factory=dict)
    updates: list[tuple[float, WatchUpdate]] = field(default_factory=list)
    doubts: list[tuple[float, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    durations: Mapping[Phase, float] = field(default_factory=dict)
    found: Diagnosis | None = None


def replay(case: Case, usual: Mapping[Phase, float] | None = None, shards: int | None = None) -> Replayed:
    """Feed a recording; ends where its driver gave up, else with its log."""
    watch, out = LoadWatch(KIND, usual, shards), Replayed()
    feeds = [(at, data, None) for at, data in case.chunks()] + [(at, b"", seen) for at, seen in case.samples()]
    for at, data, seen in sorted(feeds, key=lambda feed: feed[0]):
        if case.gave_up_s is not None and at > case.gave_up_s:
            break
        for update in watch.feed(data, at):
            out.updates.append((at, update))
            if update.begins:
                assert update.phase not in out.began, f"{update.phase} began twice"
                out.began[update.phase] = at
        if seen is not None:
            if watch.silent_s > 8:
                watch.look(seen)
            if doubt := watch.doubt():
                out.doubts.append((at, doubt))
    by_us = case.stopped_by_driver
    out.found = watch.conclude(None if by_us or case.gave_up_s else case.facts.get("exit_code"), by_us=by_us)
    out.notes, out.durations = watch.notes(), watch.durations_s()
    return out
