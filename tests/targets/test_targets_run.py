"""Commands: their time, their output, their end, and the quiet in which background ones are suspended."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.ports import CommandResult, TargetUnusable
from agent.targets.local import LocalTarget
from tests.targets.kit import DAEMON, PYTHON, SLEEP, Placed, lives, state, until

TREE = f"""
import os, subprocess, sys, time
run = lambda code, **how: subprocess.Popen([{PYTHON[0]!r}, "-I", "-S", "-c", code], **how).pid
pids = [os.getpid(), run({SLEEP!r}), run({SLEEP!r}, start_new_session=True)]
open("pids.new", "w").write(" ".join(map(str, pids)))
os.rename("pids.new", "pids")
"""
"""A command with a child in its group and one in a session of its own; it writes their pids."""


async def tree(target: Placed) -> list[int]:
    await until((target.place.home / "pids").exists)
    return [int(pid) for pid in (target.place.home / "pids").read_text().split()]


def leave(target: Placed, seconds: float) -> None:
    """Let the one running command have that much of its time left. Over SSH it keeps what it was given."""
    if not isinstance(target, LocalTarget):
        return
    [job] = target._commands._jobs
    job._stop_clock()
    job._left_s = seconds
    if not job.background or target._commands._awake.is_set():
        job._resume_clock()


def time_for(target: Placed) -> float:
    """Seconds for a command that is to run out of time, but not before its tree stands."""
    return 30.0 if isinstance(target, LocalTarget) else 5.0


async def python(target: Placed, code: str, *words: str, timeout_s: float = 30.0, **rest: bool) -> CommandResult:
    return await target.run([*PYTHON, "-c", code, *words], timeout_s=timeout_s, **rest)


def fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_command_and_its_surroundings(target: Placed) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['A'], sys.stdin.read() == ''); sys.exit(3)"
    result = await target.run([*PYTHON, "-c", code], timeout_s=30, env={"A": "~/b"})
    assert result == CommandResult(exit_code=3, output=f"{target.place.home} {target.place.home}/b True\n".encode())
    (target.place.home / "sub").mkdir()
    result = await target.run(["sh", "-c", "pwd; echo wrong >&2"], timeout_s=30, cwd="~/sub")
    assert result.output == f"{target.place.home}/sub\nwrong\n".encode()
    result = await target.run(["sh", "-c", "kill -KILL $$"], timeout_s=30)
    assert (result.exit_code, result.timed_out) == (-9, False)


async def test_programs_come_from_the_path_of_the_target(target: Placed) -> None:
    tool = target.place.tools / "nvidia-tool"
    tool.write_text("#!/bin/sh\necho mine $1\n")
    tool.chmod(0o755)
    assert (await target.run(["nvidia-tool", "x"], timeout_s=30)).output == b"mine x\n"
    (target.place.home / "tool").symlink_to(tool)
    assert (await target.run(["~/tool", "y"], timeout_s=30, background=True)).output == b"mine y\n"
    for argv in (["no-such-tool"], ["~/none"], ["/etc/passwd"], [], ["a\0b"], ["nvidia-tool", "a\0b"]):
        for background in (False, True):
            with pytest.raises(TargetUnusable):
                await target.run(argv, timeout_s=30, background=background)
    with pytest.raises(TargetUnusable):
        await target.run(["nvidia-tool"], timeout_s=30, cwd="~/none")


async def test_background_is_nice_and_gpus_can_be_hidden(target: Placed) -> None:
    code = "import os; print(os.nice(0), [os.environ.get(k) for k in ('CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES')])"
    assert (await python(target, code, background=True, hide_gpus=True)).output == b"19 ['', '']\n"
    assert (await python(target, code)).output == b"0 [None, None]\n"


@pytest.mark.parametrize("background", [False, True])
async def test_out_of_time_the_whole_tree_is_killed(target: Placed, background: bool) -> None:
    task = asyncio.create_task(
        python(target, "print('begun');" + TREE + SLEEP, background=background, timeout_s=time_for(target))
    )
    pids = await tree(target)
    leave(target, 0.1)
    result = await task
    assert (result.timed_out, result.exit_code, result.output) == (True, -9, b"begun\n")
    await until(lambda: not any(map(lives, pids)))
    began = asyncio.get_running_loop().time()
    assert (await target.run(["sleep", "60"], timeout_s=0.2, background=background)).timed_out
    assert 0.2 <= asyncio.get_running_loop().time() - began < 20


async def test_cancelled_the_whole_tree_is_killed(target: Placed) -> None:
    task = asyncio.create_task(python(target, TREE + SLEEP))
    pids = await tree(target)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not any(map(lives, pids)))


async def test_cancelled_twice_it_is_killed_all_the_same(target: Placed) -> None:
    task = asyncio.create_task(python(target, TREE + SLEEP))
    pids = await tree(target)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not any(map(lives, pids)))


async def test_nothing_is_left_behind_by_a_command_that_ends(target: Placed) -> None:
    """Neither children nor a daemon that left its session, though they hold the output open."""
    daemon = DAEMON.replace("print(", "print(file=open('daemon', 'w'), *[").replace(", flush=True)", "])")
    code = TREE + f"run({daemon!r})\nwhile not (os.path.exists('daemon') and open('daemon').read()): time.sleep(0.01)"
    result = await python(target, code)
    assert (result.exit_code, result.output) == (0, b"")
    pids = [*await tree(target), int((target.place.home / "daemon").read_text().split()[1])]
    await until(lambda: not any(map(lives, pids)))


async def test_closing_ends_commands_and_refuses_new_ones(target: Placed) -> None:
    task = asyncio.create_task(python(target, TREE + SLEEP))
    pids = await tree(target)
    target.quiet(True)
    waiting = asyncio.create_task(python(target, SLEEP, background=True))
    await asyncio.sleep(0)
    await target.close()
    assert (await task).exit_code == -9
    await until(lambda: not any(map(lives, pids)))
    with pytest.raises(TargetUnusable, match="closed"):
        await waiting
    with pytest.raises(TargetUnusable, match="closed"):
        await python(target, "")


async def test_quiet_suspends_the_tree_and_its_time(target: Placed) -> None:
    code = TREE + "while not os.path.exists('go'): time.sleep(0.01)\nprint('done')"
    task = asyncio.create_task(python(target, code, background=True, timeout_s=time_for(target)))
    pids = await tree(target)
    leave(target, 2.0)
    target.quiet(True)
    await until(lambda: all(state(pid) == "T" for pid in pids))
    (target.place.home / "go").touch()
    await asyncio.wait({task}, timeout=2.2 if isinstance(target, LocalTarget) else 5.2)  # longer than its time
    assert not task.done()
    assert all(state(pid) == "T" for pid in pids)
    target.quiet(False)
    result = await task
    assert (result.exit_code, result.output, result.timed_out) == (0, b"done\n", False)


async def test_time_goes_on_after_the_quiet(target: Placed) -> None:
    task = asyncio.create_task(python(target, TREE + SLEEP, background=True, timeout_s=time_for(target)))
    pids = await tree(target)
    for _ in range(20):
        target.quiet(True)
        target.quiet(True)
        await asyncio.sleep(0)
        target.quiet(False)
    await until(lambda: all(state(pid) != "T" for pid in pids))
    leave(target, 0.1)
    assert (await task).timed_out
    await until(lambda: not any(map(lives, pids)))


async def test_what_starts_in_the_quiet_waits_and_the_foreground_does_not(target: Placed) -> None:
    target.quiet(True)
    task = asyncio.create_task(python(target, "print(1)", background=True, timeout_s=5.0))
    assert (await python(target, "print(2)")).output == b"2\n"
    assert not task.done()
    target.quiet(False)
    assert (await task).output == b"1\n"


async def test_a_suspended_command_is_cancelled_like_any(target: Placed) -> None:
    task = asyncio.create_task(python(target, TREE + SLEEP, background=True))
    pids = await tree(target)
    target.quiet(True)
    await until(lambda: all(state(pid) == "T" for pid in pids))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not any(map(lives, pids)))


async def test_of_long_output_the_end_is_kept(target: Placed) -> None:
    code = "import sys; sys.stdout.write('x' * 3_000_000 + 'the end')"
    result = await target.run([*PYTHON, "-c", code], timeout_s=30, max_output_bytes=10)
    assert (result.output, result.truncated) == (b"xxxthe end", True)
    result = await python(target, code)
    assert (len(result.output), result.truncated) == (1 << 20, True)
    result = await target.run([*PYTHON, "-c", "print('x' * 9)"], timeout_s=30, max_output_bytes=10)
    assert (len(result.output), result.truncated) == (10, False)


async def test_descriptors_and_threads_stay_few(target: Placed) -> None:
    await python(target, "")
    before = fds()
    for _ in range(3):
        await asyncio.gather(*(target.run(["true"], timeout_s=30, background=True) for _ in range(5)))
        with pytest.raises(TargetUnusable):
            await target.run(["~/none"], timeout_s=30)
        with pytest.raises(TargetUnusable):
            await target.run(["true"], timeout_s=30, cwd="~/none")
        await target.run(["sleep", "60"], timeout_s=0.01)
        await target.stop("none", 0.0)
    await until(lambda: fds() <= before)


async def test_when_we_are_killed_background_commands_end(target: Placed) -> None:
    code = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
async def main():
    exec(sys.argv[2], globals())
    script = "echo $$ > pid.new; mv pid.new pid; sleep 600"
    await target.run(["sh", "-c", script], timeout_s=600, background=True)
asyncio.run(main())
"""
    root = str(Path(__file__).parents[2])
    env = {**os.environ, **target.place.env}
    us = subprocess.Popen([sys.executable, "-c", code, root, target.place.recipe], env=env)
    try:
        await until((target.place.home / "pid").exists)
        command = int((target.place.home / "pid").read_text())
        os.killpg(command, signal.SIGSTOP)  # as in the quiet
    finally:
        us.kill()
        us.wait()
    await until(lambda: not lives(command))
    if isinstance(target, LocalTarget):
        os.killpg(command, signal.SIGKILL)  # its sleep; a child outlives us
