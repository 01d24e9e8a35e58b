import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from agent.targets import wrapper
from agent.targets.local import LocalTarget
from tests.sshd import Sshd, start_sshd
from tests.targets.kit import PYTHON, Place, Placed, until


@pytest.fixture(scope="session")
def shared_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One server for all tests that leave it alone."""
    sshd = start_sshd(tmp_path_factory.mktemp("sshd"))
    yield sshd
    sshd.stop()


@pytest.fixture(params=["local", "ssh"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], Placed]:
    """Makes a target with its own home, PATH and the given work folder: on this machine, or over SSH to it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").write_text(f'#!/bin/sh\nexec {PYTHON[0]} "$@"\n')
    (tools / "python3").chmod(0o755)
    (tmp_path / "home").mkdir()
    env = {"TUNEBOT_TEST": str(tmp_path), "TUNEBOT_UNWANTED": "1"}
    sshd: Sshd | None = request.getfixturevalue("shared_sshd") if request.param == "ssh" else None

    def made(work: Path) -> Placed:
        return Place(root=tmp_path, work=work, env=env, sshd=sshd).target()

    return made


@pytest.fixture
async def target(build: Callable[[Path], Placed], tmp_path: Path) -> AsyncIterator[Placed]:
    """A host with its own home and PATH. Whatever a test leaves running on it fails that test."""
    target = build(tmp_path / "work")
    yield target
    for run in (tmp_path / "work" / "runs").glob("*"):
        if wrapper.status(run)["state"] == "running":
            await LocalTarget("here", workdir=tmp_path / "work").stop(run.name, 0.0)
    await target.close()
    entry = f"TUNEBOT_TEST={tmp_path}"
    await until(lambda: not [pid for pid in wrapper.snapshot() if pid != os.getpid() and wrapper.marked(pid, entry)])
    shutil.rmtree(tmp_path)
