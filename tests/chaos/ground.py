"""Where a session of the harness runs: a simulated host, here or behind a real sshd, with a home of its own."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agent.core.plan import approvals_needed
from agent.sim.host import create_host, world_file
from agent.sim.ledger import alive_pids
from agent.sim.world import read_world
from tests.chaos.proxy import Proxy
from tests.session.kit import parsed
from tests.sshd import Sshd, start_sshd

SPEED = 400.0
"""Slower than the small world is: every state lasts long enough to be hit."""
DRAFT = {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "~/models/draft"}
REQUESTS, ROUNDS, WORKLOAD = 2, 3, "w"
WORDS = {"base": "keep", "idea": "worse", "bad": "failed", "worse": "failed", "newer": "keep"}
"""What comes of the experiments where no server is killed."""


@dataclass
class Ground:
    """A machine for one session, or for two operators at once."""

    root: Path
    ssh: bool
    env: dict[str, str]
    sshd: Sshd | None = None
    proxy: Proxy | None = None
    killed: int = 0
    hit: set[str] = field(default_factory=set)

    def ledger(self, session: Path | None) -> Path:
        """The ledger of the simulated host; over SSH all sessions share one."""
        home = self.root / "box" if self.ssh or session is None else session / "host"
        return home / ".sim" / "ledger.jsonl"

    def run_words(self, book: dict[str, Any], logs: Path) -> list[str]:
        """The arguments of `tunebot` that begin a session of a playbook."""
        file = self.root / f"{logs.name}.yaml"
        file.write_text(yaml.safe_dump(book, sort_keys=False))
        playbook = parsed(book)
        approvals = [a for experiment in playbook.experiments for a in approvals_needed(playbook, experiment)]
        words = ["run", str(file), "--headless", "--logs", str(logs)]
        words += [] if self.ssh else ["--target", f"simulated:{self.root / 'world.yaml'}"]
        return [*words, *(word for approval in approvals for word in ("--approve", approval))]


@contextmanager
def ground(root: Path, ssh: bool, orphans: bool) -> Iterator[Ground]:
    """A fresh machine. With `orphans`, ranks outlive a killed leader. Nothing of it lives afterwards."""
    world = {**read_world(world_file("small")), "speed": SPEED, "pdeathsig": not orphans}
    (root / "home").mkdir(parents=True)
    (root / "world.yaml").write_text(json.dumps(world))
    env = {**os.environ, "XDG_STATE_HOME": str(root / "state"), "XDG_CONFIG_HOME": str(root / "config")}
    env |= {"HOME": str(root / "home")}
    made = Ground(root, ssh, env)
    try:
        if ssh:
            _behind_sshd(made, world)
        yield made
    finally:
        if made.proxy:
            made.proxy.close()
        if made.sshd:
            made.sshd.stop()
        for ledger in root.glob("**/.sim/ledger.jsonl"):
            kill_all(alive_pids(ledger))


def _behind_sshd(made: Ground, world: dict[str, Any]) -> None:
    root = made.root
    made.sshd = start_sshd(root / "sshd")
    made.proxy = Proxy(made.sshd.port)
    old, new = str(made.sshd.port), str(made.proxy.port)
    for file in (made.sshd.config, made.sshd.known_hosts):
        file.write_text(file.read_text().replace(f"Port {old}", f"Port {new}").replace(f"]:{old}", f"]:{new}"))
    host = create_host(root / "box", world)
    (root / "home" / ".ssh").mkdir()
    (root / "home" / ".ssh" / "config").write_text(made.sshd.config.read_text())
    entry = {"kind": "ssh", "host": "box", "env": {**host.env, "HOME": str(host.home)}, "path": ["~/bin"]}
    (root / "config" / "tunebot").mkdir(parents=True)
    (root / "config" / "tunebot" / "targets.yaml").write_text(yaml.safe_dump({"box": entry}))


def kill_all(pids: list[int]) -> None:
    """SIGKILL to each that still lives."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _research() -> list[dict[str, Any]]:
    grep = {"pattern": "moe_a2a_backend", "in": ["sglang:srt/server_args.py"]}
    probe = {"run": ["sleep", "0.8"], "where": "target", "gpu": False, "timeout": "1m"}
    return [{"probe": probe, "needed": True}, {"grep": grep}]


def playbook(target: str, serve: bool, whole: bool, launches: int = 1, guard: bool = False) -> dict[str, Any]:
    """The playbook of a session: a baseline, an idea, two loads that fail, and one with prepared environment.

    Not `whole`: the first two only, for operators who share a host. `launches` are granted to each flag set; with a
    `guard` each answers its questions.
    """
    site = "lib/python3.12/site-packages/sglang"
    steps = [
        {"run": ["python3", "-m", "venv", "~/venvs/new"], "creates": "~/venvs/new"},
        {"run": ["~/venvs/new/bin/pip", "install", "sglang==0.5.23"], "creates": "~/venvs/new/bin/sglang"},
    ]
    newer = {
        "command": ["~/venvs/new/bin/python", "-m", "sglang.launch_server"],
        "source": {"sglang": f"~/venvs/new/{site}"},
    }
    experiments = [
        {"id": "base", "baseline": True, "research": _research()},
        {"id": "idea", "based_on": "base", "args": DRAFT, "research": _research()},
        {"id": "bad", "based_on": "base", "env": {"SIM_FAIL": "oom"}, "research": _research()},
        {"id": "worse", "based_on": "base", "env": {"SIM_FAIL": "key"}},
        {"id": "newer", "based_on": "base", "prepare": steps, "server": newer, "research": _research()},
    ]
    return {
        "tunebot": 1,
        "name": "chaos",
        "target": target,
        "server": {
            "kind": "sglang",
            "command": ["~/venv/bin/python3", "-m", "sglang.launch_server"],
            "source": {"sglang": f"~/venv/{site}"},
            "args": {"model-path": "~/models/m", "tp": 2},
            "load_timeout": "60s",
        },
        "objective": {"workload": WORKLOAD, "min_gain": "5%"},
        "workloads": [{"name": WORKLOAD, "input_len": 32, "output_len": 64, "requests": REQUESTS, "rounds": ROUNDS}],
        "launches": launches,
        **({"guard": {"answers": "builtin", "max_logprob_drop": 0.02}} if guard else {}),
        "at_end": "baseline" if serve else "stop",
        "experiments": experiments if whole else experiments[:2],
    }
