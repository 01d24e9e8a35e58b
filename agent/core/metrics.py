"""The numbers of a measured round, and what speaks against them."""

from dataclasses import dataclass
from typing import Literal

from agent.playbook.metrics import MetricName


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a quantity is distributed; percentiles are interpolated linearly between its sorted values, as numpy does."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """What those GPUs of the host did in a round that worked at all, as means over looks at each of them.

    `busy` is the fraction of time in which a kernel ran (utilization.gpu of nvidia-smi): one that waits for another
    GPU runs too. `watts` is the power drawn, `limit_watts` the limit of that.
    """

    count: int
    busy: float
    watts: float
    limit_watts: float


Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hygiene:
    """One thing that was looked at to see whether a measurement can be trusted; what is `bad` makes it worth nothing.

    `name` is a short word for tables, `text` a sentence with the numbers.
    """

    name: str
    level: Level
    text: str


PASSING = ("client CPU", "loop lag", "host load", "schedule")
"""Names of what speaks against a round and may be gone in the next: it lies in the client's host, not in what runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMetrics:
    """One measured round of a workload.

    Throughputs are per second of the round; `ttft_ms` and `tpot_ms` are medians over requests. TTFT and E2E count
    from the send, in an open loop from the time for which the request was scheduled: a wait in the client counts.

    `steady_output_throughput` is that of the window in which the concurrency was full (an open loop: between its ramp
    and its last send), `goodput` the requests a second that met every limit of the workload's `slo`. `itl` spreads
    the gap before a chunk over the tokens of that chunk, and is there only where the server told how many those are;
    `chunk_gap` is the gap itself. Spreads are in ms; those of ITL and chunk gap pool all requests. `prompt_len` and
    `output_len` are the achieved tokens of a request, on average; `cache_hit_rate` is the fraction of the prompt
    tokens that came from the server's prefix cache. `refused` are fields that the server did not take. `accept_length`
    (tokens that a verify pass of speculation keeps), `watts_per_gpu` and `gpu_use` are told by server and host.
    `hygiene` is what was not ok. What is None is not known.
    """

    requests: int
    failed: int
    duration_s: float
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    output_throughput: float
    request_throughput: float
    ttft_ms: float
    tpot_ms: float
    tokens_per_chunk: float
    steady_output_throughput: float | None = None
    goodput: float | None = None
    ttft: Spread | None = None
    tpot: Spread | None = None
    itl: Spread | None = None
    chunk_gap: Spread | None = None
    e2e: Spread | None = None
    prompt_len: float | None = None
    output_len: float | None = None
    cache_hit_rate: float | None = None
    retries: int = 0
    refused: tuple[str, ...] = ()
    accept_length: float | None = None
    watts_per_gpu: float | None = None
    gpu_use: GpuUse | None = None
    hygiene: tuple[Hygiene, ...] = ()

    @property
    def not_comparable(self) -> str | None:
        """Why these numbers must not be held against others, or None."""
        return "; ".join(item.text for item in self.hygiene if item.level == "bad") or None

    @property
    def spoilt(self) -> str | None:
        """What makes this round worth nothing where all of that may be gone in the next, with what may be its cause."""
        bad = {item.name for item in self.hygiene if item.level == "bad"}
        if not bad or not bad.issubset(PASSING):
            return None
        return "; ".join(item.text for item in self.hygiene if item.name in PASSING)

    def value(self, metric: MetricName) -> float:
        """One number by the name that an objective gives it. Raises LookupError where this round does not have it."""
        quantity, percentile = metric.removesuffix("_ms"), "p50"
        if "_p" in quantity:
            quantity, percentile = quantity.split("_")
        found = getattr(self, metric) if hasattr(self, metric) else getattr(self, quantity)
        number = getattr(found, percentile) if isinstance(found, Spread) else found
        if number is None:
            raise LookupError(f"this round has no {metric}")
        return float(number)
