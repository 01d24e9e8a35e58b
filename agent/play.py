"""Plays a session in front of a person: live, as lines or on the screen, here or elsewhere, or a recorded one."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent.config.screen import look_of
from agent.control.client import Attached, attached
from agent.control.doors import door_to
from agent.control.onlooker import Onlooker, looking_on
from agent.control.places import Note, check_place, socket_of, told
from agent.core import events as ev
from agent.core.state import State
from agent.core.views.entries import PlaybookEntry, SessionEntry
from agent.core.views.panels import GpuUse
from agent.dead_ends import read_dead_ends
from agent.detach import Ready, detach
from agent.diagnostics import Exit, UserError, complain
from agent.engine import Engine, Listener
from agent.exits import exit_of
from agent.flags_help import FlagHelp
from agent.headless import Form, Printer, summary
from agent.hosts import ask_host, host_entries
from agent.journal.journal import JournalError
from agent.playbook.model import Playbook
from agent.playbook.not_carried_out import not_carried_out
from agent.ports import TargetUnusable
from agent.redact import Redactor, redactor
from agent.replay import Recording
from agent.run import Options, open_session, reopen_session, resume_session, run_session
from agent.servers.known_flags import known_flags
from agent.session import SessionFolder
from agent.targets.places import Unfit
from agent.telemetry import Tell
from agent.text import one_line

if TYPE_CHECKING:
    from tui.screens.start import Choice
    from tui.source import Live
    from tui.start import Running, Shown

Out = Callable[[str], None]
Way = Literal["screen", "lines", "detached"]
"""How a session is played: in front of a person, as lines, or in a process of its own."""


@dataclass(frozen=True, slots=True)
class _Session:
    """A session to play: how it is opened to be shown, and how it is run as lines."""

    open: Callable[[Listener, Tell | None], AbstractAsyncContextManager[tuple[Engine, SessionFolder]]]
    run: Callable[[Listener], Coroutine[Any, Any, tuple[State, SessionFolder]]]


def play(playbook: Playbook, source: str, options: Options, way: Way, out: Out, form: Form) -> Exit:
    """Run a playbook to its end; a detached one is left as soon as it runs. Raises UserError."""
    notes = tuple(not_carried_out(playbook))
    session = _Session(
        lambda listen, gpus: open_session(playbook, source, options, listen, notes, gpus),
        lambda listen: run_session(playbook, source, options, listen, notes),
    )
    return _play(session, options, way, out, form)


def resume(folder: Path, options: Options, way: Way, out: Out, form: Form, playbook: Playbook | None = None) -> Exit:
    """Go on with a session, as `play`. `playbook` is needed where it holds secrets."""
    session = _Session(
        lambda listen, gpus: reopen_session(folder, options, listen, gpus, playbook),
        lambda listen: resume_session(folder, options, listen, playbook),
    )
    return _play(session, options, way, out, form)


def _play(session: _Session, options: Options, way: Way, out: Out, form: Form) -> Exit:
    if way == "detached":
        detach(partial(_work, session, options), partial(_announce, out))
        return Exit.OK
    with _in_words():
        if way == "lines":
            state, kept = asyncio.run(session.run(Printer(out, form)))
            folder = kept.path
        else:
            shown = asyncio.run(_on_screen(session, options))
            _sum_up(shown, out)
            state, folder = shown.state, shown.folder
    out(form.folder(folder, time.time()))
    return exit_of(state)


@contextmanager
def _in_words() -> Iterator[None]:
    """What keeps a session from going on, as people see it."""
    try:
        yield
    except TargetUnusable as error:
        raise UserError(str(error), error.hint, Exit.TARGET_UNUSABLE) from error
    except JournalError as error:
        raise UserError(str(error), error.hint, Exit.INTERNAL) from error


async def _on_screen(session: _Session, options: Options) -> "Shown":
    # A run without a screen need not wait for it.
    from tui.source import Live

    @asynccontextmanager
    async def opened(live: Live) -> AsyncIterator["tuple[Running, Path]"]:
        async with session.open(live, live.watch_gpus) as (engine, folder):
            engine.on_trouble = live.tell_trouble
            live.redact = redactor(engine.state.playbook)
            live.known_flags = known_flags(engine.state.playbook.server.kind)
            live.flag_facts = FlagHelp.of(engine.state)
            yield engine, folder.path

    return await _shown(opened, Live(), options.keep)


async def _shown(
    opened: "Callable[[Live], AbstractAsyncContextManager[tuple[Running, Path]]]", live: "Live", keep: bool = False
) -> "Shown":
    from tui.start import Fault, show_session

    try:
        expected = (JournalError, TargetUnusable, UserError)
        return await show_session(opened, live, keep, expected, look_of(os.environ))
    except Fault as error:
        raise UserError(str(error), error.hint, Exit.INTERNAL) from error


def _sum_up(shown: "Shown", out: Out) -> None:
    assert shown.end is not None, "a session of this process is shown to its end"
    for line in summary(shown.state, shown.end, shutil.get_terminal_size().columns):
        out(line)


def _work(session: _Session, options: Options, ready: Ready) -> None:
    """The detached process, until the session has ended."""
    try:
        check_place(socket_of(options.logs))
    except Unfit as error:
        raise UserError(f"nobody could attach to the session: {error}", error.hint) from error
    with _in_words():
        asyncio.run(_by_itself(session, options, ready))


async def _by_itself(session: _Session, options: Options, ready: Ready) -> None:
    async with session.open(lambda before, event, after: None, None) as (engine, folder):
        if not socket_of(folder.path).exists():
            raise UserError("nobody could attach to the session", f"is there room in {socket_of(folder.path).parent}?")
        ready(folder.path)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(
                number, lambda: engine.submit(ev.InterruptRequested(at=time.time(), keep=options.keep))
            )
        await engine.run()


def _announce(out: Out, folder: Path) -> None:
    out(f"session {folder.name} runs detached")
    out(f"journal: {folder}")
    out(f"attach: tunebot attach {folder.name}")


def attach(wanted: str | None, host: str | None, on_screen: bool, out: Out, form: Form) -> Exit:
    """Show and steer a session that runs in another process; on the screen until the person leaves. Raises UserError.

    `wanted` is its id, the beginning of that, or its folder; without, the newest.
    """
    with _in_words():
        if on_screen:
            return asyncio.run(_attach_on_screen(wanted, host, out))
        return asyncio.run(_attach_as_lines(wanted, host, _Lines(out, form)))


async def _attach_on_screen(wanted: str | None, host: str | None, out: Out) -> Exit:
    from tui.source import Live

    live = Live(elsewhere=True)
    async with door_to(wanted, host, live.tell_trouble) as (door, all_there):
        _name_others(wanted, door.note, all_there)
        shown = await _shown_elsewhere(lambda: attached(door, live), live)
    if shown.end is not None:
        _sum_up(shown, out)
        return exit_of(shown.state)
    where = f" --host {host}" if host else ""
    out(f"detached; the session goes on: tunebot attach {door.note.session}{where}")
    return Exit.OK


async def _attach_as_lines(wanted: str | None, host: str | None, lines: "_Lines") -> Exit:
    async with door_to(wanted, host, lines.tell_trouble) as (door, all_there):
        _name_others(wanted, door.note, all_there)
        async with attached(door, lines) as (session, _):
            state = await session.run()
    return exit_of(state)


def _name_others(wanted: str | None, note: Note, all_there: Sequence[Note]) -> None:
    if wanted is None and len(all_there) > 1:
        listed = "\n        ".join(map(told, all_there))
        complain(
            f"{len(all_there)} sessions run; this is the newest, {note.session}", f"name another one:\n        {listed}"
        )


def look_on(folder: Path, on_screen: bool, out: Out, form: Form) -> Exit:
    """Show a session that another tunebot runs, from its journal: nothing can be changed. Raises UserError."""
    try:
        return asyncio.run(_look_on_screen(folder, out) if on_screen else _look_as_lines(folder, _Lines(out, form)))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {folder}: {one_line(str(error))}") from error


async def _look_on_screen(folder: Path, out: Out) -> Exit:
    from tui.source import Live

    refusal = "another tunebot runs this session; tunebot attach steers it"
    live = Live(elsewhere=True, read_only=refusal)
    shown = await _shown_elsewhere(lambda: looking_on(folder, live), live)
    if shown.end is not None:
        _sum_up(shown, out)
    return Exit.OK


async def _look_as_lines(folder: Path, lines: "_Lines") -> Exit:
    async with looking_on(folder, lines) as (session, _):
        await session.run()
    return Exit.OK


async def _shown_elsewhere(
    follow: Callable[[], AbstractAsyncContextManager[tuple[Attached | Onlooker, Path]]], live: "Live"
) -> "Shown":
    @asynccontextmanager
    async def opened(live: "Live") -> AsyncIterator["tuple[Running, Path]"]:
        async with follow() as (session, folder):
            # What the other process keeps secret is not known here; what looks like a secret is.
            live.redact = Redactor.of(os.environ)
            live.known_flags = known_flags(live.state.playbook.server.kind)
            live.flag_facts = FlagHelp.of(live.state)
            yield session, folder

    return await _shown(opened, live)


class _Lines(Printer):
    """Who reads a session that runs elsewhere as lines."""

    def watch_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        """No line tells it."""

    def tell_trouble(self, text: str) -> None:
        """To stderr, so that the lines stay those of the session."""
        if text:
            complain(text)

    def set_clock(self, ahead_s: float) -> None:
        """Lines have the times of their events."""


def show_recording(
    recording: Recording, folder: Path, *, at: float | None = None, follow: str = "", trouble: str = ""
) -> None:
    """Review a recorded session on the screen until the person leaves. Raises UserError.

    `at` is a recorded time to pause at, `follow` an experiment, `trouble` what of the journal could not be read.
    """
    from tui.app import TunebotApp
    from tui.replay_source import ReplaySource
    from tui.screens.replay import ReplayScreen

    source = ReplaySource(recording, folder, Redactor.of(os.environ), trouble=trouble)
    source.follow(follow)
    if at is not None:
        source.open_at(at)
    app = TunebotApp(source, ReplayScreen, look=look_of(os.environ))
    app.run()
    if app.fault is not None:
        text = one_line(f"a fault in tunebot: {type(app.fault).__name__}: {app.fault}")
        raise UserError(text, "the lines of the session: tunebot replay --headless", Exit.INTERNAL)


def choose(playbooks: Sequence[PlaybookEntry], sessions: Iterator[SessionEntry], chosen: str) -> "Choice | None":
    """Let a person choose; `chosen` is the folder of the session to begin at. None where the person left."""
    from tui.screens.start import Hosts
    from tui.start_app import StartApp

    hosts = Hosts(entries=host_entries(), ask=ask_host, known=read_dead_ends)
    return StartApp(playbooks, sessions, f"session {chosen}", look_of(os.environ), hosts).run()
