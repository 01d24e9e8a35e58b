"""Stops as real servers take them: they end by SIGKILL, hang, drain, wait for core dumps, leave compilers behind."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.kit import Placed, lives, log_bytes, printed, serve, until

# A server is one of those that follow between these two: two ranks, and what it does at SIGTERM.
_BEGIN = """
import os, signal, subprocess, sys, time
def python(code): return [sys.executable, "-I", "-S", "-c", code]
rank = "import time; time.sleep(600)"
"""
_END = """
ranks = [subprocess.Popen(python(rank)) for _ in range(2)]
def end(code):
    for one in ranks: one.kill()
    os._exit(code)
signal.signal(signal.SIGTERM, at_term)
print("pids", os.getpid(), *(one.pid for one in ranks), flush=True)
while True: time.sleep(600)
"""
KILLS_ITSELF = """
def at_term(*_):
    for pid in [*(one.pid for one in ranks), os.getpid()]: os.kill(pid, signal.SIGKILL)
"""
HANGS = """
rank = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + rank
at_term = signal.SIG_IGN
print("[Errno 98] error while attempting to bind on address: address already in use")
"""
DRAINS = """
def at_term(*_):
    time.sleep(1.4)
    print("drained", [one.poll() for one in ranks], flush=True)
    end(0)
"""
WAITS_FOR_DUMPS = """
def at_term(*_):
    for one in ranks: one.kill()
    time.sleep(float(sys.argv[1]))
    end(6)
"""
COMPILES = (
    """
run = "import subprocess, sys; subprocess.Popen([sys.executable, '-I', '-S', '-c', {!r}]).wait()"
nvcc = "import subprocess; subprocess.Popen(['./cc1plus', '600']).wait()"
ninja = run.format(nvcc)
rank = run.format(ninja)
"""
    + KILLS_ITSELF
)


def compilers(home: Path) -> list[int]:
    """Processes of the program that a server compiles with, ours or not."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "comm").read_text() == "cc1plus\n" and (entry / "cwd").readlink() == home:
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(pid for pid in found if lives(pid))


@pytest.fixture
def bystander(target: Placed) -> Iterator[int]:
    """The same program, user and folder, but no process of the launch."""
    sleep = shutil.which("sleep")
    assert sleep
    (target.place.home / "cc1plus").symlink_to(sleep)
    process = subprocess.Popen(["./cc1plus", "600"], cwd=target.place.home, start_new_session=True)
    yield process.pid
    assert process.poll() is None
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("code", "words", "grace_s", "exit_code", "at_least_s", "at_most_s"),
    [
        pytest.param(KILLS_ITSELF, (), 30.0, -9, 0, 15, id="SIGKILL is its way to exit"),
        pytest.param(HANGS, (), 0.5, -9, 0.5, 15, id="hangs with the address in use"),
        pytest.param(DRAINS, (), 30.0, 0, 1.4, 15, id="drains"),
        pytest.param(DRAINS, (), 0.3, -9, 0.3, 1.4, id="drains for too long"),
        pytest.param(WAITS_FOR_DUMPS, ("1.3",), 30.0, 6, 1.3, 15, id="waits for core dumps"),
        pytest.param(WAITS_FOR_DUMPS, ("600",), 0.5, -9, 0.5, 15, id="waits for core dumps for too long"),
    ],
)
async def test_nothing_is_left(
    target: Placed,
    bystander: int,
    code: str,
    words: tuple[str, ...],
    grace_s: float,
    exit_code: int,
    at_least_s: float,
    at_most_s: float,
) -> None:
    await serve(target, _BEGIN + code + _END, *words)
    pids = await printed(target, "pids")
    began = time.monotonic()
    report = await target.stop("l1", grace_s)
    took_s = time.monotonic() - began
    assert (report.exit_code, report.left) == (exit_code, ())
    assert not any(map(lives, pids)) and len(pids) == 3
    assert at_least_s <= took_s < at_most_s
    assert lives(bystander)
    assert (b"drained [None, None]" in await log_bytes(target, "l1", 0)) == (exit_code == 0)
    assert (await target.launch_status("l1")).state == "exited"
    await serve(target, "pass", launch="l2")  # the GPUs are free at once


@pytest.mark.parametrize("holder", ["lives", "was killed"])
async def test_compilers_that_the_leader_leaves_behind_go_too(target: Placed, bystander: int, holder: str) -> None:
    await serve(target, _BEGIN + COMPILES + _END)
    pids = await printed(target, "pids")
    three = await until(lambda: len(found := compilers(target.place.home)) == 3 and found)
    if holder == "was killed":
        os.kill(json.loads((target.place.work / "runs/l1/launch.json").read_bytes())["holder"]["pid"], signal.SIGKILL)
    report = await target.stop("l1", 30.0)
    assert (report.exit_code, report.left) == (-9 if holder == "lives" else None, ())
    assert not any(map(lives, pids))
    assert compilers(target.place.home) == [bystander] and bystander in three


async def test_compilers_whose_server_died_by_itself_block_until_they_are_stopped(
    target: Placed, bystander: int
) -> None:
    leader = await serve(target, _BEGIN + COMPILES + _END)
    await until(lambda: len(compilers(target.place.home)) == 3)
    os.kill(leader.pid, signal.SIGTERM)  # the server's own way to end
    await until(lambda: not lives(leader.pid))
    assert len(compilers(target.place.home)) == 3
    async with asyncio.timeout(30):
        # The wrapper may not have collected it yet.
        while (status := await target.launch_status("l1")).leader_exit_code is None:
            assert status.state == "running"
    assert (status.state, status.leader_exit_code) == ("running", -9)
    report = await target.stop("l1", 30.0)
    assert (report.exit_code, report.left) == (-9, ())
    assert compilers(target.place.home) == [bystander]
