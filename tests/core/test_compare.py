"""Experiments beside each other: which numbers count, what is said against them, how they are sorted and plotted."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core import commands as do
from agent.core import events as ev
from agent.core.metrics import Hygiene, Spread
from agent.core.model import FlagCheck, RoundMetrics
from agent.core.state import State
from agent.core.verdict import gain, interval95
from agent.core.views.compare import Cell, Column, Comparison, Line, Order, compare, numbers_of, ordered
from agent.core.views.concurrency import MOST_SERIES, family, plot_of
from tests.core.conftest import World, metrics, playbook

IDEAS = ({"id": "base"}, {"id": "fast"}, {"id": "child", "based_on": "fast"}, {"id": "slow"})
SPEEDS = {"base": 100.0, "fast": 150.0, "child": 120.0, "slow": 80.0}
CACHED = Hygiene(name="prefix cache", level="bad", text="25% of the prompt tokens were cached")


@dataclass
class Lab(World):
    """Measures what the test wants: fields of the rounds, by experiment or by workload."""

    extra: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        events = super().answer(state, command, at)
        for place, event in enumerate(events):
            if isinstance(event, ev.RoundMeasured):
                name = state.launches[event.launch].experiment
                found = {**self.extra.get(event.workload, {}), **self.extra.get(name, {})}
                events[place] = replace(event, metrics=replace(event.metrics, **found))
        return events


def compared(state: State, against: Any = "values", workload: int = 0) -> Comparison:
    return compare(state, state.playbook.workloads[workload], against)


def line(comparison: Comparison, name: str) -> Line:
    return next(one for one in comparison.lines if one.experiment == name)


def cell(comparison: Comparison, name: str, key: str) -> Cell | None:
    place = [column.key for column in comparison.columns].index(key)
    return line(comparison, name).cells[place]


def rounds(state: State, name: str, key: str) -> list[float]:
    return numbers_of(state, state.experiments[name], state.playbook.workloads[0]).values(key)


@pytest.fixture
def state() -> State:
    return Lab(speeds=SPEEDS).play(playbook(*IDEAS))


def test_only_what_was_measured_has_a_column() -> None:
    assert [c.title for c in compared(Lab().play(playbook({"id": "base"}))).columns] == ["output", "TTFT", "TPOT"]
    spread = Spread(mean=1.0, p50=900.0, p90=1.0, p95=1.0, p99=1.0)
    more = {"e2e": spread, "goodput": 0.5, "accept_length": 2.4, "watts_per_gpu": 300.0}
    found = compared(Lab(extra={"base": more}).play(playbook({"id": "base"})))
    assert [c.title for c in found.columns] == ["output", "TTFT", "TPOT", "E2E", "goodput", "accept", "power"]
    assert [one.value for one in found.lines[0].cells if one][3:] == [900.0, 0.5, 2.4, 300.0]


def test_the_metric_of_the_objective_comes_first() -> None:
    book = playbook({"id": "base"}, objective={"workload": "single", "metric": "ttft_p99_ms"})
    spread = Spread(mean=1.0, p50=50.0, p90=1.0, p95=1.0, p99=99.0)
    found = compared(Lab(extra={"base": {"ttft": spread}}).play(book))
    assert [(c.title, c.unit, c.better) for c in found.columns][:2] == [
        ("TTFT p99", "ms", "less"),
        ("output", "tok/s", "more"),
    ]


def test_the_interval_is_that_of_the_verdicts(state: State) -> None:
    values = rounds(state, "fast", "output_throughput")
    found = cell(compared(state), "fast", "output_throughput")
    assert found and found.high is not None
    assert found.value == pytest.approx(150.1) and found.high - found.value == pytest.approx(interval95(values))


@pytest.mark.parametrize(
    ("name", "against", "reference", "sign"),
    [
        ("fast", "baseline", "base", "▲"),
        ("slow", "baseline", "base", "▼"),
        ("child", "baseline", "base", "▲"),
        ("child", "parent", "fast", "▼"),
    ],
)
def test_a_change_is_against_the_baseline_or_the_parent(
    state: State, name: str, against: Any, reference: str, sign: str
) -> None:
    found = cell(compared(state, against), name, "output_throughput")
    expected = gain(*(rounds(state, one, "output_throughput") for one in (name, reference)), False)
    assert found == Cell(value=expected[0], low=expected[1], high=expected[2], sign=sign)  # type: ignore[arg-type]
    assert line(compared(state, against), name).reference == reference
    times = cell(compared(state, against), name, "tpot_ms")
    assert times and times.sign == sign and (times.value < 0) is (sign == "▲"), "less time is better"


def test_a_change_within_the_rounds_is_neither() -> None:
    state = Lab(speeds={"base": 100.0, "fast": 100.05}).play(playbook({"id": "base"}, {"id": "fast"}))
    found = cell(compared(state, "baseline"), "fast", "output_throughput")
    assert found and found.sign == "≈"
    reference = cell(compared(state, "baseline"), "base", "output_throughput")
    assert reference == Cell(value=0.0, low=None, high=None)


def test_what_has_no_better_way_has_no_sign() -> None:
    extra = {"base": {"accept_length": 2.0}, "fast": {"accept_length": 3.0}}
    state = Lab(speeds=SPEEDS, extra=extra).play(playbook({"id": "base"}, {"id": "fast"}))
    found = cell(compared(state, "baseline"), "fast", "accept_length")
    assert found and found.value == pytest.approx(0.5) and found.sign == ""


def test_a_single_round_has_no_interval() -> None:
    state = Lab(speeds=SPEEDS).play(playbook(*IDEAS, workloads=[{"name": "single", "rounds": 1}]))
    assert cell(compared(state), "fast", "output_throughput") == Cell(value=150.0, low=None, high=None)
    assert cell(compared(state, "baseline"), "fast", "output_throughput") == Cell(value=0.5, low=None, high=None)


def test_rounds_that_are_not_comparable_are_marked_and_not_compared() -> None:
    state = Lab(speeds=SPEEDS, extra={"fast": {"hygiene": (CACHED,)}}).play(playbook(*IDEAS))
    found = line(compared(state, "baseline"), "fast")
    assert [(m.glyph, m.word, m.text) for m in found.marks] == [("✖", "not comparable", CACHED.text)]
    assert set(found.cells) == {None}
    assert cell(compared(state), "fast", "output_throughput") is not None, "what was seen is shown"
    assert set(line(compared(state, "parent"), "child").cells) == {None}, "its parent's numbers do not count"


def test_a_workload_beside_the_objective_is_marked_for_itself() -> None:
    workloads = [{"name": "single", "rounds": 3}, {"name": "more", "concurrency": 8, "rounds": 2}]
    world = Lab(speeds=SPEEDS, extra={"more": {"hygiene": (CACHED,)}})
    state = world.play(playbook(*IDEAS, workloads=workloads))
    assert line(compared(state), "fast").marks == ()
    assert [mark.word for mark in line(compared(state, workload=1), "fast").marks] == ["not comparable"]


def test_wrong_answers_are_marked() -> None:
    book = playbook(*IDEAS, guard={"answers": "builtin"})
    state = Lab(speeds=SPEEDS, wrong=frozenset({"fast"})).play(book)
    (mark,) = line(compared(state), "fast").marks
    assert (mark.glyph, mark.word) == ("!", "guard failed") and "its answers are worse" in mark.text
    assert line(compared(state), "base").marks == ()


def test_other_flags_are_marked(state: State) -> None:
    name = state.experiments["fast"].launches[-1]
    check = FlagCheck(flag="tp", requested="8", effective="4", status="contradicted")
    found = line(compared(state.with_launch(name, flags=(check,))), "fast")
    assert [mark.word for mark in found.marks] == ["other flags"]


def test_numbers_of_another_contract_are_marked_and_not_compared(state: State) -> None:
    launch = state.launches[state.experiments["fast"].launches[-1]]
    other = tuple(replace(one, contract="another") for one in launch.rounds)
    found = compared(state.with_launch(launch.id, rounds=other), "baseline")
    assert [mark.text for mark in line(found, "fast").marks] == ["measured under another contract than base"]
    assert set(line(found, "fast").cells) == {None}


def test_missed_limits_are_marked() -> None:
    workloads = [{"name": "single", "rounds": 3, "slo": {"ttft_ms": 200, "tpot_ms": 20}}]
    extra = {"base": {"goodput": 1.0}, "fast": {"goodput": 0.8}, "child": {"goodput": 0.995}}
    state = Lab(speeds=SPEEDS, extra=extra).play(playbook(*IDEAS, workloads=workloads))
    marks = {one.experiment: [(m.word, m.text) for m in one.marks] for one in compared(state).lines}
    told = ("SLO missed", "80% of its requests within TTFT 200 ms, TPOT 20 ms")
    assert marks == {"base": [], "fast": [told], "child": [], "slow": []}
    found = cell(compared(state, "baseline"), "fast", "goodput")
    assert found and found.value == pytest.approx(-0.2), "it may be compared all the same"


@dataclass
class Stops(World):
    """The session is looked at before the last round of `fast`."""

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        if isinstance(command, do.MeasureRound) and command.index == 2:
            name = state.launches[command.launch].experiment
            if name == "fast":
                return self.last(command.launch, at)
        return super().answer(state, command, at)

    def last(self, launch: str, at: float) -> list[ev.Event]:
        return []


class Breaks(Stops):
    def last(self, launch: str, at: float) -> list[ev.Event]:
        return [ev.RoundFailed(at=at, launch=launch, workload="single", index=2, reason="connection reset")]


def test_what_is_being_measured_says_so() -> None:
    found = line(compared(Stops(speeds=SPEEDS).play(playbook(*IDEAS)), "baseline"), "fast")
    assert [(m.glyph, m.word, m.text) for m in found.marks] == [("●", "so far", "2 of 3 rounds are measured")]
    assert found.cells[0] is not None and (found.word, found.rounds) == ("now", 2)


def test_what_could_not_be_measured_to_its_end_says_so() -> None:
    found = line(compared(Breaks(speeds=SPEEDS).play(playbook(*IDEAS)), "baseline"), "fast")
    assert [(m.glyph, m.word) for m in found.marks] == [("✖", "failed")]
    assert "connection reset" in found.marks[0].text and set(found.cells) == {None}


def test_what_was_not_measured_is_counted() -> None:
    state = Lab(speeds=SPEEDS, fails={"slow": "CUDA out of memory"}).play(playbook(*IDEAS))
    found = compared(state)
    assert [one.experiment for one in found.lines] == ["base", "fast", "child"] and found.without == 1


def test_nothing_measured() -> None:
    found = compared(Lab(fails={"base": "no"}).play(playbook({"id": "base"})))
    assert (found.lines, found.columns, found.without) == ((), (), 1)
    assert ordered(found, "output_throughput", "best") == ()


@pytest.mark.parametrize(
    ("key", "order", "names"),
    [
        ("output_throughput", "best", "fast child base slow"),
        ("output_throughput", "worst", "slow base child fast"),
        ("tpot_ms", "best", "fast child base slow"),
        ("tpot_ms", "worst", "slow base child fast"),
        ("ttft_ms", "best", "base fast child slow"),
        ("output_throughput", "playbook", "base fast child slow"),
        ("unknown", "best", "base fast child slow"),
    ],
)
def test_sorted(state: State, key: str, order: Order, names: str) -> None:
    assert " ".join(ordered(compared(state), key, order)) == names


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=12), st.sampled_from(["best", "worst", "playbook"]))
def test_sorting_loses_nothing_and_what_is_not_known_is_last(values: list[float | None], order: Order) -> None:
    column = Column(key="x", title="x", unit="", digits=1, better="less")
    made = tuple(
        Line(
            experiment=str(n),
            glyph="",
            word="",
            incumbent=False,
            reference="0",
            launches=1,
            rounds=1,
            cells=(None if value is None else Cell(value=value, low=None, high=None),),
            marks=(),
        )
        for n, value in enumerate(values)
    )
    whole = Comparison(
        workload="w", about="", objective=True, against="values", columns=(column,), lines=made, without=0
    )
    names = ordered(whole, "x", order)
    assert sorted(names, key=int) == [one.experiment for one in made]
    known = [value for name in names if (value := values[int(name)]) is not None]
    if order != "playbook":
        assert known == sorted(known, reverse=order == "worst")
        assert all(values[int(name)] is None for name in names[len(known) :])


SWEEP = [{"name": f"c{n}", "concurrency": n, "requests": 4 * n, "rounds": 2} for n in (16, 1, 4)]


def swept(*more: dict[str, Any], extra: dict[str, dict[str, Any]] | None = None) -> State:
    book = playbook(*IDEAS, workloads=[*SWEEP, *more], objective={"workload": "c1"})
    return Lab(speeds=SPEEDS, extra=extra or {}).play(book)


def test_workloads_that_differ_in_concurrency_only_are_a_family() -> None:
    state = swept({"name": "long", "concurrency": 8, "input_len": 9000}, {"name": "open", "rate": 2.0})
    workloads = state.playbook.workloads
    assert [w.concurrency for w in family(state.playbook, workloads[0])] == [1, 4, 16]
    assert [w.name for w in family(state.playbook, workloads[3])] == ["long"]
    assert [w.name for w in family(state.playbook, workloads[4])] == ["open"]


def test_the_plot_has_a_series_for_each_experiment_with_its_intervals() -> None:
    state = swept(extra={"fast": {"hygiene": (CACHED,)}})
    plot = plot_of(state, state.playbook.workloads[0], list(state.experiments))
    assert plot is not None and plot.concurrencies == (1, 4, 16) and plot.left_out == 0
    assert [one.experiment for one in plot.series] == ["base", "child", "slow"], "what may be compared"
    point = plot.series[0].points[1]
    assert (point.concurrency, point.half_width) == (4, pytest.approx(interval95([100.0, 100.1])))


def test_with_one_concurrency_there_is_no_plot(state: State) -> None:
    assert plot_of(state, state.playbook.workloads[0], list(state.experiments)) is None
    only = swept()
    launches = {
        n: replace(one, rounds=tuple(r for r in one.rounds if r.workload == "c1")) for n, one in only.launches.items()
    }
    only = replace(only, launches=launches)
    assert plot_of(only, only.playbook.workloads[0], list(only.experiments)) is None


def test_more_series_than_signs_are_counted() -> None:
    book = playbook(
        {"id": "base"}, *({"id": f"e{n}"} for n in range(11)), workloads=SWEEP, objective={"workload": "c1"}
    )
    state = Lab().play(book)
    plot = plot_of(state, state.playbook.workloads[0], list(state.experiments))
    assert plot is not None and (len(plot.series), plot.left_out) == (MOST_SERIES, 12 - MOST_SERIES)


def test_the_metrics_of_a_round_by_their_names(state: State) -> None:
    one: RoundMetrics = replace(metrics(100.0), watts_per_gpu=310.0)
    name = state.experiments["base"].launches[-1]
    launch = state.launches[name]
    changed = state.with_launch(name, rounds=tuple(replace(r, metrics=one) for r in launch.rounds))
    assert rounds(changed, "base", "watts_per_gpu") == [310.0] * 3
    assert rounds(changed, "base", "accept_length") == []
