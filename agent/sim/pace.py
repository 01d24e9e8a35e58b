"""How fast a launch decodes: compute, and all-reduces that are as slow as their messages are large.

step = compute * (batch * rows) ** (1 - exponent) + extra + count * latency(batch * rows * row_bytes)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

US = 1e-6


@dataclass(frozen=True)
class Pace:
    """The decode steps of one launch, before noise; seconds, but for `latency_us` (by message size in bytes).

    `rows` are the tokens that a request puts into a step, which are several where a step verifies a draft; `accept`
    those that come out of it, on average. A launch that is only known by its tokens/s has neither all-reduces nor rows.
    """

    compute_s: float
    exponent: float
    extra_s: float = 0.0
    count: float = 0.0
    row_bytes: int = 0
    rows: int = 1
    accept: float = 1.0
    latency_us: Mapping[int, float] = field(default_factory=dict)
    factor: float = 1.0

    def allreduce_s(self, batch: int = 1) -> float:
        """One all-reduce of a step with so many requests."""
        return latency_us(self.latency_us, batch * self.rows * self.row_bytes) * US

    def step_s(self, batch: int = 1) -> float:
        """One step with so many requests."""
        compute = self.compute_s * (batch * self.rows) ** (1 - self.exponent)
        communication = self.count * self.allreduce_s(batch) if self.count else 0.0
        return float(compute + self.extra_s + communication) / self.factor

    def waiting(self) -> float:
        """The fraction of a step of one request in which GPUs wait for each other."""
        return self.count * self.allreduce_s() / self.factor / self.step_s() if self.count else 0.0

    def tok_s(self, batch: int = 1) -> float:
        """Tokens/s of each of so many requests."""
        return self.accept / self.step_s(batch)


def latency_us(table: Mapping[int, float], size: int) -> float:
    """Latency in microseconds at a message size in bytes: linear between known sizes, by bandwidth beyond the last."""
    known = sorted(table.items())
    if size <= known[0][0]:
        return known[0][1]
    for (low, fast), (high, slow) in pairwise(known):
        if size <= high:
            return fast + (slow - fast) * (size - low) / (high - low)
    return known[-1][1] * size / known[-1][0]


def accepted(probability: float, drafted: int) -> float:
    """Tokens of a verify pass: one is always right, a drafted one where it and all before it are."""
    return sum(probability**place for place in range(drafted + 1))
