"""The list of known dead ends, on the run screen and before a session."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App

from agent.core import events as ev
from agent.core.known import to_remember
from agent.core.scope import KnownDeadEnd
from agent.core.state import State
from agent.core.views.dead_ends import remembered
from tests.core.conftest import HOST, World, started
from tests.core.test_scope import BIN, BOOK, CU130, again, played, read
from tests.tui.kit import Session
from tests.tui.stage import Recorder, on_stage, until
from tests.tui.states import HOSTILE
from tui.app import TunebotApp
from tui.screens.dead_ends import DeadEndsScreen
from tui.screens.known import KnownScreen
from tui.widgets.board import Board

SIZES = [(80, 24), (100, 30), (120, 40), (200, 60)]


@pytest.fixture
def ended() -> State:
    return read(played(World()), "", BIN, CU130)


@pytest.fixture
def known(ended: State) -> tuple[KnownDeadEnd, ...]:
    return tuple(to_remember(ended))


def drawn(app: App[None]) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def told(app: App[None]) -> list[str]:
    return [note.message for note in app._notifications]


@pytest.mark.parametrize("size", SIZES)
async def test_each_is_told_with_whether_it_holds_and_why(size: tuple[int, int], ended: State) -> None:
    async with on_stage(Recorder(ended), DeadEndsScreen(), size) as (app, _):
        for words in (
            "THIS SESSION",
            "! may not hold  fusion",
            "flashinfer 0.6.3 → 0.7.2",
            "✖ holds",
            "r tries it again",
        ):
            assert words in app.text, words


async def test_r_tries_it_again_where_it_may_not_hold(ended: State) -> None:
    source = Recorder(ended)
    async with on_stage(source, DeadEndsScreen()) as (app, pilot):
        await pilot.press("r")
        assert source.submitted == [ev.DeadEndReopened(at=1000.0, experiment="fusion", base="cuda13")]
        assert told(app) == ["fusion is back in TODO"]


async def test_what_cannot_come_back_says_why(known: tuple[KnownDeadEnd, ...]) -> None:
    source = Recorder(again(known))
    async with on_stage(source, DeadEndsScreen()) as (app, pilot):
        await until(pilot, lambda: "EARLIER SESSIONS ON THIS HOST" in app.text)
        await pilot.press("r")
        assert "is in line already" in told(app)[0] and source.submitted == []


@pytest.mark.parametrize("closed", ["read_only", "interrupted"])
async def test_nothing_changes_in_a_session_that_cannot_be_changed(closed: str, ended: State) -> None:
    source = Recorder(ended, read_only="a replay changes nothing") if closed == "read_only" else Recorder(ended)
    source.state = replace(ended, interrupted=closed == "interrupted")
    async with on_stage(source, DeadEndsScreen()) as (app, pilot):
        await pilot.press("r")
        words = "a replay changes nothing" if closed == "read_only" else "the session is ending"
        assert told(app) == [words] and source.submitted == []


async def test_the_chosen_one_stays_chosen(ended: State) -> None:
    async with on_stage(Recorder(ended), DeadEndsScreen()) as (app, pilot):
        await pilot.press("down")
        await until(pilot, lambda: "▌! may not hold  deepep" in app.text)
        app.refresh_state(read(ended, BIN, flashinfer="0.6.17"))
        await until(pilot, lambda: "▌! may not hold  deepep" in app.text)


async def test_nothing_known(ended: State) -> None:
    async with on_stage(Recorder(again(())), DeadEndsScreen(), (80, 24)) as (app, _):
        assert "nothing is known to be a dead end here" in app.text


@pytest.mark.parametrize("text", HOSTILE[:6])
async def test_texts_are_no_markup(text: str, known: tuple[KnownDeadEnd, ...]) -> None:
    bad = replace(known[0], experiment=text, reason=text, scope={"flashinfer": text, text: "1"}, environment=text)
    async with on_stage(Recorder(again((bad,))), DeadEndsScreen()) as (app, _):
        assert "EARLIER SESSIONS" in app.text and "\x1b" not in app.text


async def test_x_opens_it_and_the_board_says_that_there_is_something(known: tuple[KnownDeadEnd, ...]) -> None:
    session = Session(BOOK, Path())
    session.state = read(again(known, attended=True), BIN, flashinfer="0.6.17")
    app = TunebotApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(
            pilot, lambda: "6 known dead ends, 3 may not hold" in str(app.screen.query_one(Board).border_subtitle)
        )
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, DeadEndsScreen))
        await pilot.press("x")
        await until(pilot, lambda: not isinstance(app.screen, DeadEndsScreen))


async def test_before_a_session_they_are_only_known(known: tuple[KnownDeadEnd, ...]) -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(KnownScreen("gpu8", remembered(known)))
        await until(pilot, lambda: isinstance(app.screen, KnownScreen))
        await until(pilot, lambda: "✖ known" in drawn(app) and "Dead ends on gpu8" in drawn(app))
        assert "holds" not in drawn(app)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, KnownScreen))


def test_a_session_of_another_host_starts_with_nothing() -> None:
    assert not started(BOOK).known and HOST.image == ""
