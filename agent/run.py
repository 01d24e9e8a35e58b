"""Puts a session together: target, server kind, effects, journal, engine; and runs it to its end."""

import asyncio
import getpass
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from agent import __version__
from agent.bench.bencher import HttpBencher
from agent.core import events as ev
from agent.core.state import State
from agent.effects import TargetEffects
from agent.engine import Engine, Listener
from agent.history import LoadHistoryFile
from agent.journal.journal import Journal
from agent.launching import Launcher
from agent.paths import history_file
from agent.playbook.model import Env, Playbook
from agent.ports import Target
from agent.redact import Redactor, redact_tree
from agent.research.ask import Asker
from agent.research.researcher import TargetResearcher
from agent.servers import server_kind
from agent.session import SessionFolder
from agent.targets.choose import open_target
from agent.telemetry import Tell, telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line decides about a run."""

    target: str | None
    approved: tuple[str, ...]
    keep: bool
    logs: Path
    attended: bool = False


@asynccontextmanager
async def open_session(
    playbook: Playbook,
    source: str,
    options: Options,
    listen: Listener,
    notes: tuple[str, ...] = (),
    gpus: Tell | None = None,
) -> AsyncIterator[tuple[Engine, SessionFolder]]:
    """A session that is ready to run: `engine.run()` plays it to its end. `gpus` is told what the GPUs do meanwhile.

    Raises TargetUnusable where the target cannot be used, JournalError where the journal cannot be written.
    """
    folder = SessionFolder.create(options.logs, playbook.name)
    target = open_target(options.target, playbook, folder.path)
    try:
        start = ev.SessionStarted(
            at=time.time(),
            session=folder.id,
            playbook=playbook,
            host=await target.host(),
            approved=options.approved,
            keep=options.keep,
            attended=options.attended,
            seed=secrets.randbelow(1 << 31),
            version=__version__,
        )
        redact = redactor(playbook)
        folder.keep_playbook(redact(source))
        journal = Journal(folder.path, lambda value: redact_tree(redact, value))
        try:
            async with httpx.AsyncClient(trust_env=False) as http:
                effects = _effects(playbook, target, start, folder, redact, http)
                engine = Engine(start, journal, effects, listen)
                target.reach.tell(lambda why: engine.submit(_link_event(why)))
                for note in notes:
                    engine.submit(ev.Noted(at=time.time(), text=note))
                async with telemetry(target, lambda: engine.state, gpus):
                    yield engine, folder
        finally:
            journal.close()
    finally:
        await target.close()


async def run_session(
    playbook: Playbook, source: str, options: Options, listen: Listener, notes: tuple[str, ...] = ()
) -> tuple[State, SessionFolder]:
    """Run a playbook to its end without a screen. SIGINT and SIGTERM wind it up in order.

    Raises what `open_session` and `Engine.run` raise.
    """
    async with open_session(playbook, source, options, listen, notes) as (engine, folder):
        with _signals(lambda: engine.submit(ev.InterruptRequested(at=time.time(), keep=options.keep))):
            return await engine.run(), folder


def _effects(
    playbook: Playbook,
    target: Target,
    start: ev.SessionStarted,
    folder: SessionFolder,
    redact: Redactor,
    http: httpx.AsyncClient,
) -> TargetEffects:
    kind = server_kind(playbook.server.kind, http)
    launcher = Launcher(
        target=target,
        kind=kind,
        folder=folder,
        history=LoadHistoryFile(history_file()),
        redact=redact,
        owner=f"{getpass.getuser()} {start.session}",
    )
    return TargetEffects(
        target=target,
        kind=kind,
        launcher=launcher,
        researcher=TargetResearcher(target, start.host, redact, Asker.from_env(os.environ)),
        bencher=HttpBencher(record=folder.add_measurement),
    )


def _link_event(why: str | None) -> ev.Event:
    return ev.LinkRestored(at=time.time()) if why is None else ev.LinkLost(at=time.time(), reason=why)


def redactor(playbook: Playbook) -> Redactor:
    """Takes out of a text what the environment and the playbook keep secret."""
    return Redactor.of(os.environ, _secrets_of(playbook))


def _secrets_of(playbook: Playbook) -> list[tuple[str, str]]:
    envs: list[Env] = [playbook.server.env, *(e.env for e in playbook.experiments)]
    envs += [e.server.env for e in playbook.experiments if e.server]
    args = [playbook.server.args, *(e.args for e in playbook.experiments)]
    return [(name, value) for group in (*envs, *args) for name, value in group.items() if isinstance(value, str)]


class _signals:
    """While inside, SIGINT and SIGTERM call `interrupt` instead of killing tunebot."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
