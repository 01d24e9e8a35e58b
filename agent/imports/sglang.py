"""Result files of sglang.bench_serving: a JSON object a line, appended by each run. Pure."""

from collections.abc import Mapping
from typing import Any

from agent.imports.details import of_requests
from agent.imports.model import Imported
from agent.imports.values import count, flat_metric, items, mapping, number, present, settings, total

_LOAD = (
    "backend", "dataset_name", "request_rate", "max_concurrency", "random_input_len", "random_output_len",
    "random_range_ratio", "sharegpt_output_len",
)  # fmt: skip
_NATIVE = ("sglang", "sglang-native")


def is_mine(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a run."""
    return "mean_e2e_latency_ms" in record and "total_throughput" in record


def read(record: Mapping[str, Any]) -> Imported:
    """One run. It tells no failures; only with `--output-details` they can be counted."""
    output_tokens = count(record.get("total_output_tokens"))
    return Imported(
        tool="sglang.bench_serving",
        label=str(record.get("tag") or ""),
        completed=count(record.get("completed")),
        failed=_failed(record),
        duration_s=number(record.get("duration")),
        input_tokens=count(record.get("total_input_tokens")),
        output_tokens=output_tokens,
        load=settings(record, *_LOAD),
        server=settings(mapping(record.get("server_info"))),
        metrics=present(
            flat_metric(record, "ttft_ms", "ttft_text"),
            flat_metric(record, "tpot_ms", "tpot_excl_first_done"),
            flat_metric(record, "itl_ms", "gap_token" if record.get("backend") in _NATIVE else "gap_chunk"),
            flat_metric(record, "e2e_latency_ms", "e2e_done"),
            total(record, "output_throughput", "throughput_total", "tok/s"),
            total(record, "total_throughput", "throughput_all_tokens", "tok/s"),
            total(record, "request_throughput", "requests_per_s", "req/s"),
            total(record, "request_goodput", "goodput", "req/s"),
            total(record, "accept_length", "accept_length_server", "tokens"),
            total(mapping(record.get("cache_report")), "cache_hit_rate_pct", "cache_hit_rate", "%"),
            *of_requests(record, per_chunk=record.get("backend") not in _NATIVE),
        ),
        notes=tuple(_notes(record, output_tokens)),
    )


def _failed(record: Mapping[str, Any]) -> int | None:
    errors = record.get("errors")
    return sum(bool(error) for error in errors) if isinstance(errors, list) else None


def _notes(record: Mapping[str, Any], output_tokens: int | None) -> list[str]:
    notes = []
    if not items(record.get("errors")):
        notes.append("the file tells no failures: hold 'completed' against the number of prompts")
    again = count(record.get("total_output_tokens_retokenized"))
    if output_tokens and again is not None and abs(again - output_tokens) > 0.05 * output_tokens:
        notes.append(
            f"{again} output tokens when tokenised again, not {output_tokens}: without usage the tool counts the "
            "length that was asked for"
        )
    return notes
