"""Commands that are run once: whoever asks, however often, and whatever becomes of them and the link meanwhile."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.ports import CommandResult, TargetUnusable
from agent.targets import link
from agent.targets.ssh import SshTarget
from tests.sshd import Sshd, start_sshd
from tests.targets.kit import DAEMON, PYTHON, SLEEP, Placed, lives, serve, until

COUNTED = """
import os, sys, time
with open("runs", "a") as file: file.write(f"{os.getpid()}\\n")
print("begun", os.environ["A"], os.getcwd(), flush=True)
while not os.path.exists("go"): time.sleep(0.01)
print("done", file=sys.stderr)
sys.exit(3)
"""
"""A command that notes each of its runs, and ends when it may."""


def job(target: Placed, code: str = COUNTED, *, timeout_s: float = 60.0) -> "asyncio.Task[CommandResult]":
    return asyncio.create_task(
        target.run_once("j1", [*PYTHON, "-c", code], timeout_s=timeout_s, env={"A": "~/b"}), name="job"
    )


async def pids(home: Path) -> list[int]:
    await until(lambda: (home / "runs").exists() and (home / "runs").read_text())
    return [int(pid) for pid in (home / "runs").read_text().split()]


def ended(home: Path) -> CommandResult:
    return CommandResult(exit_code=3, output=f"begun {home}/b {home}\ndone\n".encode())


async def test_it_runs_once_for_all_who_ask(target: Placed) -> None:
    home = target.place.home
    tasks = [job(target) for _ in range(3)]
    await pids(home)
    (home / "go").touch()
    assert await asyncio.gather(*tasks) == [ended(home)] * 3
    assert await job(target) == ended(home)
    assert len(await pids(home)) == 1


async def test_a_job_and_a_server_do_not_wait_for_each_other(target: Placed) -> None:
    task = job(target)
    await pids(target.place.home)
    await serve(target, SLEEP)
    (target.place.home / "go").touch()
    assert (await task).exit_code == 3
    assert (await target.run_once("j2", ["echo", "hello"], timeout_s=30)).output == b"hello\n"
    holder = json.loads((target.place.work / "runs/j1/launch.json").read_bytes())["holder"]["pid"]
    assert not lives(holder)


async def test_a_job_that_lost_its_holder_keeps_no_server_away(target: Placed) -> None:
    task = job(target)
    await pids(target.place.home)
    os.kill(json.loads((target.place.work / "runs/j1/launch.json").read_bytes())["holder"]["pid"], signal.SIGKILL)
    await serve(target, SLEEP)
    (target.place.home / "go").touch()
    assert await task == CommandResult(exit_code=None, output=ended(target.place.home).output)


async def test_after_its_time_nothing_of_it_is_left(target: Placed) -> None:
    task = job(target, DAEMON.replace("os._exit(0)", "time.sleep(600)", 1), timeout_s=3.0)
    log = target.place.work / "runs/j1/server.log"
    await until(lambda: log.exists() and log.read_bytes().endswith(b"\n"))
    daemon = int(log.read_text().split()[1])
    result = await task
    assert (result.timed_out, result.output) == (True, f"daemon {daemon}\n".encode())
    assert result.exit_code in (-signal.SIGTERM, -signal.SIGKILL)
    assert not lives(daemon)


async def test_what_it_leaves_running_ends_with_it(target: Placed) -> None:
    result = await job(target, DAEMON)
    assert (result.exit_code, result.timed_out) == (0, False)
    assert (await target.launch_status("j1")).processes == ()


async def test_of_long_output_the_end_is_kept(target: Placed) -> None:
    result = await job(target, "import sys; sys.stdout.write('x' * 3_000_000 + 'the end')")
    assert (len(result.output), result.output[-9:], result.truncated) == (1 << 20, b"xxthe end", True)


async def test_a_missing_program_is_said_each_time(target: Placed) -> None:
    for _ in range(2):
        with pytest.raises(TargetUnusable, match="cannot start no-such-program: No such file") as caught:
            await target.run_once("j1", ["no-such-program"], timeout_s=5.0)
        assert caught.value.hint


async def test_when_we_are_killed_it_goes_on_and_its_result_is_had(target: Placed) -> None:
    code = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
async def main():
    exec(sys.argv[2], globals())
    from tests.targets.kit import PYTHON
    await target.run_once("j1", [*PYTHON, "-c", sys.argv[3]], timeout_s=60, env={"A": "~/b"})
asyncio.run(main())
"""
    home, root = target.place.home, str(Path(__file__).parents[2])
    env = {**os.environ, **target.place.env}
    us = subprocess.Popen([sys.executable, "-c", code, root, target.place.recipe, COUNTED], env=env)
    try:
        [pid] = await pids(home)
    finally:
        us.kill()
        us.wait()
    task = job(target)
    assert lives(pid)
    (home / "go").touch()
    assert await task == ended(home)
    assert await pids(home) == [pid]


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    sshd = start_sshd(tmp_path / "sshd")
    yield sshd
    sshd.stop()


async def test_breaks_of_the_link_change_nothing(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut ever later: in the start, in the run, at the end."""
    monkeypatch.setattr(link, "LONGEST_PAUSE_S", 0.3)
    monkeypatch.setattr("agent.targets.once._POLL_S", 0.05)
    target = SshTarget("box", sshd.dialling(), workdir=str(tmp_path / "work"), env={"HOME": str(tmp_path)})
    code = "open('runs', 'a').write('x'); import time; time.sleep(0.2); print('done')"
    for step in range(8):
        await target.exists("~/")
        task = asyncio.create_task(target.run_once(f"j{step}", [*PYTHON, "-c", code], timeout_s=60))
        await asyncio.wait({task}, timeout=step * 0.08)
        sshd.signal_connections(signal.SIGKILL)
        assert await task == CommandResult(exit_code=0, output=b"done\n")
        assert (tmp_path / "runs").read_text() == "x" * (step + 1)
    assert target.reach.breaks >= 7
    await target.close()
