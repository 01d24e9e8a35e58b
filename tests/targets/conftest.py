import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.targets import wrapper
from agent.targets.local import LocalTarget
from tests.targets.kit import PYTHON, until


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    """A host with its own home and PATH. Whatever a test leaves running on it fails that test."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").write_text(f'#!/bin/sh\nexec {PYTHON[0]} "$@"\n')
    (tools / "python3").chmod(0o755)
    (tmp_path / "home").mkdir()
    target = LocalTarget(
        "here",
        workdir=tmp_path / "work",
        home=tmp_path / "home",
        path_prefix=str(tools),
        extra_env={"TUNEBOT_TEST": str(tmp_path)},
    )
    yield target
    await target.close()
    for run in (tmp_path / "work" / "runs").glob("*"):
        if wrapper.status(run)["state"] == "running":
            await target.stop(run.name, 0.0)
    entry = f"TUNEBOT_TEST={tmp_path}"
    await until(lambda: not [pid for pid in wrapper.snapshot() if pid != os.getpid() and wrapper.marked(pid, entry)])
    shutil.rmtree(tmp_path)
