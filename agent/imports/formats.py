"""Which tool wrote a result file. Pure."""

from dataclasses import replace

from agent.imports import aiperf, guidellm, sglang, tunebot, vllm
from agent.imports.model import Imported, Unreadable
from agent.imports.values import objects

HINT = (
    "the result files are: the JSONL of sglang.bench_serving, the JSON of vllm bench serve --save-result, GuideLLM's "
    "benchmarks.json, AIPerf's profile_export_aiperf.json or profile_export.jsonl, what tunebot bench --json prints"
)


def read_results(text: str) -> tuple[Imported, ...]:
    """The runs in the text of a result file, in its order. Raises Unreadable."""
    if not text.strip():
        raise Unreadable("the file is empty", "did the run end?")
    try:
        records = objects(text)
    except Unreadable as error:
        raise Unreadable(str(error), error.hint or HINT) from error
    if all(aiperf.is_request(record) for record in records):
        return (_measured(aiperf.read_requests(records)),)
    found: list[Imported] = []
    for record in records:
        if tunebot.is_mine(record):
            found.append(tunebot.read(record))
        elif sglang.is_mine(record):
            found.append(sglang.read(record))
        elif vllm.is_mine(record):
            found.append(vllm.read(record))
        elif guidellm.is_mine(record):
            found += guidellm.read(record)
        elif aiperf.is_mine(record):
            found.append(aiperf.read(record))
        else:
            keys = ", ".join(repr(key)[:30] for key in list(record)[:4])
            raise Unreadable(f"no known benchmark client wrote this (it begins with {keys or 'no key'})", HINT)
    return tuple(_measured(result) for result in found)


def _measured(result: Imported) -> Imported:
    """Where no request completed the tools write zeros, which are no measurement."""
    if result.completed != 0:
        return result
    return replace(result, metrics=(), notes=("no request completed: the file's zeros are left out", *result.notes))
