"""A tunebot that dies on cue: `python -m tests.chaos.victim PLAN.json ARGUMENTS...` is `tunebot ARGUMENTS...`.

It is patched from outside: the journal, `os.fdatasync` and every request to a target are places where a cue can kill
it. What it passes is kept in the file `trace`, a line a place, and the synced size of the journal in `synced`: what a
power loss would leave.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.events import Event
from agent.journal import journal
from agent.targets import dial, link, local, wire, wrapper
from tests.chaos.plan import Cue, Place

STEPS = (
    *("run", "run_once", "read_file", "exists", "free_port", "port_answers", "launch", "outcome"),
    *("launch_status", "read_log", "port_owners", "stop"),
)
SIZE = "%020d"


@dataclass
class Fate:
    """Counts the places that tunebot passes, and carries out the cues."""

    trace: int
    cues: list[Cue]
    harsh: bool
    passed: Counter[str]
    here: Counter[str] = field(default_factory=Counter)
    asked: set[str] = field(default_factory=set)
    begun: bool = False

    def write(self, name: str) -> "list[Cue]":
        """A journal write begins; the cues that are for it."""
        self.asked.clear()
        if not self.begun:
            self.begun = True
            self.arm("begun")
        return self._enter("write", name)

    def arm(self, at: str) -> None:
        """Let the cues of that kind begin to count."""
        for cue in self.cues:
            if cue.at == at:
                self.die_in(cue.delay_s)

    def step(self, verb: str) -> "list[Cue]":
        """A request to the target begins. One repeated with nothing journalled in between is the same place."""
        if verb in self.asked:
            return []
        self.asked.add(verb)
        return self._enter("step", verb)

    def _enter(self, kind: Place, name: str) -> "list[Cue]":
        os.write(self.trace, f"{kind} {name}\n".encode())
        self.passed[kind] += 1
        self.here[name] += 1
        counts = {kind: self.passed[kind], "name": self.here[name]}
        # At the next place where a resume passed the n-th.
        found = [cue for cue in self.cues if 0 < cue.n <= counts.get(cue.at, 0) and cue.name in ("", name)]
        self.cues = [c for c in self.cues if c not in found]
        return found

    def die(self) -> None:
        """SIGKILL to all of this process group; `harsh` takes commands and a start under way with it."""
        if self.harsh:
            for proc in wrapper.snapshot().values():
                if proc.ppid == os.getpid():
                    wrapper.send(proc, signal.SIGKILL)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def die_in(self, seconds: float) -> None:
        threading.Timer(seconds, self.die).start()


def patch_journal(fate: Fate, synced: int, fsync: bool) -> None:
    """Cues at journal writes: before, written (not yet synced), after."""
    append, sync = journal.Journal.append, os.fdatasync
    due: list[Cue] = []

    def cued_append(self: journal.Journal, event: Event) -> None:
        due[:] = fate.write(type(event).__name__)
        if any(cue.moment == "before" for cue in due):
            fate.die()
        append(self, event)
        for cue in due:
            fate.die_in(cue.delay_s) if cue.delay_s else fate.die()

    def cued_sync(fd: int) -> None:
        if any(cue.moment == "written" for cue in due):
            fate.die()
        size = os.fstat(fd).st_size
        if fsync:
            sync(fd)
        # Without fsync only the first record ever reaches the disk: the worst that a file system may do.
        if fsync or os.fstat(synced).st_size == 0:
            os.pwrite(synced, (SIZE % size).encode(), 0)

    journal.Journal.append = cued_append  # type: ignore[method-assign]
    os.fdatasync = cued_sync  # type: ignore[assignment]


def patch_local(fate: Fate) -> None:
    """Cues at requests to this machine."""
    for name in STEPS:
        if (original := getattr(local.LocalTarget, name, None)) is not None:
            setattr(local.LocalTarget, name, _cued(fate, name, original))


def _cued(fate: Fate, name: str, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def asked(*args: Any, **options: Any) -> Any:
        due = fate.step(name)
        for cue in due:
            if cue.moment == "before":
                fate.die()
            if cue.moment == "sent":
                asyncio.get_running_loop().call_later(cue.delay_s, fate.die)
        try:
            return await original(*args, **options)
        finally:
            if due:
                fate.die()

    return asked


def patch_ssh(fate: Fate) -> None:
    """Cues at requests over a connection: they kill, or cut the connection."""
    send = wire.Wire.send

    def cued_send(self: wire.Wire, verb: str, **order: Any) -> "tuple[int, asyncio.Future[wire.Reply]]":
        due = fate.step(verb)

        def act() -> None:
            if any(cue.action == "kill" for cue in due):
                fate.die()
            self.connection.abort()

        if any(cue.moment == "before" for cue in due):
            act()
        number, answer = send(self, verb, **order)
        for cue in due:
            if cue.moment == "sent":
                asyncio.get_running_loop().call_later(cue.delay_s, act)
            elif cue.moment == "answered":
                answer = _withheld(answer, act, cue.delay_s)
        return number, answer

    wire.Wire.send = cued_send  # type: ignore[method-assign]
    # The pauses of a real outage would be most of the harness's time.
    link.LONGEST_PAUSE_S = 0.3
    defaults = dial.Dialling.__init__.__kwdefaults__
    assert defaults is not None
    defaults["keepalive_s"] = 1.0


def _withheld(
    answer: "asyncio.Future[wire.Reply]", act: Callable[[], None], suspended_s: float
) -> "asyncio.Future[wire.Reply]":
    """What was asked for is done, and its answer never arrives; we are suspended for a while then."""
    never: asyncio.Future[wire.Reply] = asyncio.get_running_loop().create_future()

    def arrived(_: object) -> None:
        act()
        time.sleep(suspended_s)
        if not never.done():
            never.set_exception(wire.Broken("cut"))

    answer.add_done_callback(arrived)
    return never


def patch_wrapper(folder: Path, cuts: list[tuple[str, str]]) -> None:
    """Install the wrapper with parts of its source taken out: `cuts` are pairs of old and new text."""
    source = Path(wrapper.__file__)
    text = source.read_text()
    for old, new in cuts:
        assert text.count(old) == 1, f"the wrapper has no such line any more: {old}"
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    for module in source.parent.glob("*.py"):  # the others travel with it over SSH
        shutil.copyfile(module, folder / module.name)
    (folder / source.name).write_text(text)
    wrapper.__file__ = str(folder / source.name)


def main(plan_file: str, *arguments: str) -> int:
    """Run tunebot by a plan: `trace`, `synced`, `cues`, `harsh`, `fsync`, `cuts` (of the wrapper)."""
    plan = json.loads(Path(plan_file).read_text())
    lines = Path(plan["trace"]).read_text().split() if Path(plan["trace"]).exists() else []
    trace, synced = (os.open(plan[name], os.O_RDWR | os.O_CREAT, 0o600) for name in ("trace", "synced"))
    os.lseek(trace, 0, os.SEEK_END)
    fate = Fate(trace, [Cue(**cue) for cue in plan["cues"]], plan["harsh"], Counter(lines[::2]))
    fate.arm("start")
    patch_journal(fate, synced, plan["fsync"])
    patch_local(fate)
    patch_ssh(fate)
    if plan["cuts"]:
        patch_wrapper(Path(plan["trace"]).with_name("targets"), plan["cuts"])
    from agent.cli import main as tunebot

    return tunebot(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
