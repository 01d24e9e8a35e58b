"""How a load is drawn beside what is usual: on the page of its experiment, and at the server panel."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.containers import VerticalScroll

from agent.core import events as ev
from agent.core.model import Phase
from agent.core.views.usual import LoadAgainst, PhaseAgainst
from tests.core.test_usual import USUAL, launch, state_of
from tests.tui.kit import Session, until
from tests.tui.stage import Recorder, on_stage
from tui.app import TunebotApp
from tui.screens.details import DetailsScreen
from tui.screens.run import RunScreen
from tui.widgets.usual import draw_against


def against(**phase: object) -> LoadAgainst:
    fields: dict[str, object] = {
        "phase": "load-weights",
        "took_s": 860.0,
        "usual_s": 430.0,
        "status": "done",
        "slow": "",
    }
    return LoadAgainst(number=1, basis="x", phases=(PhaseAgainst(**(fields | phase)),))  # type: ignore[arg-type]


def test_two_bars_are_aligned_and_of_one_scale() -> None:
    _, this, usual = draw_against((against(),), 80).plain.splitlines()
    assert this.index("━") == usual.index("┅")
    assert abs(this.count("━") - 2 * usual.count("┅")) <= 1 and this.count("━") > 30
    assert "this" in this and "14:20" in this and "usual" in usual and "7:10" in usual


@pytest.mark.parametrize("width", [60, 76, 116])
def test_what_is_slow_is_said_in_words_and_fits(width: int) -> None:
    text = draw_against((against(slow="load-weights 14:20, 2.0x the usual 7:10: cold page cache?"),), width).plain
    assert "! slow" in text and "cold page cache?" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= width


def test_a_phase_that_was_never_there_and_short_ones() -> None:
    phases = (
        *against(usual_s=None).phases,
        *against(phase="kv-cache", took_s=0.1, usual_s=0.1).phases,
        *against(phase="warmup", took_s=0.1, usual_s=0.1, status="running").phases,
    )
    text = draw_against((replace(against(), phases=phases),), 80).plain
    assert "no earlier load had it" in text and "kv-cache" not in text and "running" in text


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_page_of_an_experiment_has_the_section(size: tuple[int, int]) -> None:
    state = state_of(launch(0, {Phase.LOAD_WEIGHTS: 860.0, Phase.GRAPH_CAPTURE: 45.0}))
    async with on_stage(Recorder(state), DetailsScreen("base"), size) as (app, pilot):
        page, seen = app.screen.query_one("#page", VerticalScroll), app.text
        while page.scroll_y < page.max_scroll_y:
            before = page.scroll_y
            await pilot.press("pagedown")
            await until(pilot, lambda before=before: page.scroll_y > before)
            seen += app.text
    seen = " ".join(seen.split())
    for part in (
        "Load against earlier ones",
        "the latest loads of this model on this host",
        "┅",
        "! slow",
        "cold page",
    ):
        assert part in seen, part


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_server_panel_says_that_a_phase_is_slow_while_it_runs(size: tuple[int, int], tmp_path: Path) -> None:
    session = Session(folder=tmp_path).begin()
    (tmp_path / "launches").mkdir()
    name = session.launch.id
    session.give(
        ev.LaunchStarted(at=session.at, launch=name, pid=1, port=2, argv=("python3",), usual_s=USUAL),
        ev.PhaseEntered(at=session.at, launch=name, phase=Phase.LOAD_WEIGHTS, remaining_s=400.0),
    )
    app = TunebotApp(session)
    async with app.run_test(size=size, notifications=False) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))

        def text() -> str:
            strips = app.screen._compositor.render_strips()
            return "\n".join("".join(segment.text for segment in strip) for strip in strips)

        await until(pilot, lambda: "load-weights" in text())
        assert "slow" not in text()
        session.ahead_s, session.version = 860.0, session.version + 1
        await until(pilot, lambda: "!slow 2.1x" in text())
        if size[0] >= 100:
            assert "load-weights 14:20, 2.1x the usual 6:52" in text()
