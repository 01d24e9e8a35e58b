"""`tunebot doctor`: what is wrong with a target, in words, and soon."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent import doctor
from agent.doctor import Check, examine, usable
from agent.sim.host import create_host
from tests.sshd import start_sshd
from tests.targets.kit import PYTHON, until
from tests.targets.test_targets_docker import RUN, SCRIPT, Docker, docker  # noqa: F401


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a configuration of one's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "config" / "tunebot").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return tmp_path


async def checked(folder: Path, **entry: Any) -> dict[str, Check]:
    """The checks of a target with that entry in targets.yaml, by name."""
    text = yaml.safe_dump({"box": {"kind": "local", **entry}})
    (folder / "config" / "tunebot" / "targets.yaml").write_text(text)
    return {check.name: check for check in await examine("box")}


def make_venv(prefix: Path) -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python3").symlink_to(PYTHON[0])
    return prefix


async def test_a_venv_is_used_and_checked(here: Path) -> None:
    checks = await checked(here, venv="~/v")
    assert checks["target"].text == "the venv ~/v is not there" and "python3 -m venv ~/v" in checks["target"].hint
    make_venv(here / "home" / "v")
    checks = await checked(here, venv="~/v")
    assert checks["environment"].text == f"~/v, Python {sys.version.split()[0]}"
    python = here / "home" / "v" / "bin" / "python3"
    python.unlink()
    python.symlink_to("/usr/bin/python3.2")
    assert (await checked(here, venv="~/v"))["target"].text == "the venv ~/v has no python3 that can be started"
    python.unlink()
    python.write_text("#!/bin/sh\necho broken; exit 1\n")
    python.chmod(0o755)
    checks = await checked(here, venv="~/v")
    assert checks["environment"].state == "bad" and "does not run: broken" in checks["environment"].text


async def test_what_research_may_read_is_checked(here: Path) -> None:
    (here / "home" / "src").mkdir()
    checks = await checked(here, read=["~/src", "/no/such"])
    assert (checks["read"].state, checks["read"].text) == ("note", "not there: /no/such")
    assert (await checked(here, read=["~/src"]))["read"].state == "ok"


async def test_docker_is_checked(here: Path, docker: Docker) -> None:  # noqa: F811
    tool = here / "home" / "bin" / "docker"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {PYTHON[0]} -I -S {SCRIPT} {docker.folder} "$@"\n')
    tool.chmod(0o755)
    good = await checked(here, path=["~/bin"], docker={"run": RUN})
    assert (good["docker"].state, good["docker"].text) == ("ok", "runs containers, has the image server:1")
    other = await checked(here, path=["~/bin"], docker={"run": [*RUN[:-1], "other:2"]})
    assert other["docker"].state == "note" and other["docker"].hint.endswith("docker pull other:2")
    (docker.folder / "socket").unlink()
    down = await checked(here, path=["~/bin"], docker={"run": RUN})
    assert down["docker"].state == "bad" and "Cannot connect to the Docker daemon" in down["docker"].text
    none = await checked(here, docker={"run": ["no-such-docker", *RUN[1:]]})
    assert none["docker"].text == "no program no-such-docker" and not usable(list(none.values()))


async def test_who_holds_the_gpus_is_said(here: Path) -> None:
    host = create_host(here / "host", {"name": "two", "gpu": {"count": 2}})
    entry = {"path": [str(host.home / "bin")], "env": host.env, "workdir": str(here / "work")}
    checks = await checked(here, **entry)
    assert checks["gpu memory"].text == "nobody holds any"
    assert checks["topology"].text == "pairs of GPUs: 1 x PIX; the driver runs CUDA 13.0"
    stranger = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent.sim.squatter", str(host.home), "1", "5120"), stdout=asyncio.subprocess.PIPE
    )
    assert stranger.stdout and await stranger.stdout.readline()
    held = (await checked(here, **entry))["gpu memory"]
    assert held.state == "note" and held.text.startswith(f"5.0 GiB of GPU 1 held by pid {stranger.pid} (")
    stranger.kill()
    await stranger.wait()


@pytest.fixture
def mute(here: Path) -> Iterator[int]:
    """A port that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_host_that_says_nothing_takes_no_ten_seconds(here: Path, mute: int) -> None:
    began = time.monotonic()
    [check] = await examine(f"ssh:127.0.0.1:{mute}")
    assert time.monotonic() - began < 10.0
    assert (check.name, check.state, check.text) == ("connection", "bad", f"no answer in {doctor.LIMIT_S:.0f} s")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_host_that_falls_silent_is_given_up_in_time(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection stands, then nothing comes any more, not even an answer to the goodbye."""
    monkeypatch.setattr(doctor, "LIMIT_S", 3.0)
    sshd = start_sshd(here / "sshd")
    (here / "home" / ".ssh").mkdir()
    (here / "home" / ".ssh" / "config").write_text(sshd.config.read_text())
    smi = here / "home" / "bin" / "nvidia-smi"  # the first command that the doctor runs
    smi.parent.mkdir()
    smi.write_text(f"#!/bin/sh\ntouch {here}/asked; exec sleep 60\n")
    smi.chmod(0o755)
    text = f"box: {{kind: ssh, host: box, path: [{smi.parent}], workdir: {here}/work}}"
    (here / "config" / "tunebot" / "targets.yaml").write_text(text)
    began = time.monotonic()
    looking = asyncio.create_task(examine("box"))
    await until((here / "asked").exists)
    sshd.signal_connections(signal.SIGSTOP)
    checks = await looking
    assert time.monotonic() - began < 3.0 + 2.0
    assert (checks[0].text[:10], checks[-1].text) == ("reached in", "not done after 3 s")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    sshd.signal_connections(signal.SIGCONT)
    sshd.stop()
