"""The engine and the app side by side: who ends whom, and what is left when one of them breaks."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from agent.core import events as ev
from agent.core.state import State
from agent.journal.journal import JournalError
from tests.tui.kit import Session, story, until
from tui.app import TunebotApp
from tui.screens.run import RunScreen
from tui.source import Live
from tui.start import Fault, Running, show_session
from tui.widgets.header import Header

Act = Callable[[TunebotApp, Pilot[Any]], Any]


class Engine:
    """Reduces what it is given, and ends with its session; `breaks` is raised by the first event from outside."""

    def __init__(self, session: Session, live: Live, breaks: Exception | None = None) -> None:
        self.session, self.live, self.breaks = session, live, breaks
        self.inbox: asyncio.Queue[ev.Event] = asyncio.Queue()
        self.seen: list[ev.Event] = []
        self._tell(ev.Noted(at=session.at, text="begin"))

    def submit(self, event: ev.Event) -> None:
        """Hand in an event."""
        self.inbox.put_nowait(event)

    async def run(self) -> State:
        """Until the session has ended. A stop takes a moment."""
        while not self.session.state.ending:
            event = await self.inbox.get()
            self.seen.append(event)
            if self.breaks:
                raise self.breaks
            self.session.give(event)
            self._tell(event)
            if self.session.state.current and self.session.state.current.stage == "stopping":
                await asyncio.sleep(0.05)
                self.session.stopped()
        state = self.session.state
        self._tell(ev.SessionEnded(at=state.now, ending=state.ending or "completed", serving=None))
        return state

    def _tell(self, event: ev.Event) -> None:
        self.live(self.session.state, event, self.session.state)


class Stage:
    """Opens a session for `show_session`, and acts on the app as soon as it is drawn."""

    def __init__(self, folder: Path, act: Act, breaks: Exception | None = None) -> None:
        self.session = story("loading", folder)
        self.act, self.breaks = act, breaks
        self.closed = False
        self.engine: Engine | None = None

    @asynccontextmanager
    async def open(self, live: Live) -> AsyncIterator[tuple[Running, Path]]:
        """The session."""
        self.engine = Engine(self.session, live, self.breaks)
        try:
            yield self.engine, self.session.folder
        finally:
            self.closed = True


@pytest.fixture(autouse=True)
def headless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app runs without a terminal; the stage acts on it."""
    original = TunebotApp.run_async

    async def run(app: TunebotApp, **_: Any) -> None:
        await original(app, headless=True, size=(120, 40), auto_pilot=app.act)  # type: ignore[attr-defined]

    monkeypatch.setattr(TunebotApp, "run_async", run)


async def show(stage: Stage, monkeypatch: pytest.MonkeyPatch, keep: bool = False, live: Live | None = None) -> Any:
    """Show the stage's session."""

    async def act(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, TunebotApp)
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app._shown[0] >= 0)
        result = stage.act(app, pilot)
        if result is not None:
            await result
        await until(pilot, lambda: not app.is_running or app._exit)

    monkeypatch.setattr(TunebotApp, "act", staticmethod(act), raising=False)
    return await show_session(stage.open, live or Live(), keep, (JournalError,))


async def test_leaving_stops_the_server_and_ends_with_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, lambda app, pilot: pilot.press("ctrl+q", "s"))
    shown = await show(stage, monkeypatch)
    assert stage.engine is not None and stage.closed
    assert [type(event) for event in stage.engine.seen] == [ev.InterruptRequested]
    assert (shown.state.ending, shown.end.ending, shown.folder) == ("interrupted", "interrupted", tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_winds_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    stage = Stage(tmp_path, lambda app, pilot: os.kill(os.getpid(), number))
    shown = await show(stage, monkeypatch, keep=True)
    assert stage.engine is not None
    assert [getattr(event, "keep", None) for event in stage.engine.seen] == [False]
    assert shown.state.ending == "interrupted"


async def test_a_journal_that_cannot_be_written_closes_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, lambda app, pilot: pilot.press("p"), JournalError("no space left", "free some"))
    with pytest.raises(JournalError, match="no space left"):
        await show(stage, monkeypatch)
    assert stage.closed and not (tmp_path / "fault.txt").exists()


async def test_a_fault_of_the_engine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, lambda app, pilot: pilot.press("p"), ValueError("what\never"))
    with pytest.raises(Fault, match="a fault in tunebot: ValueError: what ever") as caught:
        await show(stage, monkeypatch)
    assert str(tmp_path) in caught.value.hint
    assert "Traceback" in (tmp_path / "fault.txt").read_text()


@pytest.mark.parametrize("keep", [True, False])
async def test_a_screen_that_breaks_winds_up_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: bool
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("in a widget")

    def act(app: TunebotApp, pilot: Pilot[Any]) -> None:
        app.screen.show = broken  # type: ignore[attr-defined]
        app._shown = (-1, -1)

    stage = Stage(tmp_path, act)
    with pytest.raises(Fault, match="ZeroDivisionError: in a widget"):
        await show(stage, monkeypatch, keep)
    assert stage.engine is not None and stage.closed
    assert [getattr(event, "keep", None) for event in stage.engine.seen] == [keep]
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert "ZeroDivisionError" in (tmp_path / "fault.txt").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_leaves_a_session_that_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    stage = Stage(tmp_path, lambda app, pilot: os.kill(os.getpid(), number))
    shown = await show(stage, monkeypatch, live=Live(elsewhere=True))
    assert stage.engine is not None and stage.closed
    assert stage.engine.seen == [] and shown.end is None and not shown.state.interrupted


@pytest.mark.parametrize(
    ("keys", "submitted"),
    [
        (("q", "enter"), []),
        (("ctrl+q", "d"), []),
        (("q", "escape", "q", "right", "enter"), [False]),
        (("q", "e"), [False]),
    ],
)
async def test_leaving_a_session_that_runs_elsewhere_asks_whether_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], submitted: list[bool]
) -> None:
    stage = Stage(tmp_path, lambda app, pilot: pilot.press(*keys))
    shown = await show(stage, monkeypatch, live=Live(elsewhere=True))
    assert stage.engine is not None
    assert [getattr(event, "keep", None) for event in stage.engine.seen] == submitted
    assert (shown.end is not None) == bool(submitted)


async def test_a_read_only_screen_asks_nothing_and_stays_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(app: TunebotApp, pilot: Pilot[Any]) -> None:
        assert "read-only" in app.screen.query_one(Header).content.plain  # type: ignore[union-attr]
        assert stage.engine is not None
        stage.engine.submit(ev.InterruptRequested(at=stage.session.at, keep=False))
        await until(pilot, lambda: "ended: interrupted" in app.screen.query_one(Header).content.plain)  # type: ignore[union-attr]
        await pilot.press("q")

    stage = Stage(tmp_path, act)
    shown = await show(stage, monkeypatch, live=Live(elsewhere=True, read_only="another tunebot runs it"))
    assert shown.end is not None
