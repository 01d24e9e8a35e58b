"""Values of a result file as they are: finite numbers, counts and texts, or nothing. Pure."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agent.imports.model import Metric, Unreadable
from agent.redact import is_secret_name

_MOST = 1e30
"""No benchmark measures more; sums and products of what is below stay finite."""

_PERCENTILES = {"median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}


def parse(text: str) -> Any:
    """A JSON text; Python's reader takes the bare `Infinity` and `NaN` that some tools write. Raises Unreadable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from error


def objects(text: str) -> list[Mapping[str, Any]]:
    """The JSON objects of a text: one, or one a line, as tools append them. Raises Unreadable."""
    try:
        found = [parse(text)]
    except Unreadable:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2:
            raise
        found = []
        for number, line in lines:
            try:
                found.append(parse(line))
            except Unreadable as error:
                hint = "was the run cut off while it wrote? take that line out"
                raise Unreadable(f"line {number} is {error}", hint) from error
    if not all(isinstance(one, dict) for one in found):
        raise Unreadable("not a JSON object")
    return found


def number(value: Any) -> float | None:
    """A number, else None: `Infinity`, `NaN`, texts and true are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if abs(made) < _MOST else None


def count(value: Any) -> int | None:
    """A number of things, else None. Some tools write counts as 64.0."""
    made = number(value)
    return int(made) if made is not None and made >= 0 and made == int(made) else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The array, or an empty one."""
    return value if isinstance(value, list) else []


def said(value: Any) -> str:
    """A scalar as people write it, "" for null, an object or an array. An infinite rate is `inf`."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings(source: Mapping[str, Any], *names: str) -> dict[str, str]:
    """The settings that are there, of these names or of all; never a secret's value."""
    made = {name: said(source.get(name)) for name in names or source if not is_secret_name(name)}
    return {name: value for name, value in made.items() if value}


def flat_metric(source: Mapping[str, Any], suffix: str, definition: str, unit: str = "ms") -> Metric | None:
    """A metric that is written as `mean_ttft_ms`, `median_ttft_ms`, `p99_ttft_ms` …; None where nothing is there."""
    names = {"mean": "mean", "std": "std", **_PERCENTILES}
    stats = {names[stat]: value for stat in names if (value := number(source.get(f"{stat}_{suffix}"))) is not None}
    return Metric(key=suffix, definition=definition, unit=unit, stats=stats) if stats else None


def total(source: Mapping[str, Any], key: str, definition: str, unit: str) -> Metric | None:
    """A metric that is one number; None where it is not there."""
    value = number(source.get(key))
    return None if value is None else Metric(key=key, definition=definition, unit=unit, stats={"value": value})


def present(*metrics: Metric | None) -> tuple[Metric, ...]:
    """Those that are there."""
    return tuple(metric for metric in metrics if metric)


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Mean, extremes and percentiles of at least one value, linear between the ranks (as numpy has them)."""
    ordered = sorted(values)
    ranks = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {"mean": fmean(ordered)} | {name: _at(ordered, rank * (len(ordered) - 1)) for name, rank in ranks.items()}


def _at(ordered: Sequence[float], place: float) -> float:
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
