"""Launches in containers: what lives is the container, whatever becomes of its client, of our holder and of us."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.ports import LaunchStatus, PortOwners, TargetBusy, TargetUnusable
from agent.targets import containers
from tests.targets.kit import PYTHON, SLEEP, Placed, lives, log_bytes, printed, spec, until
from tests.targets.test_targets_host import LISTEN

SCRIPT = Path(__file__).with_name("standin_docker.py")
RUN = ["docker", "run", "--rm", "--network", "host", "server:1"]
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@dataclass
class Docker:
    """The stand-in, asked as its own client."""

    folder: Path

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*PYTHON, str(SCRIPT), str(self.folder), *words], capture_output=True, text=True)
        return done.stdout

    def alive(self) -> list[str]:
        return [line.split()[0] for line in self("ps").splitlines() if line.endswith(" running")]


@pytest.fixture
def docker() -> Iterator[Docker]:
    """A running daemon."""
    with tempfile.TemporaryDirectory() as name:
        process = subprocess.Popen([*PYTHON, str(SCRIPT), "daemon", name])
        while not (Path(name) / "socket").exists():
            time.sleep(0.01)
        yield Docker(Path(name))
        process.kill()
        process.wait()


@pytest.fixture
def box(docker: Docker, target: Placed) -> Placed:
    """A target whose launches run in containers."""
    install(target, f'exec {PYTHON[0]} -I -S {SCRIPT} {docker.folder} "$@"')
    target._container = {"run": RUN, "stop_s": None, "env": ["TUNEBOT_TEST"]}  # type: ignore[attr-defined]
    return target


def install(target: Placed, line: str) -> None:
    tool = target.place.tools / "docker"
    tool.write_text(f"#!/bin/sh\n{line}\n")
    tool.chmod(0o755)


async def serve(target: Placed, code: str, *words: str, launch: str = "l1", env: dict[str, str] | None = None) -> int:
    """Launch a server of that Python code in a container; the pid of the client."""
    return (await target.launch(spec(launch, *PYTHON, "-c", code, *words, env=env))).pid


async def in_container(target: Placed, launch: str = "l1") -> int:
    """The first process in the container, once there is one."""
    path = target.place.work / "runs" / launch / "container.json"

    async def found() -> int | None:
        await target.launch_status(launch)
        return json.loads(path.read_bytes())["pid"] if path.exists() else None

    pid: int = await until(found)
    return pid


def holder_of(target: Placed, launch: str = "l1") -> int:
    record: dict[str, Any] = json.loads((target.place.work / "runs" / launch / "launch.json").read_bytes())
    return int(record["holder"]["pid"])


async def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not any(lives(pid) for pid in pids))


async def test_a_launch_runs_in_a_container_and_is_stopped_there(box: Placed, docker: Docker) -> None:
    port = await box.free_port()
    client = await serve(box, LISTEN, str(port), "127.0.0.1")
    await printed(box, "listens")
    server = await in_container(box)
    status = await box.launch_status("l1")
    assert (status.state, status.leader_exit_code) == ("running", None)
    assert {client, server} <= {process.pid for process in status.processes}
    assert await box.port_owners("l1", port) == PortOwners(ours=(server,), others=False)
    report = await box.stop("l1", 5.0)
    assert (report.exit_code, report.left) == (128 + signal.SIGTERM, ())
    assert not lives(server) and not docker.alive()
    assert await box.launch_status("l1") == LaunchStatus(state="exited", leader_exit_code=143, processes=())


async def test_values_of_variables_are_in_no_argv(box: Placed) -> None:
    code = f"import os; print(sorted(set(os.environ) - {{'PATH', 'LC_CTYPE'}}), os.environ['KEY'], flush=True)\n{SLEEP}"
    start = replace(spec("l1", *PYTHON, "-c", code, env={"KEY": "hush"}), unset=("LD_PRELOAD",))
    client = (await box.launch(start)).pid
    said = await until(lambda: log_bytes(box, "l1", 0))
    names = ["KEY", "SPT_NOENV", "TUNEBOT_LAUNCH_ID", "TUNEBOT_MARK", "TUNEBOT_TEST"]
    assert said.decode() == f"{names} hush\n"
    argv = Path(f"/proc/{client}/cmdline").read_bytes().split(b"\0")
    assert b"hush" not in b"\n".join(argv)
    assert b"tunebot.launch=l1" in argv and argv[argv.index(b"LD_PRELOAD") - 1] == b"--env"


async def test_a_dead_client_is_no_dead_server(box: Placed, docker: Docker) -> None:
    port = await box.free_port()
    client = await serve(box, LISTEN, str(port), "127.0.0.1")
    await printed(box, "listens")
    server = await in_container(box)
    await kill(client)
    for _ in range(20):  # whatever the holder sees meanwhile
        status = await box.launch_status("l1")
        assert (status.state, status.leader_exit_code) == ("running", None)
        assert server in {process.pid for process in status.processes}
        await asyncio.sleep(0.05)
    assert await box.port_owners("l1", port) == PortOwners(ours=(server,), others=False)
    with pytest.raises(TargetBusy, match="the GPUs are held by"):
        await serve(box, SLEEP, launch="l2")
    assert (await box.stop("l1", 5.0)).left == ()
    assert not lives(server) and not docker.alive()
    assert (await box.launch_status("l1")).state == "exited"


@pytest.mark.parametrize("known", [True, False])
async def test_without_holder_and_client_the_container_is_found(box: Placed, docker: Docker, known: bool) -> None:
    client = await serve(box, f"print('up', flush=True); {SLEEP}")
    await printed(box, "up")
    server = await in_container(box)
    await kill(holder_of(box), client)
    if not known:  # as if both had died before anybody saw it
        for name in ("container.json", "processes.jsonl"):
            (box.place.work / "runs" / "l1" / name).unlink(missing_ok=True)
    status = await box.launch_status("l1")
    assert status.state == "running" and server in {process.pid for process in status.processes}
    with pytest.raises(TargetBusy, match="processes of launch l1 still live"):
        await serve(box, SLEEP, launch="l2")
    assert (await box.stop("l1", 5.0)).left == ()
    assert not lives(server) and not docker.alive()
    assert (await box.launch_status("l1")).state == "gone"


async def test_the_end_of_a_container_is_the_end_of_its_launch(box: Placed, docker: Docker) -> None:
    await serve(box, "import sys; print('bye', flush=True); sys.exit(7)")
    await until(lambda: _ended(box))
    assert await box.launch_status("l1") == LaunchStatus(state="exited", leader_exit_code=7, processes=())
    assert await log_bytes(box, "l1", 0) == b"bye\n"
    await serve(box, SLEEP, launch="l2")
    await in_container(box, "l2")
    docker("kill", *docker.alive())
    await until(lambda: _ended(box, "l2"))
    assert (await box.launch_status("l2")).leader_exit_code == 128 + signal.SIGKILL
    client = await serve(box, SLEEP, launch="l3")
    await in_container(box, "l3")
    await kill(client)
    docker("kill", *docker.alive())
    await until(lambda: _ended(box, "l3"))  # by whom it was seen last


async def _ended(target: Placed, launch: str = "l1") -> bool:
    return (await target.launch_status(launch)).state == "exited"


async def test_nobody_elses_container_is_touched(box: Placed, docker: Docker) -> None:
    words = ["--label", "tunebot.launch=l1", "--label", "tunebot.mark=l1:other"]  # another user's launch of that name
    other = subprocess.Popen(
        [*PYTHON, str(SCRIPT), str(docker.folder), "run", *words, "--cidfile", "/dev/null", RUN[-1], "sleep", "600"]
    )
    await until(docker.alive)
    server = await serve(box, SLEEP)
    await in_container(box)
    assert len(docker.alive()) == 2
    assert (await box.stop("l1", 5.0)).left == ()
    assert not lives(server) and len(docker.alive()) == 1 and other.poll() is None
    other.terminate()
    assert other.wait(timeout=10) == 143


@pytest.mark.parametrize(("stop_s", "least_s"), [(None, 1.0), (2.0, 2.0)])
async def test_a_deaf_server_is_killed_in_time(
    box: Placed, docker: Docker, stop_s: float | None, least_s: float
) -> None:
    box._container["stop_s"] = stop_s  # type: ignore[attr-defined]
    await serve(box, DEAF)
    await printed(box, "deaf")
    await in_container(box)
    began = time.monotonic()
    report = await box.stop("l1", 1.0)
    assert (report.exit_code, report.left) == (128 + signal.SIGKILL, ())
    assert least_s <= time.monotonic() - began < least_s + 10.0
    assert not docker.alive()


async def test_while_docker_gives_no_answer_nothing_is_said_to_be_gone(box: Placed, docker: Docker) -> None:
    client = await serve(box, SLEEP)
    server = await in_container(box)
    await kill(holder_of(box), client)
    for name in ("container.json", "processes.jsonl"):
        (box.place.work / "runs" / "l1" / name).unlink(missing_ok=True)
    good = (box.place.tools / "docker").read_text()
    install(box, "echo permission denied; exit 1")
    assert (await box.launch_status("l1")).state == "unknown"
    with pytest.raises(TargetUnusable, match="docker gives no answer: permission denied"):
        await serve(box, SLEEP, launch="l2")
    with pytest.raises(TargetUnusable, match="cannot stop launch l1: docker gives no answer"):
        await box.stop("l1", 1.0)
    assert (await box.survey())["launches"] == [{"launch": "l1", "pids": []}]
    assert lives(server)
    (box.place.tools / "docker").write_text(good)
    assert (await box.stop("l1", 5.0)).left == ()
    assert not lives(server)


async def test_what_was_never_started_never_will_be(box: Placed, docker: Docker) -> None:
    await serve(box, SLEEP, env={"DIES_BEFORE_START": "1"})
    await until(lambda: _ended(box))
    assert docker("ps") == ""


async def test_an_image_that_is_not_there_fails_the_launch(box: Placed) -> None:
    box._container["run"] = [*RUN[:-1], "other:2"]  # type: ignore[attr-defined]
    await serve(box, SLEEP)
    await until(lambda: _ended(box))
    assert (await box.launch_status("l1")).leader_exit_code == 125
    assert b"Unable to find image" in await log_bytes(box, "l1", 0)


async def test_a_docker_that_is_down_fails_the_launch(box: Placed) -> None:
    install(box, "echo Cannot connect to the Docker daemon; exit 125")
    await serve(box, SLEEP)
    await until(lambda: _ended(box))
    assert (await box.launch_status("l1")).leader_exit_code == 125
    box._container["run"] = ["no-such-docker", *RUN[1:]]  # type: ignore[attr-defined]
    with pytest.raises(TargetUnusable, match="cannot start no-such-docker"):
        await serve(box, SLEEP, launch="l2")


async def test_jobs_do_not_run_in_containers(box: Placed, docker: Docker) -> None:
    done = await box.run_once("j1", ["echo", "here"], timeout_s=10.0)
    assert (done.exit_code, done.output, docker("ps")) == (0, b"here\n", "")


async def test_whose_ports_are_hidden_is_asked_inside(box: Placed, docker: Docker) -> None:
    """Who is not root does not see which sockets root's processes have."""
    await serve(box, LISTEN, str(await box.free_port()), "127.0.0.1")
    await printed(box, "listens")
    record = json.loads((box.place.work / "runs" / "l1" / "launch.json").read_bytes())
    server = await in_container(box)
    theirs = {str(file.readlink()) for file in Path(f"/proc/{server}/fd").iterdir()}
    sockets = {name for name in theirs if name.startswith("socket:")}
    assert sockets and sockets <= containers.sockets(record["container"])
