"""What speaks against a measurement: the client, the host, the prompts, the answers. Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import sqrt

from agent.bench.health import Health
from agent.bench.sample import Sample
from agent.core.metrics import Hygiene, Level, RoundMetrics
from agent.playbook.workload import DataFile, Workload

CPU_WARN, CPU_BAD = 0.7, 0.9
"""Fractions of a core, of which the client has one."""

LAG_WARN_MS, LAG_BAD_MS = 5.0, 1000.0
"""How late the client was at p99. The first is seen in the tails of ITL and TTFT; with the second it stood still."""

OTHERS_WARN = 0.9
"""Fraction of the host's cores that others used."""

CACHED_WARN, CACHED_BAD, CACHED_BAD_CHAT = 0.01, 0.10, 0.50
"""Prefix-cache hits on prompts that are unique. What a chat template begins with is cached and may be a fair part."""

LENGTH_WARN = 0.10
"""Deviation of achieved lengths from the wished ones."""

SPECULATES = 1.1
"""Tokens per chunk from which on several tokens came out of one step."""

_SLOPE_T = 1.96
_FEWEST_FOR_SLOPE = 20


def hygiene_of(
    metrics: RoundMetrics, good: Sequence[Sample], health: Health, workload: Workload
) -> tuple[Hygiene, ...]:
    """Everything that was looked at, also what is ok. `good` are the requests that succeeded."""
    return (
        *_of_client(health),
        _of_schedule(good, workload),
        _of_failures(metrics),
        _of_cache(metrics, workload),
        *_of_lengths(metrics, good, workload),
        _of_speculation(metrics, workload),
        *([_of_saturation(good)] if workload.rate is not None else []),
    )


def _graded(name: str, value: float, warn: float, bad: float, text: str) -> Hygiene:
    level: Level = "bad" if value > bad else "warn" if value > warn else "ok"
    return Hygiene(name=name, level=level, text=text)


def _of_client(health: Health) -> Iterator[Hygiene]:
    cpu = f"the client used {health.cpu_fraction:.0%} of its core"
    yield _graded("client CPU", health.cpu_fraction, CPU_WARN, CPU_BAD, cpu)
    lag = f"the client woke up to {health.loop_lag_p99_ms:.1f} ms late (p99)"
    yield _graded("loop lag", health.loop_lag_p99_ms, LAG_WARN_MS, LAG_BAD_MS, lag)
    if health.host_load_others is not None:
        others = f"others used {health.host_load_others:.0%} of the client's host"
        yield _graded("host load", health.host_load_others, OTHERS_WARN, float("inf"), others)


def _of_schedule(good: Sequence[Sample], workload: Workload) -> Hygiene:
    """Requests sent late. In an open loop that wait is part of TTFT, and mostly one for a free place."""
    pairs = [(s.sent_s, s.scheduled_s) for s in good if s.sent_s is not None and s.scheduled_s is not None]
    lags_ms = sorted((sent - due) * 1000 for sent, due in pairs) or [0.0]
    lag_ms = lags_ms[round(0.99 * (len(lags_ms) - 1))]
    text = f"requests were sent {lag_ms:.1f} ms late (p99)"
    if workload.rate is None:
        return _graded("schedule", lag_ms, LAG_WARN_MS, LAG_BAD_MS, text)
    if workload.concurrency < workload.requests:
        text += f"; at most {workload.concurrency} may be in flight"
    return _graded("schedule", lag_ms, LAG_WARN_MS, float("inf"), text)


def _of_failures(metrics: RoundMetrics) -> Hygiene:
    text = f"{metrics.failed} of {metrics.requests} requests failed"
    return _graded("failures", metrics.failed, 0, float("inf"), text)


def _of_cache(metrics: RoundMetrics, workload: Workload) -> Hygiene:
    if metrics.cache_hit_rate is None:
        return Hygiene(name="prefix cache", level="ok", text="the server does not tell what was cached")
    text = f"{metrics.cache_hit_rate:.0%} of the prompt tokens were in the prefix cache"
    if workload.data == "shared-prefix":
        return Hygiene(name="prefix cache", level="ok", text=text)
    bad = CACHED_BAD_CHAT if workload.api == "chat" else CACHED_BAD
    return _graded("prefix cache", metrics.cache_hit_rate, CACHED_WARN, bad, f"{text}, though all are unique")


def _of_lengths(metrics: RoundMetrics, good: Sequence[Sample], workload: Workload) -> Iterator[Hygiene]:
    wishes = (("input", metrics.prompt_len, workload.input_len), ("output", metrics.output_len, workload.output_len))
    off = float("inf")
    # The lines of a file have lengths of their own.
    for name, achieved, wished in () if isinstance(workload.data, DataFile) else wishes:
        if achieved is not None:
            off = abs(achieved / wished - 1)
            text = f"{name}s of {achieved:.0f} tokens on average, {wished} were asked for"
            yield _graded(f"{name} length", off, LENGTH_WARN, float("inf"), text)
    if counted := sum(s.counted for s in good):
        text = f"the server told no usage for {counted} requests: chunks were counted as tokens"
        # One token a chunk is right where as many chunks came as tokens were asked for.
        yield _graded("usage", off, -1, LENGTH_WARN, text)
    if "ignore_eos" in metrics.refused:
        text = "the server does not take ignore_eos: answers end where the model wants"
        yield Hygiene(name="ignore_eos", level="warn", text=text)


def _of_speculation(metrics: RoundMetrics, workload: Workload) -> Hygiene:
    """On random tokens a draft model guesses as it never would: neither the accept length nor the speed is real."""
    length = metrics.accept_length or metrics.tokens_per_chunk
    text = f"{length:.2f} tokens a step"
    if workload.data == "random-tokens" and length > SPECULATES:
        return Hygiene(name="speculation", level="bad", text=f"{text} on random tokens is not what real text gives")
    return Hygiene(name="speculation", level="ok", text=text)


def _of_saturation(good: Sequence[Sample]) -> Hygiene:
    """Whether TTFT and the requests in flight both kept growing (95 %): latency then only measures the queue."""
    sent = sorted((s for s in good if s.scheduled_s is not None and s.first_s is not None), key=_due)
    dues = [_due(s) for s in sent]
    ends = sorted(s.last_s or 0.0 for s in sent)
    in_flight = [index - bisect_left(ends, due) for index, due in enumerate(dues)]
    waits = [(s.first_s or 0.0) - _due(s) for s in sent]
    grows = len(sent) >= _FEWEST_FOR_SLOPE and _grows(dues, waits) and _grows(dues, in_flight)
    text = "TTFT and the requests in flight kept growing: the rate is above what the server can do"
    return Hygiene(name="saturation", level="warn" if grows else "ok", text=text if grows else "the rate was kept")


def _due(sample: Sample) -> float:
    return sample.scheduled_s or 0.0


def _grows(xs: Sequence[float], ys: Sequence[float]) -> bool:
    """Whether the least-squares line rises: beyond chance (t of its slope), and by half of the mean at least."""
    count = len(xs)
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    sxx = sum((x - mean_x) ** 2 for x in xs)
    sxy = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    syy = sum((y - mean_y) ** 2 for y in ys)
    if not sxx or sxy * (xs[-1] - xs[0]) < mean_y / 2 * sxx:
        return False
    rest = max(syy - sxy * sxy / sxx, 0.0) / (count - 2)
    return sxy > _SLOPE_T * sqrt(sxx * rest)
