"""The compare screen: what it shows at each size, its keys, that its lines stay where they are, and its plot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot

from agent.core.state import State
from agent.core.views.compare import Cell
from agent.replay import Recording
from tests.core.conftest import playbook
from tests.core.test_compare import CACHED, IDEAS, SPEEDS, SWEEP, Lab
from tests.tui.kit import story
from tests.tui.kit import until as until_kit
from tests.tui.stage import Recorder, Stage, on_stage, until
from tests.tui.states import HOSTILE, ended
from tui.app import TunebotApp
from tui.replay_source import ReplaySource
from tui.screens.compare import CompareScreen
from tui.screens.details import DetailsScreen
from tui.screens.replay import ReplayScreen
from tui.screens.run import RunScreen
from tui.widgets.pick_list import PickList
from tui.widgets.whisker import Scale, scale_of, whisker

SIZES = [(80, 24), (120, 40)]


def measured(*experiments: dict[str, Any], extra: dict[str, dict[str, Any]] | None = None, **changes: Any) -> State:
    return Lab(speeds=SPEEDS, extra=extra or {}).play(playbook(*(experiments or IDEAS), **changes))


def names(app: Stage) -> list[str]:
    """The experiments of the lines on the screen, from above."""
    known = app.source.state.experiments
    words = [line.strip("▌ ").split(" ")[0] for line in app.text.splitlines()[2:-5]]
    return [word for word in words if word in known]


def chosen(app: Stage) -> str | None:
    return app.screen.query_one(PickList).chosen


@pytest.mark.parametrize("size", SIZES)
async def test_experiments_stand_beside_each_other_the_best_first(size: tuple[int, int]) -> None:
    async with on_stage(Recorder(measured()), CompareScreen(), size) as (app, _):
        text = app.text
        assert names(app) == ["fast", "child", "base", "slow"]
    for part in ("Compare", "single", "best output first", "output tok/s", "TTFT ms", "150.1 ±0.2", "★ incumbent", "●"):
        assert part in text, part
    assert "95 % 149.9 to 150.3" in text, "the chosen one in words"
    assert all(len(line) <= size[0] for line in text.splitlines())


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_measured_says_so(size: tuple[int, int]) -> None:
    source = Recorder(measured({"id": "base"}, {"id": "fast"}, workloads=[{"name": "single", "rounds": 3}]))
    source.state = replace(source.state, launches={}, experiments=story("start").state.experiments)
    async with on_stage(source, CompareScreen(), size) as (app, pilot):
        assert "nothing was measured of this workload yet" in app.text
        for key in ("enter", "m", "o", "s", "b", "w", "p", "down"):
            await pilot.press(key)
        assert isinstance(app.screen, CompareScreen)


@pytest.mark.parametrize("size", SIZES)
async def test_one_experiment(size: tuple[int, int]) -> None:
    async with on_stage(Recorder(measured({"id": "base"})), CompareScreen(), size) as (app, pilot):
        assert names(app) == ["base"]
        await pilot.press("b")
        await until(pilot, lambda: "what the others are compared with" in app.text)


@pytest.mark.parametrize("size", SIZES)
async def test_two_hundred_experiments_are_scrolled(size: tuple[int, int]) -> None:
    state = measured({"id": "base"}, *({"id": f"try-{n:03}"} for n in range(199)))
    async with on_stage(Recorder(state), CompareScreen(), size) as (app, pilot):
        await until(pilot, lambda: chosen(app) == "base")
        await pilot.press("end")
        await until(pilot, lambda: chosen(app) == "try-198" and "try-198" in names(app))
        assert "base" not in names(app)
        await pilot.press("pageup", "home")
        await until(pilot, lambda: "base" in names(app))


async def test_keys_change_metric_order_and_reference() -> None:
    extra = {"fast": {"ttft_ms": 90.0}, "slow": {"ttft_ms": 20.0}}
    async with on_stage(Recorder(measured(extra=extra)), CompareScreen()) as (app, pilot):
        await pilot.press("m")
        await until(pilot, lambda: "best TTFT first" in app.text)
        assert names(app) == ["slow", "base", "child", "fast"] and "TTFT 90.0 ms" in app.text, (
            "the cursor stays with its own"
        )
        await pilot.press("o")
        await until(pilot, lambda: "worst TTFT first" in app.text)
        assert names(app)[0] == "fast"
        await pilot.press("o")
        await until(pilot, lambda: "in the playbook's order" in app.text)
        assert names(app) == ["base", "fast", "child", "slow"]
        await pilot.press("b")
        await until(pilot, lambda: "against the baseline" in app.text)
        assert "TTFT +80.0 %" in app.text and "worse" in app.text and "▼" in app.text and "reference" in app.text
        assert names(app) == ["base", "fast", "child", "slow"], "the lines keep their places"
        await pilot.press("b", "down")
        await until(pilot, lambda: "against its parent" in app.text and "against fast" in app.text)
        await pilot.press("b")
        await until(pilot, lambda: "against" not in app.text.splitlines()[0])


async def test_enter_opens_the_details_and_escape_goes_back() -> None:
    async with on_stage(Recorder(measured()), CompareScreen()) as (app, pilot):
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        assert isinstance(app.screen, DetailsScreen) and app.screen.experiment == "child"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert chosen(app) == "child"
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, CompareScreen))


async def test_what_speaks_against_numbers_stands_beside_them_in_words() -> None:
    async with on_stage(Recorder(measured(extra={"fast": {"hygiene": (CACHED,)}})), CompareScreen()) as (app, pilot):
        assert "✖ not comparable" in app.text and CACHED.text in app.text
        await pilot.press("b")
        await until(pilot, lambda: "nothing to compare with" in app.text)


async def test_lines_stay_until_they_are_sorted_again() -> None:
    session = story("second")
    source = Recorder(session.state)
    async with on_stage(source, CompareScreen(), (80, 24)) as (app, pilot):
        assert names(app) == ["baseline"]
        session.measured(120.0, 120.1, 120.2)
        app.refresh_state(session.state)
        await until(pilot, lambda: names(app) == ["baseline", "eagle3"])
        assert chosen(app) == "baseline" and "s sorts anew" in app.text
        await pilot.press("s")
        await until(pilot, lambda: names(app) == ["eagle3", "baseline"])
        assert chosen(app) == "baseline" and "sorts anew" not in app.text


async def test_workloads_are_gone_through() -> None:
    workloads = [{"name": "single", "rounds": 2}, {"name": "other", "concurrency": 8, "input_len": 64, "rounds": 2}]
    async with on_stage(Recorder(measured(workloads=workloads)), CompareScreen()) as (app, pilot):
        assert "single 1 of 2" in app.text and "the objective's" in app.text
        await pilot.press("down", "w")
        await until(pilot, lambda: "other 2 of 2 · concurrency 8, 64 tokens in, 128 out" in app.text)
        assert chosen(app) == "child"
        await pilot.press("w")
        await until(pilot, lambda: "single 1 of 2" in app.text)


async def test_with_one_workload_and_concurrency_there_is_neither_key_nor_plot() -> None:
    async with on_stage(Recorder(measured()), CompareScreen()) as (app, pilot):
        foot = app.text.splitlines()[-1]
        assert "metric" in foot and "workload" not in foot and "plot" not in foot
        await pilot.press("w", "p")
        assert not app.screen.query_one("#concurrency").display and not app.screen.query("ThroughputPlot")


def sweep() -> State:
    return measured(workloads=SWEEP, objective={"workload": "c1"})


async def plotted(app: Stage, pilot: Pilot[None]) -> str:
    await until(pilot, lambda: bool(app.screen.query("ThroughputPlot")) and "16" in app.text and "■" in app.text)
    return app.text


async def test_throughput_over_concurrency_is_plotted_below_the_table() -> None:
    async with on_stage(Recorder(sweep()), CompareScreen(), (120, 40)) as (app, pilot):
        text = await plotted(app, pilot)
        assert names(app)[:4] == ["fast", "child", "base", "slow"]
        assert "● fast  ■ child  ▲ base  ◆ slow" in text
        await pilot.press("p")
        await until(pilot, lambda: not app.screen.query_one("#concurrency").display)


async def test_on_a_low_terminal_a_key_swaps_table_and_plot() -> None:
    async with on_stage(Recorder(sweep()), CompareScreen(), (80, 24)) as (app, pilot):
        assert "■" not in app.text and "plot" in app.text.splitlines()[-1]
        await pilot.press("p")
        text = await plotted(app, pilot)
        assert "● fast  ■ child" in text and names(app) == []
        await pilot.press("p")
        await until(pilot, lambda: names(app) == ["fast", "child", "base", "slow"])


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (200, 60), (120, 33)])
async def test_any_size_of_the_terminal_is_survived(size: tuple[int, int]) -> None:
    async with on_stage(Recorder(sweep()), CompareScreen(), (120, 40)) as (app, pilot):
        await plotted(app, pilot)
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: app.screen.size == size)
        await pilot.press("p", "p", "b", "m")
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: app.screen.size == (120, 40) and "fast" in app.text and app.is_running)


async def test_the_plot_follows_the_session() -> None:
    state = sweep()
    async with on_stage(Recorder(state), CompareScreen(), (120, 40)) as (app, pilot):
        await plotted(app, pilot)
        launch = state.launches[state.experiments["slow"].launches[-1]]
        app.refresh_state(state.with_launch(launch.id, rounds=()))
        await until(pilot, lambda: "◆ slow" not in app.text and "▲ base" in app.text)


async def test_c_opens_it_from_the_run_screen(tmp_path: Path) -> None:
    session = story("waiting", tmp_path)
    (tmp_path / "launches").mkdir()
    app = TunebotApp(session)
    async with app.run_test(size=(80, 24), notifications=False) as pilot:
        await until_kit(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("c")
        await until_kit(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("question_mark")
        await until_kit(pilot, lambda: not isinstance(app.screen, CompareScreen))
        await pilot.press("escape", "escape")
        await until_kit(pilot, lambda: isinstance(app.screen, RunScreen))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
async def test_text_that_tries_to_act_is_only_text(text: str) -> None:
    async with on_stage(Recorder(ended(text)), CompareScreen(), (80, 24)) as (app, pilot):
        await pilot.press("b", "m", "s")
        assert "\x1b" not in app.text and "\u202e" not in app.text and app.is_running


def drawn(cell: Cell, low: float, high: float, width: int = 11) -> str:
    found: Content = whisker(cell, Scale(low, high), width)
    return found.plain


@pytest.mark.parametrize(
    ("cell", "low", "high", "text"),
    [
        (Cell(value=5.0, low=None, high=None), 0.0, 10.0, "━━━━━●     "),
        (Cell(value=5.0, low=3.0, high=7.0), 0.0, 10.0, "━━━├━●─┤   "),
        (Cell(value=5.0, low=4.9, high=5.1), 0.0, 10.0, "━━━━━●     "),
        (Cell(value=-3.0, low=-4.0, high=-2.0), -5.0, 5.0, " ├●┤━│     "),
        (Cell(value=3.0, low=2.0, high=9.0), -5.0, 5.0, "     │━├●─▸"),
        (Cell(value=0.0, low=-1.0, high=1.0), -5.0, 5.0, "    ├●┤    "),
        (Cell(value=0.0, low=None, high=None), 0.0, 0.0, "●          "),
    ],
)
def test_a_bar_and_its_interval(cell: Cell, low: float, high: float, text: str) -> None:
    assert drawn(cell, low, high) == text


def test_an_interval_wider_than_useful_does_not_squeeze_the_bars() -> None:
    cells = [Cell(value=100.0, low=-2_000.0, high=2_200.0), Cell(value=90.0, low=89.0, high=91.0), None]
    assert scale_of(cells) == Scale(-150.0, 150.0)


async def test_c_opens_it_in_a_replay(tmp_path: Path) -> None:
    world = Lab(speeds=SPEEDS)
    world.play(playbook(*IDEAS))
    (tmp_path / "launches").mkdir()
    app = TunebotApp(ReplaySource(Recording(tuple(world.events)), tmp_path, str), ReplayScreen)
    async with app.run_test(size=(80, 24), notifications=False) as pilot:
        await until_kit(pilot, lambda: isinstance(app.screen, ReplayScreen))
        await pilot.press("end", "c")
        await until_kit(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert app.screen.query_one(PickList).chosen == "fast"
