"""How long earlier loads took: one JSON line per load that got ready, in the user's state folder."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from agent.core.model import Phase

_LATEST = 5
"""Loads that count: more would remember another disk, fewer would follow one odd load."""


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
        # The line begins with a newline too: after a torn write it still stands alone.
        data = f"\n{json.dumps(record)}\n".encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            return f"the load times were not saved: {error}"
        return None

    def _read(self) -> list[tuple[list[str], dict[Phase, float]]]:
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return []
        return [load for line in lines if (load := _parse(line)) is not None]


def _parse(line: bytes) -> tuple[list[str], dict[Phase, float]] | None:
    """One load; None for a torn or foreign line. Phases of another version of tunebot are left out."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    key, phases = record.get("load"), record.get("phases_s")
    if not isinstance(key, list) or not isinstance(phases, dict):
        return None
    known = {p.value: p for p in Phase}
    return key, {known[p]: float(s) for p, s in phases.items() if p in known and _is_seconds(s)}


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
