"""Worlds that hide a count and latencies of all-reduces, drawn by seed."""

import random
from typing import Any

from agent.sim.host import world_file
from agent.sim.world import read_world


def hidden_world(seed: int) -> dict[str, Any]:
    """The story's host with a count and latencies of all-reduces, and a compute time, that no playbook tells."""
    draw = random.Random(seed)
    data: dict[str, Any] = read_world(world_file("story"))
    step = {**data["step"], "allreduces": 2 * draw.randint(30, 100), "compute_ms": draw.uniform(4, 16)}
    small, large = draw.uniform(12, 60), draw.uniform(30, 300)
    step["kernels"] = {"nccl": {14336: small, 57344: max(small, large), 1048576: 900}}
    return {**data, "seed": seed, "step": step}
