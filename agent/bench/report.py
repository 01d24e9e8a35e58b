"""What `tunebot bench` prints: a table, where the latencies lie, what speaks against the numbers; and its JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from agent import __version__
from agent.bench.metrics import Times
from agent.core.metrics import RoundMetrics, Spread
from agent.playbook.workload import DataFile, Workload

_BLOCKS = "▁▂▃▄▅▆▇█"
_BINS = 32
_GLYPHS = {"warn": ("!", "33"), "bad": ("✖", "31")}

UNITS = {
    "duration": "s",
    "output_throughput": "tok/s",
    "steady_output_throughput": "tok/s",
    "input_throughput": "tok/s",
    "total_throughput": "tok/s",
    "request_throughput": "req/s",
    "request_goodput": "req/s",
    "mean_input_len": "tokens",
    "mean_output_len": "tokens",
    "*_ms": "ms",
}
"""Units of the keys in the JSON that are no plain counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benched:
    """A load that was measured on its own: where, what was sent, and what came of it. `seed` gives the same prompts."""

    url: str
    model: str
    workload: Workload
    seed: int
    metrics: RoundMetrics
    times: Times


def data_name(workload: Workload) -> str:
    """The data of a workload as one types it."""
    return workload.data.file if isinstance(workload.data, DataFile) else workload.data


def as_json(benched: Benched) -> dict[str, object]:
    """The result by the field's names: sglang.bench_serving's, and vLLM's for goodput. `units` says what they count.

    What is not known is null: ITL, say, where the server does not tell how many tokens a chunk holds.
    """
    metrics, workload = benched.metrics, benched.workload
    seconds = metrics.duration_s
    return {
        "backend": "tunebot",
        "version": __version__,
        "base_url": benched.url,
        "model_id": benched.model,
        "api": workload.api,
        "dataset_name": data_name(workload),
        "seed": benched.seed,
        "num_prompts": metrics.requests,
        "max_concurrency": workload.concurrency,
        "request_rate": "inf" if workload.rate is None else workload.rate,
        "duration": seconds,
        "completed": metrics.requests - metrics.failed,
        "failed": metrics.failed,
        "retries": metrics.retries,
        "total_input_tokens": metrics.prompt_tokens,
        "total_output_tokens": metrics.output_tokens,
        "mean_input_len": metrics.prompt_len,
        "mean_output_len": metrics.output_len,
        "request_throughput": metrics.request_throughput,
        "request_goodput": metrics.goodput,
        "input_throughput": metrics.prompt_tokens / seconds,
        "output_throughput": metrics.output_throughput,
        "steady_output_throughput": metrics.steady_output_throughput,
        "total_throughput": (metrics.prompt_tokens + metrics.output_tokens) / seconds,
        **_flat("ttft", metrics.ttft),
        **_flat("tpot", metrics.tpot),
        **_flat("itl", metrics.itl),
        **_flat("chunk_gap", metrics.chunk_gap),
        **_flat("e2e_latency", metrics.e2e),
        "tokens_per_chunk": metrics.tokens_per_chunk,
        "cache_hit_rate": metrics.cache_hit_rate,
        "refused": metrics.refused,
        "hygiene": [asdict(item) for item in metrics.hygiene],
        "not_comparable": metrics.not_comparable,
        "units": UNITS,
    }


def _flat(name: str, spread: Spread | None) -> dict[str, float | None]:
    named = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
    return {f"{key}_{name}_ms": getattr(spread, part) if spread else None for key, part in named.items()}


def lines_of(benched: Benched, colour: bool) -> Iterator[str]:
    """The result for a person."""
    metrics, workload = benched.metrics, benched.workload
    loop = f"{workload.concurrency} at once" if workload.rate is None else f"{workload.rate:g} a second"
    yield f"{benched.url}  {benched.model}  {workload.api}"
    yield f"{data_name(workload)}, {metrics.requests} requests, {loop}, seed {benched.seed}"
    yield ""
    yield from _table(metrics)
    yield ""
    steady = metrics.steady_output_throughput
    whole = "" if steady is None else f", steady {steady:.1f}"
    yield f"output    {metrics.output_throughput:.1f} tok/s{whole}"
    good = "" if metrics.goodput is None else f", {metrics.goodput:.2f} within {_limits(workload)}"
    yield f"requests  {metrics.request_throughput:.2f} req/s{good}"
    known = "?" if metrics.prompt_len is None else f"{metrics.prompt_len:.0f}"
    cached = "" if metrics.cache_hit_rate is None else f", {metrics.cache_hit_rate:.0%} of the input cached"
    yield f"tokens    {known} in, {metrics.output_len:.0f} out, {metrics.tokens_per_chunk:.2f} a chunk{cached}"
    retried = f", {metrics.retries} sent again" if metrics.retries else ""
    yield f"time      {metrics.duration_s:.1f} s, {metrics.failed} of {metrics.requests} requests failed{retried}"
    yield ""
    for name, values in (("TTFT", benched.times.ttft), ("TPOT", benched.times.tpot), ("E2E", benched.times.e2e)):
        yield f"{name:8}  {histogram([value for value in values if value is not None])}"
    yield ""
    yield from _hygiene(metrics, colour)


def _table(metrics: RoundMetrics) -> Iterator[str]:
    yield "ms" + " " * 8 + "".join(f"{name:>10}" for name in ("mean", "p50", "p90", "p95", "p99"))
    # Where nobody says how many tokens a chunk holds, the gap between chunks must not pass for ITL.
    gaps = ("ITL", metrics.itl) if metrics.itl else ("chunk gap", metrics.chunk_gap)
    for name, spread in (("TTFT", metrics.ttft), ("TPOT", metrics.tpot), gaps, ("E2E", metrics.e2e)):
        if spread:
            numbers = (spread.mean, spread.p50, spread.p90, spread.p95, spread.p99)
            yield f"{name:10}" + "".join(f"{number:10.2f}" for number in numbers)


def _limits(workload: Workload) -> str:
    limits = workload.slo.model_dump(exclude_none=True) if workload.slo else {}
    return ", ".join(f"{name.removesuffix('_ms').upper()} {limit:g} ms" for name, limit in limits.items())


def _hygiene(metrics: RoundMetrics, colour: bool) -> Iterator[str]:
    for item in metrics.hygiene:
        glyph, code = _GLYPHS[item.level]
        word = f"{glyph} {item.level}"
        yield f"{_painted(word, code) if colour else word}  {item.name}: {item.text}"
    if not metrics.hygiene:
        yield "hygiene   nothing speaks against these numbers"
    elif metrics.not_comparable:
        yield "not comparable: hold these numbers against no others"


def _painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def histogram(values: Sequence[float]) -> str:
    """How many values lie where, as a line of blocks from the least to the most, in equal steps of ms."""
    if not values:
        return "none"
    low, high = min(values), max(values)
    if low == high:
        return f"all {low:.1f} ms"
    counts = [0] * _BINS
    for value in values:
        counts[min(int((value - low) / (high - low) * _BINS), _BINS - 1)] += 1
    # A single request must not look like none.
    blocks = ("·" if not n else _BLOCKS[(n * len(_BLOCKS) - 1) // max(counts)] for n in counts)
    return f"{low:10.1f} {''.join(blocks)} {high:.1f} ms"
