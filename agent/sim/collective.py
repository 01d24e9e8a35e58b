"""The all-reduce benchmark on a simulated host: it answers from what the world hides."""

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from agent.sim.pace import US, latency_us
from agent.sim.procs import append
from agent.sim.rules import outcome_of
from agent.sim.venvs import load_site

JITTER = 0.02
"""Relative standard deviation of what it measures."""


def answer(arguments: Sequence[str]) -> None:
    """Print what NCCL takes with the variables that are set, as one line of JSON, and end the program.

    It measures NCCL as a program of its own does: what a server's flags replace it by is not seen.
    """
    root, environment, world = load_site(Path(sys.prefix))
    ranks = int(arguments[arguments.index("--ranks") + 1])
    sizes = [int(word) for word in arguments[arguments.index("--ranks") + 2 :]]
    if world.step is None or environment is None:
        sys.stderr.write("this simulated host does not know what an all-reduce takes\n")
        os._exit(1)
    began = time.time()
    time.sleep(world.seconds("dist-init"))
    table = outcome_of(world, {}, os.environ, environment).pace.latency_us
    noise = random.Random(f"{world.seed}|{began}")
    found = {size: latency_us(table, size) * US * (1 + noise.gauss(0, JITTER)) for size in sizes}
    append(root / ".sim" / "ledger.jsonl", "allreduce", start=began, sizes=found, ranks=ranks)
    told = {"sizes": {str(size): {"seconds": seconds} for size, seconds in found.items()}, "ranks": ranks}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)
