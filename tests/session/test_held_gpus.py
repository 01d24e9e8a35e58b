"""GPUs that somebody else holds: nothing is launched on them, and who holds them is said."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent import launching
from agent.core import events as ev
from agent.core.state import State
from agent.headless import Printer
from agent.run import Options, open_session, run_session
from agent.sim.host import SimHost
from agent.sim.ledger import alive_pids, launches
from tests.session.kit import parsed, small_playbook


@asynccontextmanager
async def somebody(box: SimHost) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of somebody else that holds 5 GiB of GPU 1."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent.sim.squatter", str(box.home), "1", "5120"),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout
    await process.stdout.readline()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def options(tmp_path: Path, attended: bool = False) -> Options:
    return Options(target="box", approved=(), keep=False, logs=tmp_path / "logs", attended=attended)


async def test_without_a_person_it_leaves_and_names_the_process(tmp_path: Path, box: SimHost) -> None:
    async with somebody(box) as process:
        state, _ = await run_session(parsed(small_playbook()), "", options(tmp_path), lambda *_: None)
    assert state.ending == "target-lost"
    assert state.lost and f"5.0 GiB of GPU 1 held by pid {process.pid}" in state.lost
    assert launches(box.ledger) == []


async def test_gpus_that_a_launch_would_not_use_do_not_matter(tmp_path: Path, box: SimHost) -> None:
    book = small_playbook()
    book["server"]["env"] = {"CUDA_VISIBLE_DEVICES": "0"}
    book["server"]["args"]["tp"] = 1
    async with somebody(box):
        state, _ = await run_session(parsed(book), "", options(tmp_path), lambda *_: None)
    assert state.ending == "completed" and len(launches(box.ledger)) == 1


async def until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0.02)


async def test_with_a_person_it_waits_until_they_are_free(
    tmp_path: Path, box: SimHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "BUSY_RETRY_S", 0.5)
    doubts: list[str] = []

    def listen(before: State, event: ev.Event, after: State) -> None:
        if isinstance(event, ev.LoadDoubted):
            doubts.append(event.text)

    async with asyncio.timeout(60):
        async with open_session(parsed(small_playbook()), "", options(tmp_path, True), listen) as (engine, _):
            async with somebody(box) as process:
                playing = asyncio.create_task(engine.run())
                await until(lambda: len(doubts) >= 2)
                assert f"held by pid {process.pid}" in doubts[0] and doubts[0].startswith("waits for the GPUs")
                assert launches(box.ledger) == []
            await until(lambda: engine.state.finished)
            engine.submit(ev.InterruptRequested(at=time.time(), keep=False))
            state = await playing
    assert state.experiments["base"].verdict and state.experiments["base"].verdict.word == "keep"
    assert len(launches(box.ledger)) == 1


@pytest.mark.long
async def test_two_sessions_take_turns(tmp_path: Path, box: SimHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second, at whose screen a person is, waits for the first, and never do two servers live at once."""
    monkeypatch.setattr(launching, "BUSY_RETRY_S", 0.3)
    lines: list[str] = []
    alive: list[int] = []
    say = Printer(lines.append)
    book = parsed(small_playbook({"id": "base"}, {"id": "idea", "args": {"ep-size": 2}}))
    loading = asyncio.Event()

    def count(event: ev.Event) -> None:
        if isinstance(event, ev.LaunchStarted | ev.ServerReady):
            pids = set(alive_pids(box.ledger))
            alive.append(sum(launch["pid"] in pids for launch in launches(box.ledger)))

    def first_listens(before: State, event: ev.Event, after: State) -> None:
        count(event)
        if isinstance(event, ev.LaunchStarted):
            loading.set()

    def second_listens(before: State, event: ev.Event, after: State) -> None:
        count(event)
        say(before, event, after)

    async with asyncio.timeout(90):
        first = asyncio.create_task(run_session(book, "", options(tmp_path), first_listens))
        await loading.wait()
        second_options = options(tmp_path, True)
        async with open_session(book, "", second_options, second_listens) as (engine, _):
            playing = asyncio.create_task(engine.run())
            await until(lambda: any("waits for the GPUs" in line for line in lines))
            await until(lambda: engine.state.finished)
            engine.submit(ev.InterruptRequested(at=time.time(), keep=False))
            await playing
        await first
    assert "held by" in next(line for line in lines if "waits for the GPUs" in line)
    assert len(launches(box.ledger)) == 4 and max(alive) == 1, "one server at a time"
    assert alive_pids(box.ledger) == []
