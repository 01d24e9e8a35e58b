"""Shows a session: the engine and the app side by side, and each one's end."""

import asyncio
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.core import events as ev
from agent.core.state import State
from agent.text import one_line
from tui.app import TunebotApp
from tui.driver import LastingDriver
from tui.garbage import calm_garbage_collector
from tui.source import Live

FAULT_FILE = "fault.txt"


class Running(Protocol):
    """The part of an engine that the screen needs."""

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
    """A session that was shown to its end."""

    state: State
    end: ev.SessionEnded
    folder: Path


Open = Callable[[Live], AbstractAsyncContextManager[tuple[Running, Path]]]


async def show_session(open_session: Open, keep: bool, expected: tuple[type[Exception], ...] = ()) -> Shown:
    """Open a session, play it and show it until a person leaves; then wait for its end.

    `open_session` gets the listener, and gives the engine and the session's folder. `keep` decides what becomes of the
    server where the screen breaks. Raises what opening raises, those of the engine's errors that are `expected`, and
    Fault for all others.
    """
    live = Live()
    async with open_session(live) as (engine, folder):
        live.connect(engine.submit, folder)
        app = TunebotApp(live, driver_class=LastingDriver)
        playing = asyncio.create_task(engine.run(), name="engine")
        playing.add_done_callback(lambda _: app.exit())
        calm_garbage_collector()
        with _signals(lambda: live.submit(ev.InterruptRequested(at=time.time(), keep=False))):
            try:
                await app.run_async()
            finally:
                if not playing.done():
                    live.submit(ev.InterruptRequested(at=time.time(), keep=keep))
                await asyncio.wait([playing])
    error = playing.exception()
    if error is not None and isinstance(error, expected):
        raise error
    if broken := error or app.fault:
        _keep_fault(broken, folder)
        raise Fault(broken, folder) from broken
    assert live.end is not None, "an engine returns after the last event of its session"
    return Shown(state=playing.result(), end=live.end, folder=folder)


def _keep_fault(error: BaseException, folder: Path) -> None:
    fd = os.open(folder / FAULT_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        file.writelines(traceback.format_exception(error))


@contextmanager
def _signals(interrupt: Callable[[], None]) -> Iterator[None]:
    """While inside, the signals that ask a program to end wind the session up."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
