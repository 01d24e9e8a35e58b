"""Runs whole sessions on simulated hosts, and reads the ledger that tunebot never reads."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.core.state import State
from agent.fragments import shipped_fragments
from agent.headless import Printer
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.run import Options, run_session
from agent.servers.known_flags import all_known_flags
from agent.sim.ledger import alive_pids, launches, read_ledger

SOURCE = {
    "sglang": "~/venv/lib/python3.12/site-packages/sglang",
    "flashinfer": "~/venv/lib/python3.12/site-packages/flashinfer",
}


@dataclass
class Session:
    """A finished session and what really happened."""

    state: State
    lines: list[str]
    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "host" / ".sim" / "ledger.jsonl"

    @property
    def words(self) -> dict[str, str]:
        """The verdict of each experiment against its parent."""
        return {e.id: e.verdict.word if e.verdict else "open" for e in self.state.experiments.values()}

    def real_launches(self) -> dict[str, dict[str, Any]]:
        """The ledger's launches by experiment; each was started at most once."""
        by_launch = {launch["launch_id"]: launch for launch in launches(self.ledger)}
        assert len(by_launch) == len(launches(self.ledger)), "no launch id was started twice"
        return {self.state.launches[name].experiment: launch for name, launch in by_launch.items()}

    def requests(self) -> list[dict[str, Any]]:
        return [record for record in read_ledger(self.ledger) if record["kind"] == "request"]

    def nothing_left(self) -> bool:
        return alive_pids(self.ledger) == []

    def log(self, experiment: str) -> bytes:
        """What the last launch of an experiment printed, as the session kept it."""
        launch = self.state.experiments[experiment].launches[-1]
        return (self.folder / "launches" / f"{launch}.log").read_bytes()


def parsed(data: dict[str, Any]) -> Playbook:
    """A playbook that went through YAML, as a user's does."""
    text = yaml.safe_dump(data, sort_keys=False).encode()
    found = load_playbook(text, "test.yaml", all_known_flags(), fragments=shipped_fragments())
    assert isinstance(found, Playbook), "\n".join(map(str, found))
    return found


def small_playbook(*experiments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A playbook for a small simulated host; the first experiment is the baseline."""
    first, *rest = experiments or ({"id": "base"},)
    return {
        "tunebot": 1,
        "name": "small",
        "target": "simulated",
        "server": {
            "kind": "sglang",
            "command": ["~/venv/bin/python3", "-m", "sglang.launch_server"],
            "source": SOURCE,
            "args": {"model-path": "~/models/m", "tp": 2},
            "load_timeout": "30s",
        },
        "objective": {"workload": "w", "min_gain": "5%"},
        "workloads": [{"name": "w", "input_len": 32, "output_len": 64, "requests": 2, "rounds": 3}],
        "launches": 1,
        "accept": "resolver",
        "at_end": "stop",
        "experiments": [{**first, "baseline": True}, *rest],
        **changes,
    }


async def run(
    data: dict[str, Any], tmp_path: Path, world: dict[str, Any] | None = None, approved: tuple[str, ...] = ()
) -> Session:
    """Run a playbook (on the world, if given) to its end."""
    target = None
    if world is not None:
        file = tmp_path / "world.yaml"
        file.write_text(json.dumps(world))
        target = f"simulated:{file}"
    lines: list[str] = []
    options = Options(target=target, approved=approved, keep=False, logs=tmp_path / "logs")
    state, folder = await run_session(parsed(data), "playbook", options, Printer(lines.append))
    return Session(state, lines, folder.path)
