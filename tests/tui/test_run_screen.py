"""The run screen under keys and events: each key of it, and what stays where it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from agent.core import events as ev
from agent.core.model import Finding
from tests.core.conftest import playbook
from tests.tui.kit import Session, story, until
from tui.app import TunebotApp
from tui.dialogs.ask import AskDialog
from tui.dialogs.confirm import ConfirmDialog
from tui.dialogs.grep import GrepDialog
from tui.dialogs.new import NewDialog
from tui.dialogs.quit import QuitDialog
from tui.screens.details import DetailsScreen
from tui.screens.help import HelpScreen
from tui.screens.log import LogScreen
from tui.screens.needs import NeedsScreen
from tui.screens.research import ResearchScreen
from tui.screens.run import RunScreen
from tui.widgets.background import BackgroundPanel
from tui.widgets.board import Board
from tui.widgets.header import Header
from tui.widgets.log_pane import LogPane
from tui.widgets.server import ServerPanel


class Shown:
    """An app that shows a session, and what a test wants to know of it."""

    def __init__(self, app: TunebotApp, session: Session, pilot: Pilot[Any]) -> None:
        self.app, self.session, self.pilot = app, session, pilot
        self.bells = 0

    @property
    def board(self) -> Board:
        """The board of the run screen."""
        return self.run.query_one(Board)

    @property
    def run(self) -> RunScreen:
        """The run screen, in front or not."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, RunScreen))

    @property
    def told(self) -> list[str]:
        """The messages on the screen."""
        return [note.message for note in self.app._notifications]

    async def press(self, *keys: str) -> None:
        """Type."""
        await self.pilot.press(*keys)

    async def at(self, experiment: str) -> None:
        """Put the cursor on an experiment by keys."""
        rows = [row.experiment for section in self.board._sections for row in section.rows]
        steps = rows.index(experiment) - rows.index(self.board.cursor or "")
        await self.press(*(["down"] * steps if steps > 0 else ["up"] * -steps))
        assert self.board.cursor == experiment

    async def drawn(self) -> None:
        """Wait until the present state is on the screen."""
        await until(self.pilot, lambda: self.app._shown[0] == self.session.version)


@asynccontextmanager
async def shown(session: Session, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Shown]:
    """Show a session."""
    app = TunebotApp(session)
    async with app.run_test(size=size) as pilot:
        made = Shown(app, session, pilot)

        def bell() -> None:
            made.bells += 1

        app.bell = bell  # type: ignore[method-assign]
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.query(Board))
        await made.drawn()
        yield made


@pytest.mark.parametrize("keys", [("down", "down", "up"), ("j", "j", "k")])
async def test_the_cursor_moves(keys: tuple[str, ...]) -> None:
    async with shown(story("third")) as s:
        assert s.board.has_focus and s.board.cursor == "ep-plain"
        await s.press(*keys)
        assert s.board.cursor == "cuda13"
        await s.press(*["down"] * 20)
        assert s.board.cursor == "nccl-tree"
        await s.press(*["up"] * 20)
        assert s.board.cursor == "ep-plain"


async def test_the_cursor_stays_with_its_experiment_wherever_it_moves() -> None:
    async with shown(story("third")) as s:
        await s.at("ep-plain")
        seen = []
        for step in (s.session.loading, s.session.ready, *[lambda v=v: s.session.round(v) for v in (101, 102, 103)]):
            step()
            await s.drawn()
            seen.append((s.board.cursor, s.board.has_focus))
        assert s.session.state.experiments["ep-plain"].verdict
        assert set(seen) == {("ep-plain", True)}
        assert s.board._line_of("ep-plain") == 4, "under RESULTS by now"


async def test_scrolling_survives_updates() -> None:
    book = playbook({"id": "base"}, *({"id": f"try-{n:03}"} for n in range(200)))
    async with shown(Session(book).begin()) as s:
        await s.press(*["pagedown"] * 2)
        before = (s.board.cursor, s.board.scroll_offset.y)
        assert before[1] > 0
        s.session.loading()
        await s.drawn()
        assert (s.board.cursor, s.board.scroll_offset.y) == before


async def test_what_has_no_cursor_any_more_gives_it_to_its_neighbour() -> None:
    async with shown(Session()) as s:
        s.session.state = Session(playbook({"id": "other"})).state
        s.session.version += 1
        await s.drawn()
        assert s.board.cursor == "other"


@pytest.mark.parametrize(
    ("key", "screen"),
    [
        ("enter", DetailsScreen),
        ("a", AskDialog),
        ("g", GrepDialog),
        ("n", NewDialog),
        ("e", ConfirmDialog),
        ("l", LogScreen),
        ("v", ResearchScreen),
        ("y", NeedsScreen),
        ("question_mark", HelpScreen),
        ("ctrl+q", QuitDialog),
    ],
)
async def test_a_key_opens(key: str, screen: type) -> None:
    async with shown(story("third").loading()) as s:
        await s.press(key)
        await until(s.pilot, lambda: isinstance(s.app.screen, screen))
        await s.press("escape")
        await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
        assert s.session.submitted == [] and s.board.has_focus


async def test_a_click_moves_the_cursor_and_a_second_one_opens() -> None:
    async with shown(story("third")) as s:
        await s.pilot.click(Board, offset=(5, 4))
        assert s.board.cursor == "cuda13"
        await s.pilot.click(Board, offset=(5, 4))
        await until(s.pilot, lambda: isinstance(s.app.screen, DetailsScreen))


async def test_skip_and_retry() -> None:
    async with shown(story("third")) as s:
        await s.at("cuda13")
        await s.press("s")
        assert s.session.submitted == [ev.ExperimentSkipped(at=s.session.now(), experiment="cuda13")]
        await s.drawn()
        assert s.board.cursor == "cuda13"
        await s.press("r")
        assert isinstance(s.session.submitted[-1], ev.ExperimentRetried)


@pytest.mark.parametrize(
    ("experiment", "key", "told"),
    [
        ("baseline", "s", "baseline has ended"),
        ("baseline", "r", "baseline is kept: nothing to retry"),
        ("cuda13", "r", "cuda13 has not ended"),
        ("ep-plain", "s", "ep-plain runs: e ends its launch"),
    ],
)
async def test_what_cannot_be_done_is_said(experiment: str, key: str, told: str) -> None:
    async with shown(story("third")) as s:
        await s.at(experiment)
        await s.press(key)
        assert s.session.submitted == [] and s.told == [told]


async def test_pause_and_go_on() -> None:
    async with shown(story("loading")) as s:
        await s.press("p")
        assert s.session.state.paused
        await s.drawn()
        assert "paused" in s.run.query_one(Header).content.plain  # type: ignore[union-attr]
        await s.press("p")
        assert not s.session.state.paused


async def test_ending_a_launch_asks_first() -> None:
    async with shown(story("loading")) as s:
        await s.press("e", "n")
        await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
        assert s.session.submitted == []
        await s.press("e", "y")
        await until(s.pilot, lambda: s.session.submitted)
        assert [type(event) for event in s.session.submitted] == [ev.LaunchAbandoned]
        await s.drawn()
        await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
        await s.press("e")
        assert s.told[-1] == "no launch is up"


async def test_a_launch_that_ended_meanwhile_is_left_alone() -> None:
    async with shown(story("loading")) as s:
        await s.press("e")
        await until(s.pilot, lambda: isinstance(s.app.screen, ConfirmDialog))
        s.session.fail("out of memory").stopped()
        await s.press("y")
        await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
        assert s.session.submitted == [] and s.told == ["that launch has ended already"]


async def test_a_dialog_hands_in_its_event() -> None:
    async with shown(story("loading")) as s:
        await s.at("ep-plain")
        await s.press("a")
        await until(s.pilot, lambda: isinstance(s.app.screen, AskDialog))
        await s.press(*"Does it fit", "enter")
        await until(s.pilot, lambda: s.session.submitted)
        event = s.session.submitted[0]
        assert isinstance(event, ev.ResearchAdded) and event.experiment == "ep-plain"


async def test_a_recording_takes_no_changes() -> None:
    session = story("third")
    session.read_only = "a recording: nothing can be changed"
    async with shown(session) as s:
        for key in "agnsrp":
            await s.press(key)
        assert s.session.submitted == []
        assert set(s.told) == {"a recording: nothing can be changed"}
        await s.press("ctrl+q")
        await until(s.pilot, lambda: not s.app.is_running)


@pytest.mark.parametrize(("key", "keep"), [("k", True), ("s", False)])
async def test_leaving_asks_about_the_server_and_waits_for_the_end(key: str, keep: bool) -> None:
    async with shown(story("loading")) as s:
        await s.press("ctrl+q", key)
        await until(s.pilot, lambda: s.session.submitted)
        assert s.session.submitted == [ev.InterruptRequested(at=s.session.now(), keep=keep)]
        await s.drawn()
        assert s.app.is_running
        if not keep:
            assert "stopping…" in s.run.query_one(Header).content.plain  # type: ignore[union-attr]
            await s.press("ctrl+q")
            assert s.told == ["stopping: the screen closes when the session has ended"]
            await s.press("n")
            assert s.told[-1] == "the session is ending"
        assert len(s.session.submitted) == 1


async def test_leaving_asks_once() -> None:
    async with shown(story("loading")) as s:
        await s.press("ctrl+q")
        await until(s.pilot, lambda: isinstance(s.app.screen, QuitDialog))
        await s.press("ctrl+q")
        assert sum(isinstance(screen, QuitDialog) for screen in s.app.screen_stack) == 1


async def test_a_finished_session_is_left_without_a_question() -> None:
    async with shown(story("finished")) as s:
        await s.press("ctrl+q")
        await until(s.pilot, lambda: s.session.submitted)
        assert isinstance(s.session.submitted[0], ev.InterruptRequested) and s.session.state.ending == "completed"


async def test_the_bell_rings_once_for_what_is_new() -> None:
    book = playbook({"id": "base", "research": [{"ask": "Does it fit?"}]})
    async with shown(Session(book).begin()) as s:
        assert s.bells == 0
        gone = Finding(summary="set ANTHROPIC_API_KEY")
        s.session.give(ev.TaskFinished(at=s.session.at, task="base/1", status="needs-key", finding=gone))
        await s.drawn()
        assert s.bells == 1
        s.session.loading()
        await s.drawn()
        assert s.bells == 1


async def test_the_bell_can_be_turned_off() -> None:
    book = playbook({"id": "base", "research": [{"ask": "Does it fit?"}]})
    async with shown(Session(book).begin()) as s:
        await s.press("B")
        assert s.told == ["the bell is off"]
        gone = Finding(summary="set ANTHROPIC_API_KEY")
        s.session.give(ev.TaskFinished(at=s.session.at, task="base/1", status="needs-key", finding=gone))
        await s.drawn()
        assert s.bells == 0


async def test_the_palette_has_every_key() -> None:
    async with shown(story("loading")) as s:
        titles = " ".join(command.title for command in s.app.get_system_commands(s.app.screen))
        words = ("details", "ask", "grep", "new", "skip", "retry", "pause", "end", "log", "research", "needs", "help")
        for word in (*words, "bell", "quit", "theme"):
            assert word in titles
        assert all(b.binding.id for b in s.app.screen.active_bindings.values() if b.binding.show)
        pause = next(c for c in s.app.get_system_commands(s.app.screen) if c.title.startswith("pause"))
        await pause.callback()  # type: ignore[misc]
        assert s.session.state.paused
        await s.press("ctrl+p")
        await until(s.pilot, lambda: len(s.app.screen_stack) > 2)


async def test_a_narrow_terminal_shows_one_of_two() -> None:
    async with shown(story("loading"), (80, 24)) as s:
        background, log = s.run.query_one(BackgroundPanel), s.run.query_one(LogPane)
        assert (background.display, log.display) == (True, False)
        await s.press("b")
        assert (background.display, log.display) == (False, True)
        await s.press("b")
        await s.pilot.resize_terminal(120, 40)
        await until(s.pilot, lambda: background.display and log.display)
        assert s.board.size.width < 60


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 12), (79, 23), (300, 100)])
async def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    async with shown(story("loading"), size) as s:
        s.session.ready()
        await s.drawn()
        await s.press("down", "pagedown")


async def test_the_screen_follows_behind_a_dialog() -> None:
    async with shown(story("loading")) as s:
        await s.press("a")
        await until(s.pilot, lambda: isinstance(s.app.screen, AskDialog))
        s.session.progress(60, 0.9, 20.0)
        await until(s.pilot, lambda: "90 %" in s.run.query_one(ServerPanel).content.plain)  # type: ignore[union-attr]


async def test_text_from_outside_is_no_markup() -> None:
    nasty = "[/nope] [@click=app.quit]x[/] [bold]\x1b[31mred"
    session = Session(playbook({"id": "base"}, name=nasty)).begin().loading()
    async with shown(session) as s:
        session.fail(nasty)
        await s.drawn()
        assert "[/nope] [@click=app.quit]x[/] [bold]red" in s.run.query_one(ServerPanel).content.plain  # type: ignore[union-attr]
        await s.press("question_mark", "escape")


async def test_the_log_of_the_launch_is_followed(tmp_path: Path) -> None:
    session = story("loading", tmp_path)
    (tmp_path / "launches").mkdir()
    (tmp_path / "launches" / f"{session.launch.id}.log").write_text("Load weight begin.\n")
    async with shown(session) as s:
        pane = s.run.query_one(LogPane)
        await until(s.pilot, lambda: pane.status.rows == 1)
        assert pane.status.title == "Log: baseline · launch 1"


async def test_every_frame_of_a_flood_is_bounded() -> None:
    """A thousand events between two frames cost one drawing."""
    async with shown(story("loading")) as s:
        drawn = 0
        original = s.run.show

        def show(*arguments: Any) -> None:
            nonlocal drawn
            drawn += 1
            original(*arguments)

        s.run.show = show  # type: ignore[method-assign]
        for n in range(1000):
            s.session.progress(n % 64, n / 1000, 100.0)
        await asyncio.sleep(0)
        await s.drawn()
        assert drawn <= 3


async def test_the_panels_have_their_height_at_every_size_at_once() -> None:
    async with shown(story("loading"), (80, 24)) as s:
        panel = s.run.query_one(ServerPanel)
        for size, height in (((120, 40), 7), ((80, 24), 4), ((200, 60), 7)):
            await s.pilot.resize_terminal(*size)
            await until(s.pilot, lambda height=height: panel.outer_size.height == height)
