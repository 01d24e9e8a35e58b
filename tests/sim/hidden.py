"""Worlds that hide a count and latencies of all-reduces, drawn by seed, and playbooks that are to find them."""

import random
from functools import cache
from typing import Any

import yaml

from agent.paths import shipped_playbooks
from agent.sim.host import world_file
from agent.sim.world import read_world

KIMI = yaml.safe_load((shipped_playbooks() / "kimi-k2.5-8x-rtx-pro-6000.yaml").read_text())
TERMS: dict[str, Any] = KIMI["terms"]
"""The shipped playbook's: what it believes is of other hosts."""
WHOLE: dict[str, int] = {name: term["count"] for name, term in TERMS.items()}
"""What removes all calls of a step."""
NOTHING_LEFT = "enable-mscclpp"
"""The flag that takes every all-reduce away in such a world."""


@cache
def _story() -> dict[str, Any]:
    return read_world(world_file("story"))


def hidden_world(seed: int) -> dict[str, Any]:
    """The story's host with other all-reduces and another compute time, and a rule that takes all of them away.

    The model has two in each of its layers, as its config.json has it.
    """
    draw = random.Random(seed)
    data = _story()
    layers = draw.randint(30, 100)
    step = {**data["step"], "allreduces": 2 * layers, "compute_ms": draw.uniform(4, 16)}
    small, large = draw.uniform(12, 60), draw.uniform(30, 300)
    step["kernels"] = {"nccl": {14336: small, 57344: max(small, large), 1048576: 900}}
    model, *drafts = data["models"]
    config = {**model["config"], "text_config": {**model["config"]["text_config"], "num_hidden_layers": layers}}
    gone = {"when": {"flags": {NOTHING_LEFT: True}}, "then": {"removes": 1.0}}
    return {
        **data,
        "seed": seed,
        "step": step,
        "models": [{**model, "config": config}, *drafts],
        "rules": [*data["rules"], gone],
    }
