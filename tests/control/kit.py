"""Sessions that are really run, and who looks on: recorded events, conditions to wait for, the command in a process."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agent.control.places import Note
from agent.core import events as ev
from agent.core.state import State
from agent.core.views.panels import GpuUse
from agent.engine import Engine
from agent.run import Options, open_session
from agent.sim.ledger import alive_pids
from tests.session.kit import parsed, small_playbook

DEADLINE_S = 60.0


@dataclass
class Looker:
    """Keeps what it is told."""

    events: list[ev.Event] = field(default_factory=list)
    gpus: list[tuple[GpuUse, ...]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    ahead_s: float = 0.0
    state: State | None = None

    def __call__(self, before: State, event: ev.Event, after: State) -> None:
        self.events.append(event)
        self.state = after

    def watch_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        self.gpus.append(gpus)

    def tell_trouble(self, text: str) -> None:
        self.troubles.append(text)

    def set_clock(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    def saw(self, kind: type[ev.Event]) -> bool:
        return any(isinstance(event, kind) for event in self.events)


async def until(holds: Callable[[], object], seconds: float = DEADLINE_S) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition does not come true"
        await asyncio.sleep(0.01)


def long_playbook() -> dict[str, Any]:
    """One that a person has time to steer: three experiments, of many rounds each."""
    book = small_playbook({"id": "base"}, {"id": "idea", "args": {"ep-size": 2}}, {"id": "third"})
    book["workloads"][0] |= {"rounds": 40}
    return book


@asynccontextmanager
async def running(logs: Path, book: dict[str, Any]) -> AsyncIterator[tuple[Engine, Path]]:
    """A session of this process on a simulated host, attended and without a screen. It is ended at the latest here."""
    options = Options(target="simulated:small", approved=(), keep=False, logs=logs, attended=True)
    async with open_session(parsed(book), "", options, lambda before, event, after: None) as (engine, folder):
        playing = asyncio.create_task(engine.run(), name="engine")
        try:
            yield engine, folder.path
        finally:
            if not playing.done():
                engine.submit(ev.InterruptRequested(at=time.time(), keep=False))
            async with asyncio.timeout(DEADLINE_S):
                await playing
    assert alive_pids(folder.path / "host" / ".sim" / "ledger.jsonl") == []


def note_of(engine: Engine, folder: Path) -> Note:
    return Note(
        session=engine.state.session,
        folder=str(folder.resolve()),
        pid=os.getpid(),
        started=engine.state.started_at,
        name="small",
    )


class Home:
    """A person's account: files of its own, and the command."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / ".local" / "state"),
            "PYTHONPATH": str(Path.cwd()),
        }

    @property
    def run_folder(self) -> Path:
        return self.root / ".local" / "state" / "tunebot" / "run"

    def playbook(self, book: dict[str, Any]) -> Path:
        file = self.root / "book.yaml"
        file.write_text(yaml.safe_dump(book))
        return file

    def tunebot(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end."""
        return subprocess.run(
            self.command(*words),
            cwd=self.root,
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            stdin=subprocess.DEVNULL,
        )

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agent.cli", *words]

    def sessions(self) -> list[Path]:
        """The folders of its sessions."""
        return sorted(path.parent for path in self.root.glob("logs/*/journal.jsonl"))

    def end_all(self) -> None:
        """Kill what a test left."""
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Whatever of tunebot runs with this home, detached sessions and servers alike."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environ = (entry / "environ").read_bytes().split(b"\0")
                    alive = (entry / "stat").read_text().rpartition(") ")[2][0] not in "ZX"
                except OSError:
                    continue
                if alive and f"HOME={self.root}".encode() in environ:
                    found.append(int(entry.name))
        return found
