"""Output throughput over concurrency, where workloads of a playbook differ in their concurrency only."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from agent.core.state import State
from agent.core.verdict import interval95
from agent.core.views.compare import numbers_of
from agent.playbook.model import Playbook, Workload

MOST_SERIES = 8
"""As many as can be told apart by the sign that marks their points."""

_EXTENT = frozenset({"name", "concurrency", "requests", "rounds"})
"""How much is measured, and under which name: a higher concurrency needs more requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of the output throughput in tok/s at a concurrency; half its 95 % interval, None for one round."""

    concurrency: int
    value: float
    half_width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was measured of one experiment, by concurrency."""

    experiment: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The series that are drawn; `left_out` counts the experiments that have no room beside them."""

    series: tuple[Series, ...]
    left_out: int

    @property
    def concurrencies(self) -> tuple[int, ...]:
        """Those that any experiment was measured at."""
        return tuple(sorted({point.concurrency for one in self.series for point in one.points}))


def family(playbook: Playbook, workload: Workload) -> tuple[Workload, ...]:
    """The workloads that differ from it in their concurrency only, itself among them, by concurrency.

    In an open loop the rate decides, so such a workload has no family.
    """
    if workload.rate is not None:
        return (workload,)
    kind = workload.model_dump(exclude=set(_EXTENT))
    same = [other for other in playbook.workloads if other.model_dump(exclude=set(_EXTENT)) == kind]
    first = {other.concurrency: other for other in reversed(same)}
    return tuple(first[concurrency] for concurrency in sorted(first))


def plot_of(state: State, workload: Workload, names: Sequence[str]) -> Plot | None:
    """The first of the experiments `names` that may be compared; None below two concurrencies with numbers."""
    members = family(state.playbook, workload)
    if len(members) < 2:
        return None
    found = (series for name in names if (series := _series(state, name, members)).points)
    drawn = tuple(islice(found, MOST_SERIES))
    plot = Plot(series=drawn, left_out=len(names) - len(drawn) if len(drawn) == MOST_SERIES else 0)
    return plot if len(plot.concurrencies) > 1 else None


def _series(state: State, name: str, members: Sequence[Workload]) -> Series:
    points = []
    for workload in members:
        numbers = numbers_of(state, state.experiments[name], workload)
        values = numbers.values("output_throughput")
        if values and numbers.sound:
            half = interval95(values) if len(values) > 1 else None
            points.append(Point(concurrency=workload.concurrency, value=fmean(values), half_width=half))
    return Series(experiment=name, points=tuple(points))
