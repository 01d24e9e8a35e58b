"""From recorded requests to the numbers of a round. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor
from operator import sub
from statistics import fmean

from agent.bench.health import Health
from agent.bench.hygiene import hygiene_of
from agent.bench.sample import Sample, too_many_failed
from agent.core.metrics import RoundMetrics, Spread
from agent.playbook.workload import Slo, Workload

_SHORTEST_STEADY = 0.1
"""The smallest fraction of a round that says how fast it was with all clients at work."""


class NotMeasurable(Exception):
    """These requests make no round. The message says why."""


def measured(
    samples: Sequence[Sample], health: Health, workload: Workload, refused: Iterable[str] = ()
) -> RoundMetrics:
    """The numbers of one round, with what speaks against them. Raises NotMeasurable.

    `refused` are the fields that the server did not take.

    Tokens, throughputs and times are of the successful requests only. The duration runs from their first send to
    their last token, in an open loop from the time at which the first was due; throughputs are over it (sglang and
    vllm: sum of tokens / duration). `tokens_per_chunk` is all tokens over all token chunks, 1 without speculation.
    """
    good = [s for s in samples if s.ok]
    if too_many_failed(len(samples) - len(good), len(samples)) or not good:
        first = next((s.error for s in samples if not s.ok), "there were none")
        raise NotMeasurable(f"{len(samples) - len(good)} of {len(samples)} requests failed: {first}")
    times = times_of(good, workload)
    lasts = _all(s.last_s for s in good)
    ttft, tpot = spread(times.ttft), spread(times.tpot)
    if ttft is None:
        raise NotMeasurable("no request brought any text")
    if tpot is None:
        raise NotMeasurable("the whole text of each request came at once, so there is no time between tokens")
    start_s = min(_all(start_of(s, workload) for s in good))
    duration_s = max(lasts) - start_s
    output_tokens = sum(s.output_tokens for s in good)
    prompt_tokens = _all(s.prompt_tokens for s in good)
    cached_tokens = sum(s.cached_tokens or 0 for s in good)
    gaps = spread(_chunk_gaps_ms(good))
    made = RoundMetrics(
        requests=len(samples),
        failed=len(samples) - len(good),
        duration_s=duration_s,
        prompt_tokens=int(sum(prompt_tokens)),
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        output_throughput=output_tokens / duration_s,
        request_throughput=len(good) / duration_s,
        ttft_ms=ttft.p50,
        tpot_ms=tpot.p50,
        tokens_per_chunk=output_tokens / sum(s.chunks for s in good),
        steady_output_throughput=_steady(good, workload, start_s, duration_s),
        goodput=_good(times, workload.slo) / duration_s if workload.slo else None,
        ttft=ttft,
        tpot=tpot,
        itl=gaps if all(map(_one_by_one, good)) else spread(_token_gaps_ms(good)),
        chunk_gap=gaps,
        e2e=spread(times.e2e),
        prompt_len=fmean(prompt_tokens) if prompt_tokens else None,
        output_len=output_tokens / len(good),
        cache_hit_rate=_cache_hit_rate(good),
        retries=sum(s.retries for s in samples),
        refused=tuple(sorted(refused)),
    )
    doubts = tuple(item for item in hygiene_of(made, good, health, workload) if item.level != "ok")
    return replace(made, hygiene=doubts)


def spread(values: Iterable[float | None]) -> Spread | None:
    """How values are distributed, None ones left out; None where there are none."""
    ordered = sorted(_all(values))
    if not ordered:
        return None

    def at(fraction: float) -> float:
        place = fraction * (len(ordered) - 1)
        low = floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return Spread(mean=fmean(ordered), p50=at(0.5), p90=at(0.9), p95=at(0.95), p99=at(0.99))


@dataclass(frozen=True, slots=True)
class Times:
    """TTFT, TPOT and E2E of each request, in ms; None where a request has none."""

    ttft: tuple[float | None, ...]
    tpot: tuple[float | None, ...]
    e2e: tuple[float | None, ...]


def times_of(good: Sequence[Sample], workload: Workload) -> Times:
    """The times of requests that succeeded.

    TTFT ends with the first chunk with text (as sglang.bench_serving has it), E2E with the last (as `vllm bench serve`
    has it). Both begin with the send; in an open loop, when the request was due.
    """
    starts = [start_of(s, workload) for s in good]
    return Times(
        ttft=tuple(_ms(start, s.first_s) for start, s in zip(starts, good, strict=True)),
        tpot=tuple(s.tpot_ms for s in good),
        e2e=tuple(_ms(start, s.last_s) for start, s in zip(starts, good, strict=True)),
    )


def start_of(sample: Sample, workload: Workload) -> float | None:
    """When the clock of a request starts, as a reading of `time.perf_counter`."""
    # A client of a closed loop is a user who waits for an answer; the user of an open loop comes when they are due.
    return sample.sent_s if workload.rate is None else sample.scheduled_s


def _ms(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else (end_s - start_s) * 1000


def _all(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _chunk_gaps_ms(good: Iterable[Sample]) -> list[float]:
    gaps_s: list[float] = []
    for s in good:
        gaps_s.extend(map(sub, s.chunk_s[1:], s.chunk_s))
    return [gap_s * 1000 for gap_s in gaps_s]


def _one_by_one(sample: Sample) -> bool:
    """Whether every chunk held a single token, so that the gaps are the same thing."""
    return sample.chunk_tokens is not None and sample.chunk_tokens.count(1) == len(sample.chunk_tokens)


def _token_gaps_ms(good: Sequence[Sample]) -> list[float]:
    """The gap before each chunk, shared among the tokens of that chunk (as sglang's native backend does)."""
    told = [(s.chunk_s, s.chunk_tokens) for s in good if s.chunk_tokens is not None]
    gaps_ms: list[float] = []
    for stamps_s, tokens in told:
        before_s = stamps_s[0] if stamps_s else 0.0
        for stamp_s, count in zip(stamps_s[1:], tokens[1:], strict=True):
            if count:
                gaps_ms += [(stamp_s - before_s) * 1000 / count] * count
                before_s = stamp_s
    return gaps_ms


def _good(times: Times, slo: Slo) -> int:
    """Requests that met every limit. What a request does not have (the TPOT of a single chunk) it cannot miss."""
    limits = (slo.ttft_ms, slo.tpot_ms, slo.e2e_ms)
    rows = zip(times.ttft, times.tpot, times.e2e, strict=True)
    return sum(
        all(value is None or limit is None or value <= limit for value, limit in zip(row, limits, strict=True))
        for row in rows
    )


def _cache_hit_rate(good: Sequence[Sample]) -> float | None:
    told = [s for s in good if s.cached_tokens is not None and s.prompt_tokens]
    return sum(s.cached_tokens or 0 for s in told) / sum(s.prompt_tokens or 0 for s in told) if told else None


def _steady(good: Sequence[Sample], workload: Workload, start_s: float, duration_s: float) -> float | None:
    """Tokens a second while all clients were at work; in an open loop, between the ramp and the last time due.

    That window of a closed loop opens with the send of the last client to begin, and closes with the first request
    that ends after the last send. None where it is too short to say anything.
    """
    if workload.rate is None:
        sends = sorted(_all(s.sent_s for s in good))
        if len(sends) < workload.concurrency:
            return None
        opens = sends[workload.concurrency - 1]
        closes = min((last for last in _all(s.last_s for s in good) if last >= sends[-1]), default=opens)
    else:
        opens = start_s + (workload.ramp or 0.0)
        closes = max(_all(s.scheduled_s for s in good))
    if closes - opens < _SHORTEST_STEADY * duration_s:
        return None
    return sum(_tokens_between(s, opens, closes) for s in good) / (closes - opens)


def _tokens_between(sample: Sample, opens: float, closes: float) -> float:
    """Output tokens that arrived in a window; those of a request are alike in all of its chunks unless it is told."""
    first, last = bisect_right(sample.chunk_s, opens), bisect_right(sample.chunk_s, closes)
    if sample.chunk_tokens is not None:
        return sum(sample.chunk_tokens[first:last])
    return sample.output_tokens * (last - first) / len(sample.chunk_s) if sample.chunk_s else 0.0
