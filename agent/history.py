"""What earlier sessions measured: one JSON line per load that got ready, and per session's noise between launches.

It lies in the user's state folder.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TypeGuard

from agent.core.model import LaunchNoise, Phase
from agent.core.noise import HISTORY_DEGREES, pooled

_LATEST = 5
"""Loads (and sessions) that count: more would remember another disk, fewer would follow one odd load."""

NoiseKey = list[str]
"""Target, kind of server, metric, and the contract under which it was measured."""


class LoadHistoryFile:
    """Implements `agent.ports.LoadHistory`. A file that cannot be read or written costs the ETA, never the session."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def phases_s(self, target: str, kind: str, model: str, how: str = "") -> Mapping[Phase, float] | None:
        """The median seconds of each phase over the latest loads, or None where nothing like it was loaded before.

        `how` is what else decides how long a load takes: version, parallel sizes, speculation. Loads of the same model
        that were run in another way count where there is none that was run in this one.
        """
        known = [(key, load) for key, load in self._read() if key[:3] == [target, kind, model]]
        same = [load for key, load in known if key[3:] == [how]]
        loads = (same or [load for _, load in known])[-_LATEST:]
        if not loads:
            return None
        return {p: median(load[p] for load in loads if p in load) for p in Phase if any(p in load for load in loads)}

    def add(self, target: str, kind: str, model: str, phases_s: Mapping[Phase, float], how: str = "") -> str | None:
        """Remember a load that got ready. Returns why it could not be remembered, if so."""
        record = {"load": [target, kind, model, how], "phases_s": {p.value: round(s, 3) for p, s in phases_s.items()}}
        return append_line(self._path, record, "the load times were not saved")

    def noise(self, key: NoiseKey) -> LaunchNoise | None:
        """Noise between launches over the latest sessions, or None where none measured any.

        It counts as at most HISTORY_DEGREES degrees of freedom.
        """
        measured = [noise for known, noise in map(_parse_noise, self._lines()) if known == key and noise]
        if not measured:
            return None
        found = pooled(*measured[-_LATEST:])
        return replace(found, degrees=min(found.degrees, HISTORY_DEGREES))

    def add_noise(self, key: NoiseKey, noise: LaunchNoise) -> str | None:
        """Remember what a session measured. Returns why it could not be remembered, if so."""
        record = {"noise": key, "sd": noise.sd, "degrees": noise.degrees, "launches": noise.launches}
        return append_line(self._path, record, "the noise between launches was not saved")

    def _read(self) -> list[tuple[list[str], dict[Phase, float]]]:
        return [load for line in self._lines() if (load := _parse(line)) is not None]

    def _lines(self) -> list[bytes]:
        return read_lines(self._path)


def append_line(path: Path, record: Mapping[str, object], otherwise: str) -> str | None:
    """Add a record to a file of JSON lines, the user's own. Returns `otherwise` with the reason where it failed."""
    # The line begins with a newline too: after a torn write it still stands alone.
    data = f"\n{json.dumps(record)}\n".encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"{otherwise}: {error}"
    return None


def read_lines(path: Path) -> list[bytes]:
    """The lines of such a file; none where it cannot be read."""
    try:
        return path.read_bytes().splitlines()
    except OSError:
        return []


def record_of(line: bytes) -> dict[str, Any]:
    """One line as it was written; empty for a torn or foreign one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _parse_noise(line: bytes) -> tuple[NoiseKey, LaunchNoise | None]:
    """The noise that a session measured, with its key; None where the line tells of none."""
    record = record_of(line)
    key, sd, degrees, launches = (record.get(name) for name in ("noise", "sd", "degrees", "launches"))
    if not isinstance(key, list) or not (_is_number(sd) and _is_number(degrees) and _is_number(launches)):
        return [], None
    known = degrees >= 1 and launches >= 2
    return key, LaunchNoise(sd=float(sd), degrees=float(degrees), launches=int(launches)) if known else None


def _parse(line: bytes) -> tuple[list[str], dict[Phase, float]] | None:
    """One load; None for a torn or foreign line. Phases of another version of tunebot are left out."""
    record = record_of(line)
    key, phases = record.get("load"), record.get("phases_s")
    if not isinstance(key, list) or not isinstance(phases, dict):
        return None
    known = {p.value: p for p in Phase}
    return key, {known[p]: float(s) for p, s in phases.items() if p in known and _is_number(s)}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
