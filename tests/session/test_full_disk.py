"""A disk that is full: nothing new is launched, what runs is watched, and the session goes on when there is room."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.core.schedule import next_decision
from agent.core.state import State
from agent.engine import Engine
from agent.headless import replay
from agent.journal.journal import JournalFull, read_journal
from agent.run import Options, open_session
from agent.sim.host import SimHost
from agent.sim.ledger import alive_pids, launches
from tests.session.kit import parsed, small_playbook

SIZE_KIB = 3072


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "none", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all the room that is left."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return ballast


@dataclass
class Watched:
    """What a session told of its disk, with the number of launches that were in its journal at the time."""

    engine: Engine
    told: asyncio.Queue[tuple[str, int]] = field(default_factory=asyncio.Queue)

    def __call__(self, text: str) -> None:
        self.told.put_nowait((text, len(self.engine.state.launches)))


_LONG = pytest.mark.long


@pytest.mark.parametrize(
    "moment",
    [pytest.param(ev.PhaseEntered, marks=_LONG), ev.RoundMeasured, pytest.param(ev.StopRequested, marks=_LONG)],
)
async def test_nothing_new_is_begun_until_there_is_room(small_disk: Path, box: SimHost, moment: type[ev.Event]) -> None:
    ballast: list[Path] = []

    def listen(before: State, event: ev.Event, after: State) -> None:
        if isinstance(event, moment) and not ballast:
            ballast.append(fill(small_disk))

    options = Options(target="box", approved=(), keep=False, logs=small_disk / "logs")
    book = parsed(small_playbook({"id": "base"}, {"id": "idea", "args": {"ep-size": 2}}))
    async with asyncio.timeout(90), open_session(book, "", options, listen) as (engine, folder):
        engine.on_trouble = watched = Watched(engine)
        playing = asyncio.create_task(engine.run())
        text, before = await watched.told.get()
        assert "No space left on device" in text and "nothing new is started until" in text
        with pytest.raises(TimeoutError):  # several tries later it is as full as before
            await asyncio.wait_for(watched.told.get(), 3.0)
        assert len(launches(box.ledger)) <= before
        # What waits to be written may be the request of the next launch: the journal's last page had room till then.
        waiting = isinstance(next_decision(engine.state), ev.LaunchRequested)
        ballast[0].unlink()
        assert await watched.told.get() == ("", before + waiting)
        state = await playing
    assert state.ending == "completed"
    assert all(len(launch.rounds) == 3 and not launch.failure for launch in state.launches.values())
    assert replay(read_journal(folder.path), lambda line: None) == state
    assert alive_pids(box.ledger) == []
    for launch in state.launches.values():
        kept = (folder.path / "launches" / f"{launch.id}.log").read_bytes()
        printed = (box.home / ".tunebot" / "runs" / launch.id / "server.log").read_bytes()
        if any(launch.id in note and "not complete" in note for note in state.notes):
            assert printed.startswith(kept)
        else:
            assert kept == printed


async def test_whoever_wants_to_leave_may_and_the_server_is_stopped(small_disk: Path, box: SimHost) -> None:
    def listen(before: State, event: ev.Event, after: State) -> None:
        if isinstance(event, ev.ServerReady):
            fill(small_disk)

    options = Options(target="box", approved=(), keep=False, logs=small_disk / "logs")
    async with asyncio.timeout(90), open_session(parsed(small_playbook()), "", options, listen) as (engine, folder):
        engine.on_trouble = watched = Watched(engine)
        playing = asyncio.create_task(engine.run())
        await watched.told.get()
        engine.submit(ev.InterruptRequested(at=time.time(), keep=False))
        with pytest.raises(JournalFull):
            await playing
    assert alive_pids(box.ledger) == []
    last = read_journal(folder.path)[-1]
    assert not isinstance(last, ev.SessionEnded), "it can be resumed"
