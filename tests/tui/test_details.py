"""The page of an experiment: what stands on it, its keys, and that it stays where it was scrolled to."""

import pytest
from textual.containers import VerticalScroll

from agent.core import events as ev
from agent.core.model import Phase
from tests.tui.stage import Recorder, on_stage, until
from tests.tui.states import HOSTILE, begun, ended, loading, play
from tui.screens.details import DetailsScreen

SIZES = [(80, 24), (100, 30), (120, 40), (200, 60)]


def page(app):
    return app.screen.query_one("#page", VerticalScroll)


async def whole_page(app, pilot):
    """All text of the page, screen by screen."""
    seen = [app.text]
    while page(app).scroll_y < page(app).max_scroll_y:
        before = page(app).scroll_y
        await pilot.press("pagedown")
        await until(pilot, lambda before=before: page(app).scroll_y > before)
        seen.append(app.text)
    return "\n".join(seen)


@pytest.mark.parametrize("size", SIZES)
async def test_all_that_is_known_stands_on_the_page(size):
    async with on_stage(Recorder(ended()), DetailsScreen("idea"), size) as (app, pilot):
        text = await whole_page(app, pilot)
    for word in ("idea", "failed", "Why", "Verdict", "Dead end", "Flags", "Environment", "Load", "Research", "driver"):
        assert word in text, word
    assert "- --cuda-graph-max-bs" in text and "taken away" in text
    assert "╳" in text and "still alive: 77" in text
    assert "NCCL_ALGO='plain words' python3 -m sglang.launch_server" in text


async def test_measurements_and_reported_flags():
    async with on_stage(Recorder(ended()), DetailsScreen("base")) as (app, pilot):
        text = await whole_page(app, pilot)
    assert "100.5 ±1.2" in text and "TTFT ms" in text
    assert "~ rewritten" in text and "✔ equal" in text
    assert "incumbent" in text


async def test_neighbours_and_back():
    async with on_stage(Recorder(ended()), DetailsScreen("base")) as (app, pilot):
        for keys, name in (
            ("right", "idea"),
            ("right_square_bracket", "build"),
            ("left", "idea"),
            ("left_square_bracket", "base"),
            ("left", "later"),
            ("right", "base"),
        ):
            await pilot.press(keys)
            await until(pilot, lambda name=name: app.text.lstrip().startswith(name))
        await pilot.press("escape")
        assert not isinstance(app.screen, DetailsScreen)


async def test_y_copies_the_command():
    async with on_stage(Recorder(ended()), DetailsScreen("idea")) as (app, pilot):
        await pilot.press("y")
        assert app.copied == "NCCL_ALGO='plain words' python3 -m sglang.launch_server --tp 8 'a b'"


async def test_u_takes_back_the_newest_note():
    noted = play(
        ended(),
        ev.NoteWritten(at=160.0, experiment="idea", text="the fans were loud"),
        ev.NoteWritten(at=170.0, experiment="idea", text="so was I"),
    )
    source = Recorder(noted)
    async with on_stage(source, DetailsScreen("idea"), (80, 24)) as (app, pilot):
        assert "u take back note" in app.text
        await pilot.press("u")
        assert source.submitted == [ev.NoteTakenBack(at=1000.0, experiment="idea", written_at=170.0)]
        app.refresh_state(play(noted, *source.submitted))
        await until(pilot, lambda: "so was I" not in app.text.split("taken back")[0])
        await pilot.press("u")
        app.refresh_state(play(noted, *source.submitted))
        await until(pilot, lambda: "u take back note" not in app.text)
        await pilot.press("u")
    assert [wish.written_at for wish in source.submitted] == [170.0, 160.0]


async def test_a_note_stays_where_nothing_can_be_changed():
    noted = play(ended(), ev.NoteWritten(at=160.0, experiment="idea", text="the fans were loud"))
    source = Recorder(noted, read_only="a recording: nothing can be changed")
    async with on_stage(source, DetailsScreen("idea")) as (app, pilot):
        assert "the fans were loud" in await whole_page(app, pilot)
        await pilot.press("u")
        assert "take back" not in app.text and not source.submitted


@pytest.mark.parametrize(("there", "back"), [("end", "home"), ("pagedown", "pageup"), ("down", "up")])
async def test_scrolling_by_keys(there, back):
    async with on_stage(Recorder(ended()), DetailsScreen("idea"), (80, 24)) as (app, pilot):
        await pilot.press(there)
        await until(pilot, lambda: page(app).scroll_y > 0)
        await pilot.press(back)
        await until(pilot, lambda: page(app).scroll_y == 0)


async def test_a_load_grows_on_the_page_and_the_scroll_stays():
    state = loading(begun(), "base", "s-01", 1000.0)
    source = Recorder(state, time=1006.0)
    async with on_stage(source, DetailsScreen("base"), (80, 16)) as (app, pilot):
        await pilot.press("end")
        await until(pilot, lambda: page(app).scroll_y == page(app).max_scroll_y > 0)
        assert "1.0s" in app.text
        last = app.text.splitlines()[-3]
        source.time = 1008.0
        app.refresh_state()
        await until(pilot, lambda: "3.0s" in app.text)
        state = play(state, ev.PhaseEntered(at=1009.0, launch="s-01", phase=Phase.KV_CACHE, remaining_s=None))
        app.refresh_state(state)
        await until(pilot, lambda: "kv-cache" in app.text)
        assert page(app).scroll_y > 0
        assert last in app.text


async def test_what_grows_above_does_not_push_the_text_away():
    state = loading(ended(), "later", "s-03", 1000.0)
    source = Recorder(state, time=1006.0)
    async with on_stage(source, DetailsScreen("later"), (80, 14)) as (app, pilot):
        await pilot.press("end")
        await until(pilot, lambda: page(app).scroll_y == page(app).max_scroll_y > 0)
        page(app).scroll_relative(y=-2, animate=False)
        await until(pilot, lambda: page(app).scroll_y == page(app).max_scroll_y - 2)
        assert "load-weights" not in "\n".join(app.text.splitlines()[1:])
        before = app.text.splitlines()[1:]
        height = page(app).max_scroll_y
        app.refresh_state(
            play(state, ev.PhaseEntered(at=1009.0, launch="s-03", phase=Phase.KV_CACHE, remaining_s=None))
        )
        await until(pilot, lambda: page(app).max_scroll_y > height)
        await until(pilot, lambda: [line[:70] for line in app.text.splitlines()[1:]] == [line[:70] for line in before])


async def test_an_experiment_that_is_gone_gives_way():
    source = Recorder(
        play(
            begun(),
            ev.ExperimentAdded(at=101.0, spec=begun().experiments["idea"].spec.model_copy(update={"id": "mine"})),
        )
    )
    async with on_stage(source, DetailsScreen("mine")) as (app, pilot):
        app.refresh_state(begun())
        await until(pilot, lambda: app.text.lstrip().startswith("base"))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
async def test_text_that_tries_to_act_is_only_text(text):
    async with on_stage(Recorder(ended(text)), DetailsScreen("base"), (80, 24)) as (app, pilot):
        for _ in range(3):
            assert "\x1b" not in app.text and "\u202e" not in app.text
            await pilot.press("end")
            await pilot.click(page(app), offset=(5, 5))
            await pilot.press("right")
        assert app.is_running and app.copied == ""
