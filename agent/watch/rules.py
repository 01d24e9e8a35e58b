"""The tables of faults and of lines that are none, read from the TOML files beside this module."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from agent.core.model import Phase

TABLES = ("memory", "communication", "gpu_code", "software", "model")
"""The tables in the order in which they are asked: of two faults of the same weight the earlier one wins."""

_SEARCHED = 600
_DEFAULT_WEIGHT = 6.0
_FAR, _FAR_COSTS = 100, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row: what it matches and what is to be said of it. CONTRIBUTING.md describes the fields."""

    category: str
    weight: float
    match: re.Pattern[str]
    unless: re.Pattern[str] | None
    company: re.Pattern[str] | None
    native: re.Pattern[str] | None
    frames: re.Pattern[str] | None
    frames_weight: float
    phases: frozenset[Phase] | None
    phase: Phase | None
    not_before: Phase
    means: str
    reason: str
    remedies: tuple[str, ...]

    def weighs(self, text: str, below: str) -> float:
        """How surely a text names this fault, given the lines below it; 0 is not at all.

        A long message names other things too, in passing and further on: what comes first counts most.
        """
        text = text[:_SEARCHED]
        found = self.match.search(text)
        if found is None or (self.unless is not None and self.unless.search(text)):
            return 0.0
        if self.company is not None and self.company.search(f"{text}\n{below}") is None:
            return 0.0
        return self.weight - min(_FAR_COSTS, found.start() / _FAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All tables. `kinds` has one pattern for each kind of line in lines.toml."""

    faults: tuple[Fault, ...]
    memory_by_phase: Mapping[Phase, str]
    kinds: Mapping[str, re.Pattern[str]]

    def is_a(self, kind: str, text: str) -> bool:
        """Whether a message is a line of that kind."""
        return self.kinds[kind].search(text[:300]) is not None

    def native_weight(self, text: str) -> float:
        """How surely a line that is no exception names a fault by itself; 0 is not at all."""
        return max(
            (
                fault.weight
                for fault in self.faults
                if fault.native is not None
                and fault.native.search(text)
                and not (fault.unless and fault.unless.search(text[:_SEARCHED]))
            ),
            default=0.0,
        )

    def category(self, fault: Fault, phase: Phase) -> str:
        """The category of a fault: that of memory running out depends on when it did."""
        return self.memory_by_phase[phase] if fault.category == "oom" else fault.category


class Marks(NamedTuple):
    """What a message shows by itself: how surely it names a fault, and the kinds of ends that it tells."""

    native: float
    kinds: tuple[str, ...]


@lru_cache(maxsize=4096)
def marks_of(message: str) -> Marks:
    """The marks of a message. Servers repeat themselves word by word, so the answers are kept."""
    table = rules()
    kinds = tuple(kind for kind in ("deaths", "stops", "fatal", "waiting", "degraded") if table.is_a(kind, message))
    return Marks(table.native_weight(message), kinds)


@cache
def rules() -> Rules:
    """The tables, read once."""
    tables = [_read(name) for name in TABLES]
    memory = {Phase(name): category for name, category in tables[0]["phases"].items()}
    lines = _read("lines")
    return Rules(
        faults=tuple(_fault(row) for table in tables for row in table["fault"]),
        memory_by_phase=memory,
        kinds={kind: _any_of(patterns) for kind, patterns in lines.items()},
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("agent.watch") / "faults" / f"{name}.toml").read_text(encoding="utf-8"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _fault(row: Mapping[str, Any]) -> Fault:
    weight = float(row.get("weight", _DEFAULT_WEIGHT))
    phases = row.get("phases")
    return Fault(
        category=row["category"],
        weight=weight,
        match=_any_of(row["match"]),
        unless=_any_of(row["except"]) if "except" in row else None,
        company=re.compile(row["with"]) if "with" in row else None,
        native=_any_of(row["native"]) if "native" in row else None,
        frames=re.compile(row["frames"]) if "frames" in row else None,
        frames_weight=float(row.get("frames_weight", weight)),
        phases=frozenset(Phase(phase) for phase in phases) if phases else None,
        phase=Phase(row["phase"]) if "phase" in row else None,
        not_before=Phase(row.get("not_before", Phase.LAUNCH)),
        means=row["means"],
        reason=row["reason"],
        remedies=tuple(row["try"]),
    )
