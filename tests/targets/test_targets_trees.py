"""Servers with ranks, daemons and deaf ears: what lives is found, and what is stopped is gone."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.ports import Process, TargetUnusable
from tests.targets.kit import (
    DAEMON,
    DEAF,
    PYTHON,
    RANKS,
    RETITLED,
    SLEEP,
    Placed,
    lives,
    log_bytes,
    printed,
    serve,
    spec,
    until,
)


async def test_a_server_runs_until_it_is_stopped(target: Placed) -> None:
    leader = await serve(target, SLEEP)
    status = await target.launch_status("l1")
    assert (status.state, status.leader_exit_code) == ("running", None)
    assert status.processes == (Process(pid=leader.pid, start_ticks=leader.start_ticks),)
    report = await target.stop("l1", 5.0)
    assert (report.exit_code, report.left) == (-signal.SIGTERM, ())
    status = await target.launch_status("l1")
    assert (status.state, status.leader_exit_code, status.processes) == ("exited", -15, ())


@pytest.mark.parametrize("rank", [SLEEP, RETITLED])
async def test_ranks_outlive_a_killed_leader_and_are_stopped(target: Placed, rank: str) -> None:
    leader = await serve(target, RANKS, rank)
    ranks = await printed(target, "pids")
    os.kill(leader.pid, signal.SIGKILL)

    async def leaderless() -> bool:
        return (await target.launch_status("l1")).leader_exit_code == -9

    await until(leaderless)
    status = await target.launch_status("l1")
    assert status.state == "running"
    assert sorted(process.pid for process in status.processes) == sorted(ranks)
    with pytest.raises(TargetUnusable, match=r"held by ann on .*, launch l1, since 2"):
        await serve(target, SLEEP, launch="l2")
    report = await target.stop("l1", 30.0)  # no grace is needed: there is no leader to ask
    assert (report.exit_code, report.left) == (-9, ())
    assert not any(map(lives, ranks))
    assert (await target.launch_status("l1")).state == "exited"
    await serve(target, SLEEP, launch="l3")


async def test_a_daemon_in_its_own_session_is_found_and_stopped(target: Placed) -> None:
    await serve(target, RANKS, DAEMON)
    [daemon] = await printed(target, "daemon")
    assert daemon in [process.pid for process in (await target.launch_status("l1")).processes]
    assert (await target.stop("l1", 5.0)).left == ()
    assert not lives(daemon)


async def test_a_deaf_server_is_killed_after_the_grace(target: Placed) -> None:
    await serve(target, DEAF)
    await printed(target, "ready")
    began = asyncio.get_running_loop().time()
    assert (await target.stop("l1", 0.5)).exit_code == -9
    assert 0.5 <= asyncio.get_running_loop().time() - began < 5


async def test_a_server_that_exits_at_once_frees_the_host(target: Placed) -> None:
    for count in range(5):
        await serve(target, "import sys; sys.exit(7)", launch=f"l{count}")

        async def exited(launch: str = f"l{count}") -> bool:
            return (await target.launch_status(launch)).state == "exited"

        await until(exited)  # from then the next launch is allowed
        assert (await target.launch_status(f"l{count}")).leader_exit_code == 7
    assert (await target.stop("l0", 1.0)).exit_code == 7


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("no-such-program", "cannot start no-such-program: No such file"),
        ("~/none", "cannot start ~/none: No such file"),
        ("/etc/passwd", "cannot start /etc/passwd: Permission denied"),
        ("~/plain", "cannot start ~/plain: Exec format error"),
        ("a\0b", "null"),
    ],
)
async def test_a_missing_program_is_said_and_the_id_is_spent(target: Placed, word: str, reason: str) -> None:
    (target.place.home / "plain").write_text("no program")
    (target.place.home / "plain").chmod(0o755)
    with pytest.raises(TargetUnusable, match=reason):
        await target.launch(spec("l1", word))
    with pytest.raises(TargetUnusable, match=reason):
        await serve(target, SLEEP)
    status = await target.launch_status("l1")
    assert (status.state, status.processes) == ("gone", ())
    await serve(target, SLEEP, launch="l2")


async def test_output_and_children_do_not_tie_a_server_to_us(target: Placed) -> None:
    """The process that started it is killed; it lives, holds nothing of ours and has no terminal."""
    starter = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from tests.targets.kit import serve, SLEEP
async def main():
    exec(sys.argv[2], globals())
    await serve(target, SLEEP)
    await target.close()
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    root = str(Path(__file__).parents[2])
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", starter, root, target.place.recipe],
        stdout=subprocess.PIPE,  # this returns at its end, so nobody has kept the pipe
        env={**os.environ, **target.place.env},
    )
    assert ended.returncode == -9
    status = await target.launch_status("l1")
    assert status.state == "running"
    [leader] = status.processes
    assert os.getsid(leader.pid) == leader.pid
    files = {str(fd.readlink()) for fd in Path(f"/proc/{leader.pid}/fd").iterdir()}
    assert files == {"/dev/null", str(target.place.work / "runs/l1/server.log")}


async def test_the_environment_of_a_server(target: Placed) -> None:
    code = "import os; [print(f'{k}={v}') for k, v in os.environ.items()]; print('cwd=' + os.getcwd()); print('end')"
    order = spec("l1", *PYTHON, "-c", code, env={"MODEL": "~/models/x", "NAME": "a~/b"})
    await target.launch(replace(order, unset=("TUNEBOT_UNWANTED", "NOT_THERE")))
    await printed(target, "end")
    lines = (await log_bytes(target, "l1", 0)).decode().splitlines()
    assert f"MODEL={target.place.home}/models/x" in lines
    assert {"NAME=a~/b", "SPT_NOENV=1", "TUNEBOT_LAUNCH_ID=l1", f"cwd={target.place.home}"} <= set(lines)
    assert not [line for line in lines if line.startswith("TUNEBOT_UNWANTED")]
