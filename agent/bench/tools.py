"""Rounds that another benchmark client measures, on the target beside the server; its result file is imported."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.bench.sample import too_many_failed
from agent.core.metrics import Hygiene, RoundMetrics, Spread
from agent.imports.formats import read_results
from agent.imports.model import DEFINITIONS, Imported, Metric, Unreadable
from agent.playbook.workload import Workload
from agent.ports import RoundError, Target, TargetUnusable
from agent.text import decode, one_line

_MOST_RESULT_BYTES = 256 << 20
_PIECE_BYTES = 1 << 20
_OTHER_TTFT = ("ttft_any_chunk", "ttft_reported", "ttft_due")
_OTHER_TPOT = ("tpot_excl_first_done", "tpot_excl_first_weighted")


CALLED = {"sglang-bench": ("python3", "-m", "sglang.bench_serving"), "vllm-bench": ("vllm", "bench", "serve")}
"""How a tool is called on the target where the workload's `run` does not say."""

RESULTS = "~/.cache/tunebot/bench"
"""The folder on the target for result files, each removed once it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLoad:
    """One load of a workload with a tool, on the server at a loopback port of the target.

    `native` says that the server is SGLang, with an API of its own. The prompts follow from `seed`.
    """

    workload: Workload
    port: int
    native: bool
    seed: int
    timeout_s: float


def argv_of(load: ToolLoad, result: str) -> list[str]:
    """The command of a load that writes its result into the file `result`. No shell reads it."""
    workload, url = load.workload, f"http://127.0.0.1:{load.port}"
    called = CALLED.get(workload.tool or "command")
    if called is None:
        return [_filled(word, load, {"{url}": url, "{result}": result}) for word in workload.run]
    rate = ["--request-rate", f"{workload.rate:g}"] if workload.rate is not None else []
    common = [
        *(workload.run or called), "--base-url", url, "--num-prompts", str(workload.requests),
        "--max-concurrency", str(workload.concurrency), "--random-input-len", str(workload.input_len),
        "--random-output-len", str(workload.output_len), "--seed", str(load.seed), "--disable-tqdm", *rate,
    ]  # fmt: skip
    if workload.tool == "sglang-bench":
        return [
            *common, "--backend", "sglang" if load.native else "vllm", "--dataset-name", "random-ids",
            "--random-range-ratio", "1.0", "--warmup-requests", "0", "--output-file", result, "--output-details",
        ]  # fmt: skip
    folder, _, name = result.rpartition("/")
    return [
        *common, "--backend", "openai", "--endpoint", "/v1/completions", "--dataset-name", "random", "--ignore-eos",
        "--temperature", "0", "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "90,95,99",
        "--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", name,
    ]  # fmt: skip


async def tool_round(target: Target, load: ToolLoad, name: str) -> RoundMetrics:
    """Measure one round; `name` is one that no other round has on the target. Raises RoundError."""
    return round_of(await run_tool(target, load, f"{RESULTS}/{name}.json"), load.workload.requests)


async def run_tool(target: Target, load: ToolLoad, result: str) -> Imported:
    """Run a load on the target to its end and read its result file there; the file is removed. Raises RoundError."""
    try:
        await target.run(["mkdir", "-p", result.rpartition("/")[0]], timeout_s=30.0)
        await target.run(["rm", "-f", result], timeout_s=30.0)  # sglang.bench_serving appends
        done = await target.run(argv_of(load, result), timeout_s=load.timeout_s, hide_gpus=True)
        if done.timed_out:
            raise RoundError(f"{load.workload.tool}: no end after {load.timeout_s:.0f} s")
        if done.exit_code != 0:
            lines = [line for line in decode(done.output).splitlines() if line.strip()]
            raise RoundError(
                f"{load.workload.tool}: exit {done.exit_code}: {one_line(lines[-1] if lines else 'no output')}"
            )
        text = (await _read(target, result)).decode("utf-8")
        await target.run(["rm", "-f", result], timeout_s=30.0)
        return read_results(text)[-1]
    except TargetUnusable as error:
        raise RoundError(f"{load.workload.tool}: {error}") from error
    except (Unreadable, UnicodeDecodeError) as error:
        raise RoundError(f"{load.workload.tool}: its result cannot be read: {one_line(str(error))}") from error


def round_of(found: Imported, requests: int) -> RoundMetrics:
    """A round from what a tool measured. Raises RoundError where it did not measure all of it.

    A field gets a number of its own definition only, but for TTFT and TPOT: where the tool has none of that, the
    nearest is taken, and the hygiene says which. Nothing that holds TTFT passes for TPOT.
    """
    completed = found.completed or 0
    if too_many_failed(requests - completed, requests) or not found.duration_s or not found.output_tokens:
        raise RoundError(f"{found.tool}: {requests - completed} of {requests} requests failed")
    ttft, tpot = _nearest(found, "ttft_text", _OTHER_TTFT), _nearest(found, "tpot_excl_first", _OTHER_TPOT)
    if ttft is None or tpot is None or not {"p50"} <= ttft.stats.keys() & tpot.stats.keys():
        raise RoundError(f"{found.tool}: its result has no {'TTFT' if ttft is None else 'TPOT'} that can be used")
    chunk = _value(found, "tokens_per_chunk")
    hits = _value(found, "cache_hit_rate")
    return RoundMetrics(
        requests=requests,
        failed=requests - completed,
        duration_s=found.duration_s,
        prompt_tokens=found.input_tokens or 0,
        output_tokens=found.output_tokens,
        cached_tokens=0,
        output_throughput=found.output_tokens / found.duration_s,
        request_throughput=completed / found.duration_s,
        ttft_ms=ttft.stats["p50"],
        tpot_ms=tpot.stats["p50"],
        tokens_per_chunk=1.0 if chunk is None else chunk,
        goodput=_value(found, "goodput"),
        ttft=_spread(ttft),
        tpot=_spread(tpot),
        itl=_spread(_metric(found, "gap_token")),
        chunk_gap=_spread(_metric(found, "gap_chunk")),
        e2e=_spread(_metric(found, "e2e_token")),
        prompt_len=found.input_tokens / completed if found.input_tokens else None,
        output_len=found.output_tokens / completed,
        cache_hit_rate=None if hits is None else hits / 100,
        accept_length=_value(found, "accept_length_run"),
        hygiene=tuple(_doubts(found, (ttft, "ttft_text"), (tpot, "tpot_excl_first"), chunk)),
    )


def _filled(word: str, load: ToolLoad, wanted: dict[str, str]) -> str:
    workload = load.workload
    wanted = wanted | {
        "{seed}": str(load.seed),
        "{requests}": str(workload.requests),
        "{concurrency}": str(workload.concurrency),
        "{input_len}": str(workload.input_len),
        "{output_len}": str(workload.output_len),
    }
    for name, value in wanted.items():
        word = word.replace(name, value)
    return word


async def _read(target: Target, path: str) -> bytes:
    made = bytearray()
    while piece := await target.read_file(path, len(made), _PIECE_BYTES):
        made += piece
        if len(made) > _MOST_RESULT_BYTES:
            raise RoundError(f"its result has more than {_MOST_RESULT_BYTES >> 20} MiB")
    return bytes(made)


def _metric(found: Imported, definition: str) -> Metric | None:
    return next((one for one in found.metrics if one.definition == definition), None)


def _nearest(found: Imported, definition: str, others: Sequence[str]) -> Metric | None:
    return next((one for name in (definition, *others) if (one := _metric(found, name))), None)


def _value(found: Imported, definition: str) -> float | None:
    metric = _metric(found, definition)
    return metric.stats.get("value") if metric else None


def _spread(metric: Metric | None) -> Spread | None:
    """None where the tool left a percentile out."""
    if metric is None or not {"mean", "p50", "p90", "p95", "p99"} <= metric.stats.keys():
        return None
    stats = metric.stats
    return Spread(mean=stats["mean"], p50=stats["p50"], p90=stats["p90"], p95=stats["p95"], p99=stats["p99"])


def _doubts(found: Imported, ttft: tuple[Metric, str], tpot: tuple[Metric, str], chunk: float | None) -> list[Hygiene]:
    doubts = [
        Hygiene(name="definition", level="warn", text=f"{metric.key} is {DEFINITIONS[metric.definition].means}")
        for metric, wanted in (ttft, tpot)
        if metric.definition != wanted
    ]
    if chunk is None:
        text = f"{found.tool} does not tell how many tokens a chunk holds; one is assumed"
        doubts.append(Hygiene(name="chunks", level="warn", text=text))
    return doubts
