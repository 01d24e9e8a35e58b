"""Eight ranks that die within 50 ms: their tracebacks, written in pieces of 4 KiB, are torn into each other.

`python -m tests.watch.dying [RUNS]` counts in how many runs the rank that died first is named.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from agent.servers import KINDS
from agent.sim.effects import Fail
from agent.sim.failures import rank_traceback
from agent.watch.outcome import Diagnosis
from agent.watch.watch import LoadWatch

RANKS, WITHIN_S, PIECE = 8, 0.05, 4096
SITE = Path(__file__).parents[2] / "agent" / "sim" / "trees" / "sglang-0.5.9"
DEEP = tuple(
    (
        "sglang/srt/models/deepseek_v2.py",
        f"forward_layer_{depth}",
        "hidden_states, residual = self.layers[depth](positions)",
    )
    for depth in range(48)
)
OWN = (
    (
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 1.31 GiB. GPU {rank} has a total capacity of 94 GiB",
    ),
    ("RuntimeError", "No supported CUDA architectures found for major versions [9, 10]."),
    ("AssertionError", "64 is not divisible by 6"),
    ("ValueError", "the checkpoint has no tensor model.layers.3.mlp.w2_weight of rank {rank}"),
    ("KeyError", "12"),
)
LOST = (
    ("RuntimeError", "[pair.cc:547] Connection closed by peer [127.0.0.1]:3472"),
    ("torch.distributed.DistBackendError", "NCCL error: remote process exited or there was a network error"),
    (
        "ValueError",
        "TP rank {rank} could finish the model loading, but there are other ranks that didn't finish loading.",
    ),
)


@dataclass(frozen=True)
class Deaths:
    """A log, and the ledger that knows: the ranks in the order of their deaths."""

    log: bytes
    ledger: tuple[int, ...]


def deaths(seed: int) -> Deaths:
    """Random deaths. Either all ranks have the same fault, or the others only lose the first one."""
    chance = random.Random(seed)
    times = sorted((chance.uniform(0, WITHIN_S), rank) for rank in chance.sample(range(RANKS), RANKS))
    cause, lost = chance.choice(OWN), chance.choice(LOST)
    follow = chance.random() < 0.5
    writes: list[tuple[float, bytes]] = []
    for place, (died, rank) in enumerate(times):
        name, text = lost if follow and place else cause
        fail = Fail("load-weights", exception=name, message=text.format(rank=rank), frames=DEEP)
        block = f"[2026-03-02 10:00:07 TP{rank}] Scheduler hit an exception: {rank_traceback(SITE, fail)}\n".encode()
        now = died
        for start in range(0, len(block), PIECE):
            writes.append((now, block[start : start + PIECE]))
            now += chance.uniform(0.0005, 0.012)
        writes.append(
            (
                now + 0.001,
                b"[2026-03-02 10:00:07] Received sigquit from a child process. It usually means the child failed.\n",
            )
        )
    begin = b"".join(
        f"[2026-03-02 10:00:00 TP{rank}] Load weight begin. avail mem=94.12 GB\n".encode() for rank in range(RANKS)
    )
    return Deaths(begin + b"".join(data for _, data in sorted(writes)), tuple(rank for _, rank in times))


def named(case: Deaths) -> Diagnosis:
    """What the watch says of it."""
    watch = LoadWatch(KINDS["sglang"](None), None)  # type: ignore[arg-type]
    for start in range(0, len(case.log), 1000):
        watch.feed(case.log[start : start + 1000], 1.0)
    return watch.conclude(-9)


def main(runs: int) -> int:
    """Print how often the first is named."""
    wrong = [seed for seed in range(runs) if named(case := deaths(seed)).rank != case.ledger[0]]
    print(
        f"the rank that died first is named in {runs - len(wrong)} of {runs} runs",
        *(f"not in {wrong}" for _ in wrong[:1]),
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
