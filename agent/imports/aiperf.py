"""Result files of AIPerf: profile_export_aiperf.json, or profile_export.jsonl with a line a request. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.imports.model import Imported, Metric
from agent.imports.values import count, items, mapping, number, present, said, settings, spread_of

_STATS = {
    "avg": "mean", "std": "std", "min": "min", "max": "max", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"
}  # fmt: skip
_TO_MS = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 1e-3, "ns": 1e-6}
_TIMES = (
    ("time_to_first_token", "ttft_text"),
    ("time_to_first_output_token", "ttfo"),
    ("inter_token_latency", "tpot_excl_first"),
    ("inter_chunk_latency", "gap_chunk"),
    ("request_latency", "e2e_token"),
)


def is_mine(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the summary of a run."""
    return "input_config" in record and ("request_count" in record or "request_latency" in record)


def is_request(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one request of a run."""
    return {"metadata", "metrics"} <= record.keys() and "x_request_id" in mapping(record["metadata"])


def read(record: Mapping[str, Any]) -> Imported:
    """The summary of a run."""
    completed, failed = _value(record, "request_count"), _value(record, "error_request_count")
    if failed is None and record.get("error_summary") == []:
        failed = 0
    config = mapping(record.get("input_config"))
    server_counts = mapping(config.get("endpoint")).get("use_server_token_count") is True
    tokens = "throughput_total" if server_counts else "throughput_client_tokens"
    return Imported(
        tool="AIPerf",
        completed=count(completed),
        failed=count(failed),
        duration_s=_value(record, "benchmark_duration"),
        input_tokens=count(_value(record, "total_isl")),
        output_tokens=count(_value(record, "total_osl")),
        load=_load(config, said(record.get("aiperf_version"))),
        server={},
        metrics=present(
            *(_time(record, key, definition) for key, definition in _TIMES),
            _total(record, "output_token_throughput", tokens, "tok/s"),
            _spread(record, "output_token_throughput_per_user", "user_throughput", "tok/s"),
            _total(record, "request_throughput", "requests_per_s", "req/s"),
            _total(record, "goodput", "goodput", "req/s"),
        ),
        notes=tuple(_notes(record)),
    )


def read_requests(records: Sequence[Mapping[str, Any]]) -> Imported:
    """A run from its requests; failed ones are counted and left out."""
    metrics = [mapping(record["metrics"]) for record in records if not record.get("error")]
    values = {key: list(_values(metrics, key)) for key, _ in _TIMES}
    return Imported(
        tool="AIPerf",
        completed=len(metrics),
        failed=len(records) - len(metrics),
        duration_s=_window_s(records),
        input_tokens=_sum(metrics, "input_sequence_length"),
        output_tokens=_sum(metrics, "output_sequence_length"),
        load={},
        server={},
        metrics=tuple(
            Metric(key=key, definition=definition, unit="ms", stats=spread_of(values[key]))
            for key, definition in _TIMES
            if values[key]
        ),
        notes=("from the requests: the summary beside this file, profile_export_aiperf.json, tells more",),
    )


def _load(config: Mapping[str, Any], version: str) -> dict[str, str]:
    phases = [mapping(phase) for phase in items(config.get("phases"))]
    phase = next((one for one in phases if one.get("kind") == "profiling"), {})
    models = items(mapping(config.get("models")).get("items"))
    dataset = mapping(next(iter(items(config.get("datasets"))), None))
    prompts = mapping(dataset.get("prompts"))
    made = {
        "aiperf": version,
        "model": said(mapping(next(iter(models), None)).get("name")),
        "endpoint": said(mapping(config.get("endpoint")).get("type")),
        "dataset": said(dataset.get("type")),
        "isl": said(mapping(prompts.get("isl")).get("mean")),
        "osl": said(mapping(prompts.get("osl")).get("mean")),
    }
    phase = {name: value for name, value in phase.items() if name not in ("name", "kind")}
    return {name: value for name, value in made.items() if value} | settings(phase)


def _notes(record: Mapping[str, Any]) -> Iterator[str]:
    if record.get("was_cancelled") is True or record.get("is_complete") is False:
        yield "the run was cut off"
    mine, theirs = _value(record, "total_osl"), _value(record, "total_usage_completion_tokens")
    if mine and theirs is not None and abs(theirs - mine) > 0.05 * mine:
        yield f"{mine:.0f} output tokens by the client's tokenizer, {theirs:.0f} by the server's usage"
    yield "inter_token_latency is what others call TPOT; output_token_throughput_per_user is 1 / TPOT"


def _value(record: Mapping[str, Any], key: str) -> float | None:
    return number(mapping(record.get(key)).get("avg"))


def _time(record: Mapping[str, Any], key: str, definition: str) -> Metric | None:
    factor = _TO_MS.get(said(mapping(record.get(key)).get("unit")))
    return _spread(record, key, definition, "ms", factor) if factor else None


def _spread(record: Mapping[str, Any], key: str, definition: str, unit: str, factor: float = 1.0) -> Metric | None:
    found = mapping(record.get(key))
    stats = {name: value * factor for stat, name in _STATS.items() if (value := number(found.get(stat))) is not None}
    return Metric(key=key, definition=definition, unit=unit, stats=stats) if stats else None


def _total(record: Mapping[str, Any], key: str, definition: str, unit: str) -> Metric | None:
    value = _value(record, key)
    return None if value is None else Metric(key=key, definition=definition, unit=unit, stats={"value": value})


def _sum(requests: Sequence[Mapping[str, Any]], key: str) -> int | None:
    values = [number(mapping(request.get(key)).get("value")) for request in requests]
    return count(sum(value for value in values if value is not None))


def _values(requests: Sequence[Mapping[str, Any]], key: str) -> Iterator[float]:
    """The values of all requests in ms; of the gaps between chunks a request has a list."""
    for request in requests:
        found = mapping(request.get(key))
        factor = _TO_MS.get(said(found.get("unit")))
        value = found.get("value")
        for one in items(value) or [value]:
            made = number(one)
            if made is not None and factor:
                yield made * factor


def _window_s(records: Sequence[Mapping[str, Any]]) -> float | None:
    """From the first start to the last end."""
    heads = [mapping(record["metadata"]) for record in records]
    starts = [start for head in heads if (start := number(head.get("request_start_ns"))) is not None]
    ends = [end for head in heads if (end := number(head.get("request_end_ns"))) is not None]
    return (max(ends) - min(starts)) / 1e9 if starts and ends else None
