"""The plans that the story is measured by: that of the shipped playbook, and the same without looking first."""

from copy import deepcopy
from typing import Any

import yaml

from agent.core.plan import approvals_needed
from agent.named import load_named
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.playbook.write import yaml_text
from agent.servers.known_flags import all_known_flags
from agent.sim.host import world_file

KIMI = "kimi-k2.5-8x-rtx-pro-6000"
NO_GRAPH_FILE = {
    "when": {"env": {"NCCL_GRAPH_FILE": "*"}},
    "then": {
        "fail": {
            "phase": "dist-init",
            "message": "NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "before": ["NCCL WARN Could not open XML graph file : No such file or directory"],
        }
    },
}
"""The host's laws believe in a file that is named. NCCL looks for it (ncclTopoGetXmlGraphFromFile); it is not there."""


def book_of(name: str) -> dict[str, Any]:
    """A shipped playbook as plain data."""
    playbook, _ = load_named(name, print)
    read: dict[str, Any] = yaml.safe_load(yaml_text(playbook))
    return read


def shipped() -> dict[str, Any]:
    """The story's playbook, with short rounds, one launch of each flag set, and without its guard.

    What is tried, in which order, by which checks and why is all there. Launches that are repeated for their noise
    would differ between two runs by chance.
    """
    book = book_of(KIMI)
    single, streams = book["workloads"]
    # On a busy machine three spread too much.
    single |= {"input_len": 128, "output_len": 96, "requests": 1, "rounds": 5}
    streams |= {"input_len": 128, "output_len": 24, "requests": 4, "concurrency": 4}
    del book["guard"]
    return book | {"launches": 1, "at_end": "stop"}


def unchecked(book: dict[str, Any]) -> dict[str, Any]:
    """The same plan by somebody who looks nothing up before a load: no checks, no research, no source to read."""
    plan = deepcopy(book)
    for part in (plan["server"], *(one.get("server", {}) for one in plan["experiments"])):
        part.pop("source", None)
    for experiment in plan["experiments"]:
        experiment.pop("preflight", None)
        experiment.pop("research", None)
    return plan


def overlapped() -> dict[str, Any]:
    """The demo's playbook without what fails and what is slow: four loads, a second build, all checks and research."""
    book = book_of("demo")
    left_out = {"custom-allreduce", "ep-flashinfer"}
    book["experiments"] = [one for one in book["experiments"] if one["id"] not in left_out]
    for group in book["groups"]:
        group["members"] = [name for name in group["members"] if name not in left_out]
    next(one for one in book["experiments"] if one["id"] == "cuda13").pop("revisit")
    return book


def world(speed: float | None = None) -> dict[str, Any]:
    """The story's host with hardly any noise; `speed` instead of its own divides all of its times but rounds."""
    data: dict[str, Any] = yaml.safe_load(world_file("story").read_text())
    data["noise"] = {"launch_sd": 0.001, "round_sd": 0.001}
    data["rules"] = [NO_GRAPH_FILE]
    return data if speed is None else data | {"speed": speed}


def parsed(book: dict[str, Any]) -> Playbook:
    """A plan as tunebot reads it from a file."""
    found = load_playbook(yaml.safe_dump(book, sort_keys=False).encode(), "plan.yaml", all_known_flags())
    assert isinstance(found, Playbook), "\n".join(map(str, found))
    return found


def approvals(book: dict[str, Any]) -> list[str]:
    """What approves every prepare step of a plan."""
    playbook = parsed(book)
    return [step for one in playbook.experiments for step in approvals_needed(playbook, one)]
