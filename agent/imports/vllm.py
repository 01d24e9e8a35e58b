"""Result files of `vllm bench serve`: one JSON object, or one a line with `--append-result`. Pure."""

from collections.abc import Mapping
from typing import Any

from agent.imports.details import of_requests
from agent.imports.model import Imported
from agent.imports.values import count, flat_metric, mapping, number, present, settings, total

_LOAD = ("backend", "model_id", "num_prompts", "request_rate", "burstiness", "max_concurrency")


def is_mine(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is such a run."""
    return "total_token_throughput" in record and "tokenizer_id" in record


def read(record: Mapping[str, Any]) -> Imported:
    """One run."""
    completed, failed = count(record.get("completed")), count(record.get("failed"))
    if failed is None:
        prompts = count(record.get("num_prompts"))
        failed = None if prompts is None or completed is None else prompts - completed
    written = present(
        flat_metric(record, "ttft_ms", "ttft_any_chunk"),
        flat_metric(record, "tpot_ms", "tpot_excl_first"),
        flat_metric(record, "itl_ms", "gap_chunk"),
        flat_metric(record, "e2el_ms", "e2e_token"),
        total(record, "output_throughput", "throughput_total", "tok/s"),
        total(record, "total_token_throughput", "throughput_all_tokens", "tok/s"),
        total(record, "request_throughput", "requests_per_s", "req/s"),
        total(record, "request_goodput", "goodput", "req/s"),
        total(record, "spec_decode_acceptance_length", "accept_length_run", "tokens"),
    )
    known = {metric.definition for metric in written}
    computed = (one for one in of_requests(record, per_chunk=True) if one.definition not in known)
    metrics = (*written, *computed)
    no_e2e = all(one.definition != "e2e_token" for one in metrics)
    return Imported(
        tool="vllm bench serve",
        label=str(record.get("label") or ""),
        completed=completed,
        failed=failed,
        duration_s=number(record.get("duration")),
        input_tokens=count(record.get("total_input_tokens")),
        output_tokens=count(record.get("total_output_tokens")),
        load=settings(record, *_LOAD),
        server=settings(mapping(record.get("server_info"))),
        metrics=metrics,
        notes=("no E2E: it is left out unless --percentile-metrics names e2el",) if no_e2e else (),
    )
