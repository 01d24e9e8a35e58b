"""Puts a session together, a new one or one to go on with, and runs it to its end."""

import asyncio
import getpass
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx

from agent import __version__
from agent.bench.bencher import HttpBencher
from agent.bench.guard import HttpGuard
from agent.config.force import with_config
from agent.control.server import serving
from agent.core import events as ev
from agent.core.contract import contract_of
from agent.core.known import to_remember
from agent.core.model import Host
from agent.core.state import State
from agent.core.verdict import Evidence
from agent.dead_ends import keep_dead_ends, read_dead_ends
from agent.diagnostics import complain
from agent.effects import TargetEffects
from agent.engine import Engine, Listener
from agent.history import LoadHistoryFile, NoiseKey
from agent.hostkeys import meet
from agent.journal.journal import Journal
from agent.launching import Launcher
from agent.paths import history_file
from agent.playbook.model import Playbook
from agent.ports import Target
from agent.redact import Redactor, redact_tree, redactor
from agent.research.ask import Asker
from agent.research.facts import Facts, SessionFacts, facts_of
from agent.research.researcher import TargetResearcher
from agent.resume import restore
from agent.servers import server_kind
from agent.session import SessionFolder
from agent.targets.choose import open_target
from agent.targets.holders import wiring
from agent.telemetry import Tell, telemetry
from agent.text import one_line
from agent.versions import facts_read
from agent.watching import Setting


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

    Raises TargetUnusable where the target cannot be used, JournalError where the journal cannot be written, UserError
    where the environment cannot be understood: then nothing was begun.
    """
    asker = Asker.from_env(with_config(os.environ))
    folder = SessionFolder.create(options.logs, playbook.name)
    redact = redactor(playbook)

    def facts() -> SessionFacts:
        return facts_of(engine.state, folder.log_of)

    async with _target(options.target, playbook, folder) as target:
        start = ev.SessionStarted(
            at=time.time(),
            session=folder.id,
            playbook=playbook,
            host=await host_of(target),
            approved=options.approved,
            keep=options.keep,
            attended=options.attended,
            seed=secrets.randbelow(1 << 31),
            version=__version__,
            target=options.target,
            noise=_history().noise(_noise_key(target, playbook)),
            known=read_dead_ends(target.name),
        )
        folder.keep_playbook(redact(source))
        with closing(Journal(folder.path, partial(redact_tree, redact))) as journal:
            async with _effects(
                playbook, target, start.host, folder, redact, options.attended, asker, facts
            ) as effects:
                engine = Engine.begin(start, journal, effects, listen)
                for note in notes:
                    engine.submit(ev.Noted(at=time.time(), text=note))
                async with _tended(engine, target, folder, redact, gpus):
                    yield engine, folder
                _remember(target, engine.state, redact)


@asynccontextmanager
async def reopen_session(
    path: Path,
    options: Options,
    listen: Listener,
    gpus: Tell | None = None,
    playbook: Playbook | None = None,
) -> AsyncIterator[tuple[Engine, SessionFolder]]:
    """A session that was left or cut off, ready to go on; as `open_session`. `path` is its folder.

    `playbook` is needed where it holds secrets, which no journal keeps. Raises ResumeError too, where the session
    cannot go on.
    """
    asker = Asker.from_env(with_config(os.environ))
    folder = SessionFolder(path)

    def facts() -> SessionFacts:
        return facts_of(engine.state, folder.log_of)

    # Nobody else may write from here on: what is read now stays true.
    with closing(Journal(path, partial(redact_tree, Redactor.of(os.environ)))) as journal:
        state = restore(path, playbook)
        redact = redactor(state.playbook)
        journal.redact = partial(redact_tree, redact)
        async with _target(state.target, state.playbook, folder) as target:
            resumed = ev.SessionResumed(
                at=time.time(),
                host=await host_of(target),
                approved=options.approved,
                keep=options.keep,
                attended=options.attended,
                version=__version__,
                noise=_history().noise(_noise_key(target, state.playbook)),
            )
            async with _effects(
                state.playbook, target, resumed.host, folder, redact, options.attended, asker, facts
            ) as effects:
                engine = Engine.resume(state, resumed, journal, effects, listen)
                async with _tended(engine, target, folder, redact, gpus):
                    yield engine, folder
                _remember(target, engine.state, redact)


def _history() -> LoadHistoryFile:
    return LoadHistoryFile(history_file())


def _noise_key(target: Target, playbook: Playbook) -> NoiseKey:
    objective = playbook.objective
    workload = next(w for w in playbook.workloads if w.name == objective.workload)
    return [target.name, playbook.server.kind, objective.metric, contract_of(workload, __version__)]


def _remember(target: Target, state: State, redact: Redactor) -> None:
    """What serves the next session: dead ends, and of a whole session the noise between launches.

    A simulated host is thrown away with its session, so it leaves no dead ends.
    """
    if not state.host.simulated and (problem := keep_dead_ends(target.name, to_remember(state), redact)):
        complain(problem)
    noise = Evidence(state).measured_noise()
    if state.ending == "completed" and noise:
        # Where the file does not take it, the session has said so at each load.
        _history().add_noise(_noise_key(target, state.playbook), noise)


async def run_session(
    playbook: Playbook, source: str, options: Options, listen: Listener, notes: tuple[str, ...] = ()
) -> tuple[State, SessionFolder]:
    """Run a playbook to its end without a screen. SIGINT and SIGTERM wind it up in order.

    Raises what `open_session` and `Engine.run` raise.
    """
    return await _played(open_session(playbook, source, options, listen, notes), options)


async def resume_session(
    path: Path, options: Options, listen: Listener, playbook: Playbook | None = None
) -> tuple[State, SessionFolder]:
    """Go on with a session to its end, as `run_session`. Raises what `reopen_session` and `Engine.run` raise."""
    return await _played(reopen_session(path, options, listen, playbook=playbook), options)


async def _played(
    opened: AbstractAsyncContextManager[tuple[Engine, SessionFolder]], options: Options
) -> tuple[State, SessionFolder]:
    async with opened as (engine, folder):
        engine.on_trouble = lambda text: complain(text or "the journal can be written again: the session goes on")
        with _signals(lambda: engine.submit(ev.InterruptRequested(at=time.time(), keep=options.keep))):
            return await engine.run(), folder


@asynccontextmanager
async def _target(name: str | None, playbook: Playbook, folder: SessionFolder) -> AsyncIterator[Target]:
    target = open_target(name, playbook, folder.path)
    try:
        yield target
    finally:
        await target.close()


async def host_of(target: Target) -> Host:
    """Facts about the target, once a session; a person at the terminal is asked about an unknown host key.

    Raises TargetUnusable.
    """
    await meet(target)
    host = replace(await target.host(), trees=tuple(target.trees), image=one_line(target.image))
    if not host.gpus:
        return host
    wired = await wiring(target, host.gpus)
    return replace(host, cuda=wired.cuda, links=wired.links)


@asynccontextmanager
async def _tended(
    engine: Engine, target: Target, folder: SessionFolder, redact: Redactor, gpus: Tell | None
) -> AsyncIterator[None]:
    """While inside, the engine is told of the link to the target and of the versions there.

    Who looks on is told what its GPUs do.
    """
    target.reach.tell(lambda why: engine.submit(_link_event(why)))
    async with (
        serving(engine, folder.path, gpus) as control,
        telemetry(target, lambda: engine.state, control.tell_gpus, lambda: control.watched),
        facts_read(engine, target, redact),
    ):
        yield


@asynccontextmanager
async def _effects(
    playbook: Playbook,
    target: Target,
    host: Host,
    folder: SessionFolder,
    redact: Redactor,
    waits: bool,
    asker: Asker | None,
    facts: Facts,
) -> AsyncIterator[TargetEffects]:
    async with httpx.AsyncClient(trust_env=False) as http:
        kind = server_kind(playbook.server.kind, http)
        setting = Setting(target=target, gpus=host.gpus, kind=kind, folder=folder, history=_history(), redact=redact)
        yield TargetEffects(
            target=target,
            kind=kind,
            launcher=Launcher(setting=setting, owner=f"{getpass.getuser()} {folder.id}", waits=waits),
            researcher=TargetResearcher(target, host, redact, asker, facts),
            bencher=HttpBencher(record=folder.add_measurement),
            answers=HttpGuard(http, redact),
        )


def _link_event(why: str | None) -> ev.Event:
    return ev.LinkRestored(at=time.time()) if why is None else ev.LinkLost(at=time.time(), reason=why)


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
