"""Shows a session: whoever plays it and the app side by side, and each one's end."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.core import events as ev
from agent.core.state import State
from agent.diagnostics import FAULT_FILE, keep_fault
from agent.text import one_line
from tui.app import TunebotApp
from tui.driver import LastingDriver
from tui.garbage import calm_garbage_collector
from tui.look import Look
from tui.source import Live


class Running(Protocol):
    """The part of an engine, or of what stands for one elsewhere, that the screen needs."""

    def submit(self, event: ev.Event) -> None:
        """Hand in an event."""

    async def run(self) -> State:
        """Play the session to its end."""


class Fault(Exception):
    """A mistake of tunebot's own ended the session or its screen. The message is one line."""

    def __init__(self, error: BaseException, folder: Path) -> None:
        super().__init__(f"a fault in tunebot: {type(error).__name__}: {one_line(str(error))}")
        self.hint = f"the session is in {folder}, what went wrong in {FAULT_FILE} there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A session that was shown. `end` is None where it goes on elsewhere."""

    state: State
    end: ev.SessionEnded | None
    folder: Path


Open = Callable[[Live], AbstractAsyncContextManager[tuple[Running, Path]]]


async def show_session(
    open_session: Open,
    live: Live,
    keep: bool,
    expected: tuple[type[Exception], ...] = (),
    look: Look | None = None,
) -> Shown:
    """Open a session, play it and show it until a person leaves; then wait for its end, unless it goes on elsewhere.

    `open_session` gets the listener, and gives the engine and the session's folder. `keep` decides what becomes of the
    server where the screen breaks. Raises what opening raises, those of the engine's errors that are `expected`, and
    Fault for all others.
    """
    async with open_session(live) as (engine, folder):
        live.connect(engine.submit, folder)
        app = TunebotApp(live, driver_class=LastingDriver, look=look)
        playing = asyncio.create_task(engine.run(), name="engine")
        playing.add_done_callback(lambda done: _played(done, live, app))
        calm_garbage_collector()
        with _signals(app.exit if live.elsewhere else lambda: _interrupt(live, keep=False)):
            try:
                await app.run_async()
            finally:
                if live.elsewhere:
                    playing.cancel()
                elif not playing.done():
                    _interrupt(live, keep)
                await asyncio.wait([playing])
    error = None if playing.cancelled() else playing.exception()
    if error is not None and isinstance(error, expected):
        raise error
    if broken := error or app.fault:
        keep_fault(broken, folder)
        raise Fault(broken, folder) from broken
    return Shown(state=live.state, end=live.end, folder=folder)


def _played(task: "asyncio.Task[State]", live: Live, app: TunebotApp) -> None:
    """Close the screen with the session; one that was only looked at can be read to the end."""
    if not live.elsewhere or app.leaving or (not task.cancelled() and task.exception()):
        app.exit()


def _interrupt(live: Live, keep: bool) -> None:
    live.submit(ev.InterruptRequested(at=live.now(), keep=keep))


@contextmanager
def _signals(leave: Callable[[], None]) -> Iterator[None]:
    """While inside, the signals that ask a program to end make it leave the session."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
