"""A simulated host that several sessions can use."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import alive_pids


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimHost]:
    """A simulated host of its own, that outlives a session: `box` in targets.yaml."""
    host = create_host(tmp_path / "box", world_file("small"))
    entry = {
        "kind": "local",
        "workdir": str(host.home / ".tunebot"),
        "env": {**host.env, "HOME": str(host.home)},
        "path": [str(host.home / "bin")],
    }
    (tmp_path / "config" / "tunebot").mkdir(parents=True)
    (tmp_path / "config" / "tunebot" / "targets.yaml").write_text(yaml.safe_dump({"box": entry}))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield host
    for pid in alive_pids(host.ledger):
        os.kill(pid, signal.SIGKILL)
