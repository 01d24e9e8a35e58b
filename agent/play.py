"""Plays a session in front of a person: live, as lines or on the screen, or a recorded one on the screen."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.events import Ending
from agent.diagnostics import Exit, UserError
from agent.headless import Printer, summary
from agent.journal.journal import JournalError
from agent.playbook.model import Playbook
from agent.playbook.not_carried_out import not_carried_out
from agent.ports import TargetUnusable
from agent.redact import Redactor
from agent.replay import Recording
from agent.run import Options, open_session, redactor, run_session
from agent.servers.known_flags import known_flags
from agent.text import one_line

if TYPE_CHECKING:
    from tui.source import Live
    from tui.start import Running

Out = Callable[[str], None]

_EXITS = {"completed": Exit.OK, "interrupted": Exit.INTERRUPTED, "target-lost": Exit.TARGET_UNUSABLE}


def play(playbook: Playbook, source: str, options: Options, out: Out) -> Exit:
    """Run a playbook to its end: on the screen if the session is attended, else as lines. Raises UserError."""
    run = _on_screen if options.attended else _as_lines
    try:
        ending, folder = asyncio.run(run(playbook, source, options, tuple(not_carried_out(playbook)), out))
    except TargetUnusable as error:
        raise UserError(str(error), error.hint, Exit.TARGET_UNUSABLE) from error
    except JournalError as error:
        raise UserError(str(error), error.hint, Exit.INTERNAL) from error
    out(f"journal: {folder}")
    return _EXITS[ending]


async def _as_lines(
    playbook: Playbook, source: str, options: Options, notes: tuple[str, ...], out: Out
) -> tuple[Ending, Path]:
    state, folder = await run_session(playbook, source, options, Printer(out), notes)
    return state.ending or "completed", folder.path


async def _on_screen(
    playbook: Playbook, source: str, options: Options, notes: tuple[str, ...], out: Out
) -> tuple[Ending, Path]:
    # A run without a screen need not wait for it.
    from tui.start import Fault, show_session

    @asynccontextmanager
    async def opened(live: "Live") -> AsyncIterator["tuple[Running, Path]"]:
        live.redact = redactor(playbook)
        live.known_flags = known_flags(playbook.server.kind)
        async with open_session(playbook, source, options, live, notes, live.watch_gpus) as (engine, folder):
            yield engine, folder.path

    try:
        shown = await show_session(opened, options.keep, (JournalError,))
    except Fault as error:
        raise UserError(str(error), error.hint, Exit.INTERNAL) from error
    for line in summary(shown.state, shown.end, shutil.get_terminal_size().columns):
        out(line)
    return shown.end.ending, shown.folder


def show_recording(recording: Recording, folder: Path) -> None:
    """Review a recorded session on the screen until the person leaves. Raises UserError."""
    from tui.app import TunebotApp
    from tui.replay_source import ReplaySource
    from tui.screens.replay import ReplayScreen

    app = TunebotApp(ReplaySource(recording, folder, Redactor.of(os.environ)), ReplayScreen)
    app.run()
    if app.fault is not None:
        text = one_line(f"a fault in tunebot: {type(app.fault).__name__}: {app.fault}")
        raise UserError(text, "the lines of the session: tunebot replay --headless", Exit.INTERNAL)
