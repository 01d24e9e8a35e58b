"""Experiments beside each other: every metric of one workload, as it is or against the baseline or the parent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, cast

from agent.core.model import RoundMetrics
from agent.core.state import ExperimentState, Launch, Stage, State
from agent.core.verdict import counted, gain, interval95, trouble
from agent.core.views.basics import GLYPHS
from agent.core.views.slo import KEPT, kept_share, limits_text
from agent.playbook.metrics import LOWER_IS_BETTER, MetricName
from agent.playbook.model import Workload

Against = Literal["values", "baseline", "parent"]
Order = Literal["best", "worst", "playbook"]

SO_FAR = "so far"
"""The word of an experiment that is being measured: its numbers may still move."""

_USUAL = ("output_throughput", "ttft_ms", "tpot_ms", "e2e_ms", "goodput", "accept_length", "watts_per_gpu")
_TITLES = {
    "output_throughput": ("output", "tok/s", 1),
    "request_throughput": ("requests", "req/s", 2),
    "goodput": ("goodput", "req/s", 2),
    "accept_length": ("accept", "tokens", 2),
    "watts_per_gpu": ("power", "W/GPU", 0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A metric: `key` names it among those of a round, `better` says which way; empty where neither is."""

    key: str
    title: str
    unit: str
    digits: int
    better: Literal["more", "less", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A mean over rounds with its 95 % interval (None for a single round); relative ones are fractions.

    `sign` is ▲ where a relative one is better, ▼ where it is worse, ≈ where its interval holds zero; else empty.
    """

    value: float
    low: float | None
    high: float | None
    sign: Literal["▲", "▼", "≈", ""] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What is to be known of the numbers of an experiment before they are believed. `text` may be empty."""

    glyph: str
    word: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An experiment. `cells` stand under the columns; `reference` is what it is compared with, itself for that one."""

    experiment: str
    glyph: str
    word: str
    incumbent: bool
    reference: str
    launches: int
    rounds: int
    cells: tuple[Cell | None, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that was measured of a workload; lines are in the order of the playbook, `without` counts the others."""

    workload: str
    about: str
    objective: bool
    against: Against
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    without: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The rounds of an experiment that count for a workload, of one contract; those that do not where none does.

    `marks` say what speaks against them; a `sound` one may be compared.
    """

    rounds: tuple[RoundMetrics, ...]
    launches: int
    contract: str
    marks: tuple[Mark, ...]
    sound: bool

    def values(self, key: str) -> list[float]:
        """One value a round that has the metric."""
        return [value for value in (_value(metrics, key) for metrics in self.rounds) if value is not None]


def compare(state: State, workload: Workload, against: Against) -> Comparison:
    """Everything that was measured of a workload."""
    numbers = {name: numbers_of(state, one, workload) for name, one in state.experiments.items()}
    measured = {name: found for name, found in numbers.items() if found.rounds}
    objective = workload.name == state.playbook.objective.workload
    wanted = dict.fromkeys((state.playbook.objective.metric, *_USUAL) if objective else _USUAL)
    keys = [key for key in wanted if any(found.values(key) for found in measured.values())]
    columns = tuple(map(_column, keys))
    lines = (_line(state, name, measured, columns, against) for name in measured)
    return Comparison(
        workload=workload.name,
        about=_about(workload),
        objective=objective,
        against=against,
        columns=columns,
        lines=tuple(lines),
        without=len(numbers) - len(measured),
    )


def ordered(comparison: Comparison, key: str, order: Order) -> tuple[str, ...]:
    """The experiments by one metric; those that do not have it come last, equal ones as in the playbook."""
    names = [line.experiment for line in comparison.lines]
    if order == "playbook":
        return tuple(names)
    place = next((n for n, column in enumerate(comparison.columns) if column.key == key), None)
    if place is None:
        return tuple(names)
    cells = {line.experiment: line.cells[place] for line in comparison.lines}
    falls = (comparison.columns[place].better != "less") is (order == "best")
    known = [(name, cell.value) for name, cell in cells.items() if cell]
    known.sort(key=lambda one: -one[1] if falls else one[1])
    return (*(name for name, _ in known), *(name for name, cell in cells.items() if cell is None))


def numbers_of(state: State, experiment: ExperimentState, workload: Workload) -> Numbers:
    """What was measured of a workload with its present flags, as the verdicts count it."""
    launches = [launch for launch in counted(state, experiment) if launch.rounds]
    fit = [launch for launch in launches if trouble(state, launch) is None]
    used = [(launch, r) for launch in fit or launches for r in launch.rounds if r.workload == workload.name]
    contract = used[-1][1].contract if used else ""
    used = [(launch, r) for launch, r in used if r.contract == contract]
    rounds = tuple(r.metrics for _, r in used)
    marks: list[Mark] = []
    if rounds and not fit:
        marks.append(_why_not(state, experiment, launches[-1], f"{len(rounds)} of {workload.rounds} rounds"))
    if (doubts := dict.fromkeys(m.not_comparable for m in rounds if m.not_comparable)) and not marks:
        marks.append(Mark(glyph="✖", word="not comparable", text="; ".join(map(str, doubts))))
    return Numbers(
        rounds=rounds,
        launches=len({launch.id for launch, _ in used}),
        contract=contract,
        marks=(*marks, *_missed(workload, rounds)),
        sound=all(mark.word == SO_FAR for mark in marks) and not doubts,
    )


def _why_not(state: State, experiment: ExperimentState, last: Launch, done: str) -> Mark:
    """Why none of its launches counts, by the last one."""
    found = trouble(state, last)
    assert found is not None, "none of them counts"
    word, reason = found
    if last.is_up and experiment.stage is Stage.RUNNING and not (last.failure or last.round_error):
        return Mark(glyph="●", word=SO_FAR, text=f"{done} are measured")
    if word == "inconclusive":
        return Mark(glyph="✖", word="not comparable", text=reason.removeprefix("not comparable: "))
    if word == "invalid":
        flags = any(flag.status == "contradicted" for flag in last.flags)
        return Mark(glyph="!", word="other flags" if flags else "guard failed", text=reason)
    return Mark(glyph="✖", word="failed", text=reason)


def _missed(workload: Workload, rounds: Sequence[RoundMetrics]) -> Iterator[Mark]:
    kept = kept_share(rounds)
    if workload.slo is not None and kept is not None and kept < KEPT:
        yield Mark(glyph="!", word="SLO missed", text=f"{kept:.0%} of its requests within {limits_text(workload.slo)}")


def _value(metrics: RoundMetrics, key: str) -> float | None:
    if key == "accept_length":
        return metrics.accept_length
    if key == "watts_per_gpu":
        return metrics.watts_per_gpu
    try:
        return metrics.value(cast(MetricName, key))
    except LookupError:
        return None


def _column(key: str) -> Column:
    lower = key in LOWER_IS_BETTER
    quantity, *percentile = key.removesuffix("_ms").split("_")
    title, unit, digits = _TITLES.get(
        key, (" ".join((quantity.upper(), *percentile)), "ms", 2 if quantity == "tpot" else 1)
    )
    neither = key in ("accept_length", "watts_per_gpu")
    return Column(key=key, title=title, unit=unit, digits=digits, better="" if neither else "less" if lower else "more")


def _about(workload: Workload) -> str:
    arrivals = f"concurrency {workload.concurrency}" if workload.rate is None else f"{workload.rate:g} req/s"
    return f"{arrivals}, {workload.input_len} tokens in, {workload.output_len} out"


def _line(
    state: State, name: str, measured: Mapping[str, Numbers], columns: Sequence[Column], against: Against
) -> Line:
    experiment, ours = state.experiments[name], measured[name]
    baseline = state.baseline.id
    reference = (experiment.spec.based_on or name) if against == "parent" else baseline
    theirs = measured.get(reference)
    marks = ours.marks
    if theirs is not None and theirs.contract != ours.contract:
        theirs = None
        text = f"measured under another contract than {reference}"
        marks = (Mark(glyph="✖", word="not comparable", text=text), *marks)
    glyph, word = _verdict(experiment)
    cells: list[Cell | None]
    if against == "values":
        cells = [_cell(ours.values(column.key)) for column in columns]
    elif theirs is None or not (theirs.sound and ours.sound):
        cells = [None for _ in columns]
    elif theirs is ours:
        cells = [Cell(value=0.0, low=None, high=None) if ours.values(column.key) else None for column in columns]
    else:
        cells = [_change(ours.values(column.key), theirs.values(column.key), column) for column in columns]
    return Line(
        experiment=name,
        glyph=glyph,
        word=word,
        incumbent=state.incumbent == name,
        reference=reference,
        launches=ours.launches,
        rounds=len(ours.rounds),
        cells=tuple(cells),
        marks=marks,
    )


def _verdict(experiment: ExperimentState) -> tuple[str, str]:
    word = "near" if experiment.stage is Stage.NEAR else experiment.verdict.word if experiment.verdict else "now"
    return GLYPHS[word], word


def _cell(values: Sequence[float]) -> Cell | None:
    if not values:
        return None
    mean = fmean(values)
    half = interval95(values) if len(values) > 1 else None
    return Cell(value=mean, low=None if half is None else mean - half, high=None if half is None else mean + half)


def _change(ours: Sequence[float], theirs: Sequence[float], column: Column) -> Cell | None:
    """The change of the mean as a fraction, with Welch's interval: noise between launches is not in it."""
    if not ours or not theirs or fmean(theirs) <= 0:
        return None
    value, low, high = gain(ours, theirs, False)
    if len(ours) == len(theirs) == 1:
        return Cell(value=value, low=None, high=None)
    if not column.better:
        return Cell(value=value, low=low, high=high)
    if low <= 0 <= high:
        return Cell(value=value, low=low, high=high, sign="≈")
    return Cell(value=value, low=low, high=high, sign="▲" if (value > 0) is (column.better == "more") else "▼")
