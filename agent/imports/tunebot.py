"""What `tunebot bench --json` prints. Pure."""

from collections.abc import Mapping
from typing import Any

from agent.imports.model import Imported
from agent.imports.values import count, flat_metric, items, mapping, number, present, settings, total

_LOAD = ("version", "model_id", "api", "dataset_name", "num_prompts", "request_rate", "max_concurrency", "seed")


def is_mine(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a result."""
    return record.get("backend") == "tunebot" and "hygiene" in record


def read(record: Mapping[str, Any]) -> Imported:
    """One load."""
    start = "send" if record.get("request_rate") == "inf" else "due"
    return Imported(
        tool="tunebot bench",
        completed=count(record.get("completed")),
        failed=count(record.get("failed")),
        duration_s=number(record.get("duration")),
        input_tokens=count(record.get("total_input_tokens")),
        output_tokens=count(record.get("total_output_tokens")),
        load=settings(record, *_LOAD),
        server={},
        metrics=present(
            flat_metric(record, "ttft_ms", "ttft_text" if start == "send" else "ttft_due"),
            flat_metric(record, "tpot_ms", "tpot_excl_first"),
            flat_metric(record, "itl_ms", "gap_token"),
            flat_metric(record, "chunk_gap_ms", "gap_chunk"),
            flat_metric(record, "e2e_latency_ms", "e2e_token" if start == "send" else "e2e_due"),
            total(record, "output_throughput", "throughput_total", "tok/s"),
            total(record, "total_throughput", "throughput_all_tokens", "tok/s"),
            total(record, "request_throughput", "requests_per_s", "req/s"),
            total(record, "request_goodput", "goodput", "req/s"),
        ),
        notes=tuple(str(mapping(item).get("text")) for item in items(record.get("hygiene"))),
    )
