"""Result files of GuideLLM: benchmarks.json, with one benchmark for each rate or number of streams. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.imports.model import Imported, Metric
from agent.imports.values import count, items, mapping, number, present, said, settings, spread_of, total

_STATS = {"mean": "mean", "std_dev": "std", "min": "min", "max": "max", "median": "p50"}
_PERCENTILES = ("p90", "p95", "p99")
_OF_DATA = ("kind", "prompt_tokens", "output_tokens")


def is_mine(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a report."""
    return isinstance(record.get("benchmarks"), list) and "guidellm_version" in mapping(record.get("metadata"))


def read(record: Mapping[str, Any]) -> list[Imported]:
    """The benchmarks of a report; of each the requests that succeeded."""
    metadata = mapping(record["metadata"])
    config = mapping(record.get("config") or record.get("args"))
    spec = mapping(config.get("spec")) or config
    backend = mapping(spec.get("backend"))
    common = {"guidellm": said(metadata.get("guidellm_version"))} | settings(backend, "model", "request_format")
    data = mapping(next(iter(items(spec.get("data"))), None))
    common |= {f"data_{name}": value for name, value in settings(data, *_OF_DATA).items()}
    return [_benchmark(mapping(one), common) for one in record["benchmarks"]]


def _benchmark(benchmark: Mapping[str, Any], common: Mapping[str, str]) -> Imported:
    metrics = mapping(benchmark.get("metrics"))
    strategy = settings(mapping(mapping(benchmark.get("config")).get("strategy")))
    made = mapping(mapping(benchmark.get("scheduler_metrics")).get("requests_made"))
    requests = [mapping(one) for one in items(mapping(benchmark.get("requests")).get("successful"))]
    duration_s = number(benchmark.get("duration"))
    tokens = number(_part(metrics, "output_token_count").get("total_sum"))
    whole = not number(benchmark.get("warmup_duration")) and not number(benchmark.get("cooldown_duration"))
    return Imported(
        tool="GuideLLM",
        label=strategy.get("type_", ""),
        completed=count(made.get("successful")),
        failed=count(made.get("errored")),
        duration_s=duration_s,
        input_tokens=count(_part(metrics, "prompt_token_count").get("total_sum")),
        output_tokens=count(tokens),
        load={**common, **{name: value for name, value in strategy.items() if name != "type_"}},
        server={},
        metrics=present(
            _spread(metrics, "time_to_first_token_ms", "ttft_reported", "ms"),
            _spread(metrics, "time_to_first_output_token_ms", "ttfo", "ms"),
            _of_requests(requests),
            _spread(metrics, "inter_token_latency_ms", "tpot_excl_first_weighted", "ms"),
            _spread(metrics, "time_per_output_token_ms", "tpot_incl_first", "ms"),
            _spread(metrics, "request_latency", "e2e_end", "ms", 1000.0),
            _spread(metrics, "output_tokens_per_second", "throughput_over_time", "tok/s"),
            _spread(metrics, "requests_per_second", "requests_over_time", "req/s"),
            _throughput(tokens, duration_s) if whole else None,
            total(metrics, "request_goodput", "goodput", "req/s"),
        ),
        notes=tuple(_notes(benchmark, metrics, requests)),
    )


def _part(metrics: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return mapping(mapping(metrics.get(key)).get("successful"))


def _spread(metrics: Mapping[str, Any], key: str, definition: str, unit: str, factor: float = 1.0) -> Metric | None:
    found = _part(metrics, key)
    percentiles = mapping(found.get("percentiles"))
    raw = {name: number(found.get(stat)) for stat, name in _STATS.items()}
    raw |= {name: number(percentiles.get(name)) for name in _PERCENTILES}
    stats = {name: value * factor for name, value in raw.items() if value is not None}
    # A distribution of no values is written as zeros.
    return Metric(key=key, definition=definition, unit=unit, stats=stats) if stats and found.get("count") != 0 else None


def _of_requests(requests: Sequence[Mapping[str, Any]]) -> Metric | None:
    """TPOT as other tools have it, one value a request: the report's own is weighted by tokens."""
    values = [value for one in requests if (value := number(one.get("inter_token_latency_ms"))) is not None]
    if not values:
        return None
    stats = spread_of(values)
    return Metric(key="requests.inter_token_latency_ms", definition="tpot_excl_first", unit="ms", stats=stats)


def _throughput(tokens: float | None, duration_s: float | None) -> Metric | None:
    if not tokens or not duration_s:
        return None
    stats = {"value": tokens / duration_s}
    return Metric(key="output_token_count / duration", definition="throughput_total", unit="tok/s", stats=stats)


def _notes(
    benchmark: Mapping[str, Any], metrics: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    yield "time_per_output_token_ms holds TTFT: no other tool's TPOT compares with it"
    missing = sum("time_to_first_token_ms" in one and one["time_to_first_token_ms"] is None for one in requests)
    if missing:
        yield f"{missing} of {len(requests)} requests had no TTFT and stand in its distribution as 0 ms"
    elif _part(metrics, "time_to_first_token_ms").get("min") == 0:
        yield "a TTFT of 0 ms: a request without one stands in the distribution"
    incomplete = count(mapping(mapping(benchmark.get("scheduler_metrics")).get("requests_made")).get("incomplete"))
    if incomplete:
        yield f"{incomplete} requests were cut off when the run ended"
    for warning in items(benchmark.get("warnings")):
        yield f"GuideLLM says: {said(mapping(warning).get('message'))}"
