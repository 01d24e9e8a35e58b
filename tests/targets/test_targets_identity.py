"""Who holds the GPUs, what a launch id and a pid mean, and what is left when the holder or a start is killed."""

import asyncio
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.ports import LaunchStatus, LaunchVoid, Started, TargetBusy, TargetUnusable
from agent.targets import wire, wrapper
from tests.targets.kit import DAEMON, PYTHON, RANKS, SLEEP, Placed, lives, log_bytes, printed, serve, spec, until

GONE = LaunchStatus(state="gone", leader_exit_code=None, processes=())


def run_dir(target: Placed, launch: str = "l1") -> Path:
    return target.place.work / "runs" / launch


def change_record(target: Placed, **changes: Any) -> None:
    path = run_dir(target) / "launch.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


async def kill_holder(target: Placed, launch: str = "l1") -> None:
    holder = json.loads((run_dir(target, launch) / "launch.json").read_bytes())["holder"]["pid"]
    os.kill(holder, signal.SIGKILL)
    await until(lambda: not lives(holder))


async def test_a_launch_id_is_used_once(target: Placed) -> None:
    assert await target.outcome("l1") is None
    before = time.time()
    first = await serve(target, SLEEP)
    assert (first.port, before <= first.started_at <= time.time()) == (8000, True)
    assert first.age_s <= time.time() - before
    for again in (await serve(target, "print('never')"), await target.outcome("l1")):
        assert again == replace(first, age_s=again.age_s) and again.age_s > first.age_s
    await target.stop("l1", 5.0)
    for again in (await serve(target, "print('never')"), await target.outcome("l1")):
        assert again == replace(first, age_s=again.age_s)
    assert (await target.launch_status("l1")).state == "exited"
    assert await log_bytes(target, "l1", 0) == b""


async def test_of_racing_starts_one_wins(target: Placed) -> None:
    starts = [serve(target, SLEEP, launch=launch) for launch in ("a", "a", "b", "b", "c", "d")]
    results = await asyncio.gather(*starts, return_exceptions=True)
    assert len({result.pid for result in results if not isinstance(result, BaseException)}) == 1
    assert all(isinstance(result, TargetBusy) for result in results if isinstance(result, BaseException))
    states = [(await target.launch_status(launch)).state for launch in "abcd"]
    assert sorted(states) == ["gone", "gone", "gone", "running"]


async def test_the_refusal_names_the_owner(target: Placed) -> None:
    await target.launch(spec("l1", *PYTHON, "-c", SLEEP, owner="ann \x1b[31m(desk)"))
    with pytest.raises(TargetUnusable, match=r"the GPUs are held by ann \(desk\) on .+, launch l1, since 20.*Z"):
        await serve(target, SLEEP, launch="l2")
    assert await target.launch_status("l2") == GONE
    for ask in (lambda: serve(target, SLEEP, launch="l2"), lambda: target.outcome("l2")):
        with pytest.raises(TargetBusy, match="held by ann"):
            await ask()


async def test_a_survey_names_who_holds_the_gpus_and_what_runs(target: Placed) -> None:
    found = await target.survey()
    assert (found["lock_owner"], found["launches"], found["workdir_problem"]) == (None, [], None)
    leader = await serve(target, SLEEP)
    found = await target.survey()
    assert (found["lock_owner"]["owner"], found["lock_owner"]["launch"]) == ("ann", "l1")
    assert found["launches"] == [{"launch": "l1", "pids": [leader.pid]}]
    await target.stop("l1", 5.0)
    found = await target.survey()
    assert (found["lock_owner"], found["launches"]) == (None, [])
    target.place.work.chmod(0o777)
    assert "others can write there" in (await target.survey())["workdir_problem"]["message"]
    target.place.work.chmod(0o700)


async def test_without_its_holder_a_server_lives_blocks_and_can_be_stopped(target: Placed) -> None:
    leader = await serve(target, RANKS, DAEMON)
    [daemon] = await printed(target, "daemon")

    seen = run_dir(target) / "processes.jsonl"
    await until(lambda: seen.exists() and f'"pid": {daemon},' in seen.read_text())
    await kill_holder(target)
    assert lives(leader.pid)
    assert (await target.launch_status("l1")).state == "running"
    with pytest.raises(TargetUnusable, match=rf"processes of launch l1 still live: .*\b{leader.pid}\b") as caught:
        await serve(target, SLEEP, launch="l2")
    assert "stop" in caught.value.hint
    report = await target.stop("l1", 5.0)
    assert (report.exit_code, report.left) == (None, ())
    assert not lives(daemon)
    assert await target.launch_status("l1") == GONE
    await serve(target, SLEEP, launch="l3")


async def test_what_starts_after_the_holders_death_is_found_by_its_mark(target: Placed) -> None:
    wait = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    leader = await serve(target, wait + DAEMON.replace("os._exit(0)", "os._exit(5)"), str(target.place.home / "go"))
    await kill_holder(target)
    (target.place.home / "go").touch()
    [daemon] = await printed(target, "daemon")
    await until(lambda: not lives(leader.pid))
    status = await target.launch_status("l1")
    assert (status.state, [process.pid for process in status.processes]) == ("running", [daemon])
    with pytest.raises(TargetUnusable, match="still live"):
        await serve(target, SLEEP, launch="l2")
    assert (await target.stop("l1", 5.0)).left == ()
    assert not lives(daemon)


async def test_an_orphan_without_a_mark_is_found_in_the_session(target: Placed) -> None:
    wait = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    orphan = (
        f"import os; print('orphan', os.getpid()); os.execve({PYTHON[0]!r}, ['cc1plus', '-S', '-c', {SLEEP!r}], {{}})"
    )
    fork = f"if os.fork() == 0:\n    if os.fork(): os._exit(0)\n    exec({orphan!r})\n"
    await serve(target, wait + fork + SLEEP, str(target.place.home / "go"))
    await kill_holder(target)
    (target.place.home / "go").touch()
    [pid] = await printed(target, "orphan")
    await until(lambda: Path(f"/proc/{pid}/environ").read_bytes() == b"")
    assert (await target.stop("l1", 5.0)).left == ()  # by the time of the KILLs it has no relative left
    assert not lives(pid)


async def test_signals_of_orphans_do_not_end_the_holder(target: Placed) -> None:
    await serve(target, SLEEP)
    holder = json.loads((run_dir(target) / "launch.json").read_bytes())["holder"]["pid"]
    for signum in (signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os.kill(holder, signum)
    assert (await target.stop("l1", 5.0)).exit_code == -15


@pytest.fixture
async def stranger(target: Placed) -> Any:
    """A process of somebody else, whose pid the record of l1 names."""
    process = await asyncio.create_subprocess_exec(*PYTHON, "-c", SLEEP, start_new_session=True)
    yield process
    process.kill()
    await process.wait()


async def test_a_recycled_pid_is_never_signalled(target: Placed, stranger: asyncio.subprocess.Process) -> None:
    await serve(target, "pass")
    await until(lambda: (run_dir(target) / "exit.json").exists())
    (run_dir(target) / "exit.json").unlink()
    now = wrapper.find(stranger.pid)
    assert now is not None
    change_record(target, pid=now.pid, start_ticks=now.start_ticks - 1, holder={"pid": now.pid, "start_ticks": 1})
    with (run_dir(target) / "processes.jsonl").open("a") as file:
        file.write(json.dumps({"pid": now.pid, "start_ticks": now.start_ticks + 1}) + "\n" + '{"pid": ' + "\n")
    assert (await target.launch_status("l1")).processes == ()
    report = await target.stop("l1", 1.0)
    assert report.left == ()
    assert lives(stranger.pid)
    await serve(target, SLEEP, launch="l2")  # it blocks nobody either


async def test_after_a_reboot_a_launch_is_gone(target: Placed, stranger: asyncio.subprocess.Process) -> None:
    await serve(target, SLEEP)
    await target.stop("l1", 5.0)
    for name in ("exit.json", "leader.json"):
        (run_dir(target) / name).unlink()
    now = wrapper.find(stranger.pid)
    assert now is not None
    change_record(target, pid=now.pid, start_ticks=now.start_ticks)  # the very same process, if the boot were the same
    assert (await target.launch_status("l1")).state == "running"
    change_record(target, boot_id="another")
    assert await target.launch_status("l1") == GONE
    assert (await target.stop("l1", 1.0)).left == ()
    assert lives(stranger.pid)


async def test_a_start_that_was_cut_off_is_final(target: Placed) -> None:
    for launch, ask in {
        "l1": lambda: target.launch_status("l1"),
        "l2": lambda: target.outcome("l2"),
        "l3": lambda: serve(target, SLEEP, launch="l3"),
        "l4": lambda: target.run_once("l4", ["true"], timeout_s=5.0),
        "l5": lambda: target.stop("l5", 1.0),
    }.items():
        run_dir(target, launch).mkdir(parents=True)
        (run_dir(target, launch) / "claim").touch()  # claimed, then killed
        with suppress(LaunchVoid):
            await ask()
        with pytest.raises(LaunchVoid, match=f"the start of launch {launch} was cut off") as caught:
            await target.outcome(launch)
        assert caught.value.hint
        with pytest.raises(LaunchVoid):
            await serve(target, SLEEP, launch=launch)
        assert await target.launch_status(launch) == GONE
        assert (await target.stop(launch, 1.0)).left == ()


async def test_a_start_under_way_is_running_and_stop_waits_for_it(target: Placed) -> None:
    run_dir(target).mkdir(parents=True)
    claim = wrapper._lock(run_dir(target) / "claim")  # as the one who starts has it
    assert claim is not None
    assert (await target.launch_status("l1")).state == "running"
    stop, ask = asyncio.create_task(target.stop("l1", 1.0)), asyncio.create_task(target.outcome("l1"))
    await asyncio.wait({stop, ask}, timeout=0.5)
    assert not stop.done() and not ask.done()
    os.close(claim)
    assert (await stop).left == ()
    with pytest.raises(LaunchVoid):
        await ask


async def test_asking_during_a_start_does_not_cut_it_off(target: Placed) -> None:
    async def asked(launch: str) -> list[Started | None]:
        answers = [await target.outcome(launch)]
        while answers[-1] is None:
            answers.append(await target.outcome(launch))
            await target.launch_status(launch)
        return answers

    for count in range(4):
        launch = f"l{count}"
        leader, *others = await asyncio.gather(serve(target, SLEEP, launch=launch), asked(launch), asked(launch))
        assert {answer.pid for answers in others for answer in answers if answer} == {leader.pid}
        await target.stop(launch, 1.0)


async def test_a_stop_before_the_start_keeps_it_from_starting(target: Placed) -> None:
    assert await target.launch_status("l1") == GONE
    assert (await target.stop("l1", 1.0)).left == ()
    with pytest.raises(LaunchVoid):
        await serve(target, SLEEP)


async def test_a_start_killed_anywhere_leaves_one_server_or_none(target: Placed) -> None:
    """Whatever the moment: the id is spent or free, and a server that lives is known and can be stopped."""
    for step in range(12):
        start = asyncio.create_task(serve(target, SLEEP, launch=f"l{step}"))
        await asyncio.wait({start}, timeout=step * 0.01)
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)

        async def settled(launch: str = f"l{step}") -> bool:
            status = await target.launch_status(launch)
            return status.state != "running" or bool(status.processes)

        async def agreed(launch: str = f"l{step}") -> bool:
            # A start that was given up here may only now begin there: soon both say the same.
            try:
                started, status = await target.outcome(launch), await target.launch_status(launch)
            except LaunchVoid:
                return True
            return [process.pid for process in status.processes] == ([started.pid] if started else [])

        await until(settled)
        await until(agreed)
        assert (await target.stop(f"l{step}", 5.0)).left == ()


def test_a_dead_main_thread_with_a_live_one_is_alive() -> None:
    import subprocess

    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
    process = subprocess.Popen([*PYTHON, "-c", code + "ctypes.CDLL(None).syscall(60, 0)"])
    try:
        stat = Path(f"/proc/{process.pid}/stat")
        while b") Z" not in stat.read_bytes():
            pass
        assert wrapper.find(process.pid) is not None
    finally:
        process.kill()
    while stat.exists() and wrapper.find(process.pid) is not None:
        pass
    assert stat.exists() and b") Z" in stat.read_bytes()  # an ordinary zombie is dead
    process.wait()


@pytest.mark.parametrize("launch", ["../l1", "", ".hidden", "a/b", "x\n"])
async def test_a_launch_id_is_a_plain_name(target: Placed, launch: str) -> None:
    with pytest.raises(TargetUnusable, match="not a launch id"):
        await serve(target, SLEEP, launch=launch)


@pytest.mark.parametrize("module", wire._MODULES)
def test_what_runs_on_targets_is_for_old_interpreters(module: str) -> None:
    import ast
    import sys

    file = Path(wrapper.__file__).with_name(f"{module}.py")
    tree = ast.parse(file.read_bytes(), feature_version=(3, 8))
    names = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [item.name for item in node.names])
    ]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | {"agent"}
