"""Imported results as people and machines read them. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent.imports.model import DEFINITIONS, Imported, Metric

_COLUMNS = ("mean", "p50", "p90", "p95", "p99")
_SHOWN_OF_SERVER = (
    "version", "model_path", "served_model_name", "tp_size", "dp_size", "ep_size", "quantization", "kv_cache_dtype",
    "attention_backend", "mem_fraction_static", "max_running_requests", "chunked_prefill_size",
    "speculative_algorithm",
)  # fmt: skip


def cleaned(result: Imported, clean: Callable[[str], str]) -> Imported:
    """The result with every text of its file made fit to be shown."""

    def pairs(texts: Mapping[str, str]) -> dict[str, str]:
        return {clean(name): clean(value) for name, value in texts.items()}

    notes = tuple(clean(note) for note in result.notes)
    return replace(result, label=clean(result.label), load=pairs(result.load), server=pairs(result.server), notes=notes)


def result_lines(result: Imported) -> Iterator[str]:
    """A result as lines: what ran, a table of its metrics, and what each means."""
    yield f"{result.tool}{f'  {result.label}' if result.label else ''}"
    yield f"  {'requests':17}{_requests(result)}"
    if result.load:
        yield f"  {'load':17}{_pairs(result.load)}"
    if result.server:
        shown = {name: value for name, value in result.server.items() if name in _SHOWN_OF_SERVER}
        more = len(result.server) - len(shown)
        yield f"  {'server':17}{_pairs(shown)}{f' … {more} more with --json' if more else ''}"
    if any("value" not in metric.stats for metric in result.metrics):
        yield "  " + " " * 17 + "".join(f"{column:>10}" for column in _COLUMNS)
    for metric in result.metrics:
        stats = {"mean": metric.stats["value"]} if "value" in metric.stats else metric.stats
        cells = "".join(f"{_number(stats.get(column)):>10}" for column in _COLUMNS)
        yield f"  {_word(metric):17}{cells} {metric.unit:6} {metric.key}"
    if result.metrics:
        yield f"  as {result.tool} defines it:"
    for metric in result.metrics:
        yield f"    {metric.key}: {DEFINITIONS[metric.definition].means}"
    for note in result.notes:
        yield f"  note: {note}"


def as_json(result: Imported) -> dict[str, Any]:
    """A result as a JSON object; each metric with the tool's own key, its definition, and its unit."""
    return {
        "tool": result.tool,
        "label": result.label,
        "completed": result.completed,
        "failed": result.failed,
        "duration_s": result.duration_s,
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "load": dict(result.load),
        "server": dict(result.server),
        "metrics": [
            {
                "word": _word(metric),
                "key": metric.key,
                "definition": metric.definition,
                "means": DEFINITIONS[metric.definition].means,
                "unit": metric.unit,
                **metric.stats,
            }
            for metric in result.metrics
        ],
        "notes": list(result.notes),
    }


def _requests(result: Imported) -> str:
    completed = "?" if result.completed is None else str(result.completed)
    failed = "failures unknown" if result.failed is None else f"{result.failed} failed"
    parts = [f"{completed} completed, {failed}"]
    if result.output_tokens is not None:
        parts.append(f"{result.output_tokens} output tokens")
    if result.duration_s is not None:
        parts.append(f"{result.duration_s:.2f} s")
    return ", ".join(parts)


def _pairs(texts: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in texts.items())


def _word(metric: Metric) -> str:
    return DEFINITIONS[metric.definition].word


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
