"""The benchmark clients that are compared: what each is called with for one load, and where its result is."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent import __version__
from agent.diagnostics import Exit
from agent.imports.formats import read_results
from tests.real.setup_peers import PEERS, Peer, ensure, vllm_python
from tests.real.setup_vllm import VLLM, cache_folder

HERE = Path(__file__).parent
MODEL = "tiny-llama"
INPUT_LEN = 64


@dataclass(frozen=True)
class Load:
    """Requests at once, as many as `concurrency`, until `requests` are done; lengths in tokens."""

    url: str
    requests: int
    concurrency: int
    output_len: int = 256


@dataclass(frozen=True)
class Client:
    """A client. `argv` is its command for a load with an empty folder for results, run in the folder of `work_folder`.

    `duration_s` reads from that folder how long the client says that the load took. Raises ValueError where not all
    of its requests were completed. `codes` are the exit codes of a load that was done.
    """

    name: str
    version: str
    argv: Callable[[Load, Path], list[str]]
    duration_s: Callable[[Load, Path], float]
    codes: tuple[int, ...] = (0,)


def work_folder() -> Path:
    """A folder with the model's tokenizer under a relative name, since AIPerf takes no path."""
    folder = cache_folder() / "bench-client"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / MODEL
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(cache_folder() / "models" / MODEL)
    return folder


def environment() -> dict[str, str]:
    """What the clients run with: nothing is looked up elsewhere."""
    return os.environ | {"HF_DATASETS_OFFLINE": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1"}


def peer(name: str) -> Peer:
    """One of PEERS."""
    return next(one for one in PEERS if one.name == name)


def imported(file: str) -> Callable[[Load, Path], float]:
    """A reader of the duration in a result file, with tunebot's own importers."""

    def duration_s(load: Load, out: Path) -> float:
        result = read_results((out / file).read_text(encoding="utf-8"))[-1]
        if result.completed != load.requests or result.duration_s is None:
            raise ValueError(f"{result.completed} of {load.requests} requests completed")
        return result.duration_s

    return duration_s


BIN = HERE.parents[1] / ".venv" / "bin"


def bare_argv(load: Load, out: Path) -> list[str]:
    """The floor."""
    amounts = map(str, (load.requests, load.concurrency, load.output_len))
    return [str(BIN / "python"), str(HERE / "bare.py"), load.url, *amounts]


def tunebot_argv(load: Load, out: Path) -> list[str]:
    """`tunebot bench`."""
    shape = ["--input-len", str(INPUT_LEN), "--output-len", str(load.output_len)]
    amount = ["--requests", str(load.requests), "--concurrency", str(load.concurrency)]
    return [str(BIN / "tunebot"), "bench", load.url, "--json", "--model", MODEL, *shape, *amount]


def printed_duration_s(load: Load, out: Path) -> float:
    """Of what `tunebot bench --json`, and bare.py, printed."""
    made = json.loads((out / "stdout").read_text(encoding="utf-8"))
    if made["completed"] != load.requests:
        raise ValueError(f"{made['completed']} of {load.requests} requests completed")
    return float(made["duration"])


def vllm_argv(load: Load, out: Path) -> list[str]:
    """`vllm bench serve`; its random dataset ignores the end of sequence."""
    return [
        str(vllm_python().parent / "vllm"), "bench", "serve", "--backend", "openai", "--base-url", load.url,
        "--endpoint", "/v1/completions", "--model", MODEL, "--tokenizer", MODEL, "--dataset-name", "random",
        "--random-input-len", str(INPUT_LEN), "--random-output-len", str(load.output_len), "--ignore-eos",
        "--num-prompts", str(load.requests), "--max-concurrency", str(load.concurrency),
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "90,95,99",
        "--save-result", "--result-dir", str(out), "--result-filename", "result.json", "--disable-tqdm",
    ]  # fmt: skip


def sglang_argv(load: Load, out: Path) -> list[str]:
    """sglang.bench_serving, on the OpenAI API as the others."""
    return [
        str(peer("sglang").python), str(HERE / "sglang_bench.py"), "--backend", "vllm", "--base-url", load.url,
        "--model", MODEL, "--tokenizer", MODEL, "--dataset-name", "random-ids",
        "--random-input-len", str(INPUT_LEN), "--random-output-len", str(load.output_len),
        "--random-range-ratio", "1.0", "--num-prompts", str(load.requests),
        "--max-concurrency", str(load.concurrency), "--output-file", str(out / "result.jsonl"), "--disable-tqdm",
    ]  # fmt: skip


def aiperf_argv(load: Load, out: Path) -> list[str]:
    """AIPerf, with the server's token counts as the others have them."""
    return [
        str(peer("aiperf").python.parent / "aiperf"), "profile", "-m", MODEL, "--url", load.url,
        "--endpoint-type", "completions", "--streaming", "--tokenizer", MODEL, "--use-server-token-count",
        "--concurrency", str(load.concurrency), "--request-count", str(load.requests),
        "--isl", str(INPUT_LEN), "--osl", str(load.output_len), "--extra-inputs", "ignore_eos:true",
        "--artifact-dir", str(out), "--ui", "none",
    ]  # fmt: skip


def guidellm_argv(load: Load, out: Path) -> list[str]:
    """GuideLLM."""
    return [
        str(peer("guidellm").python.parent / "guidellm"), "run",
        "--backend", f"kind=openai_http,target={load.url},model={MODEL},request_format=/v1/completions",
        "--profile", f"kind=concurrent,streams={load.concurrency}",
        "--constraint", f"kind=max_requests,count={load.requests}",
        "--tokenizer", f"kind=huggingface_auto,model={MODEL}",
        "--data", f"kind=synthetic_text,prompt_tokens={INPUT_LEN},output_tokens={load.output_len}",
        "--output", f"kind=json,path={out / 'benchmarks.json'}", "--disable-console",
    ]  # fmt: skip


CLIENTS = (
    Client("tunebot", __version__, tunebot_argv, printed_duration_s, (Exit.OK, Exit.NOT_COMPARABLE)),
    Client("vllm bench serve", VLLM, vllm_argv, imported("result.json")),
    Client("sglang.bench_serving", peer("sglang").version, sglang_argv, imported("result.jsonl")),
    Client("AIPerf", peer("aiperf").version, aiperf_argv, imported("profile_export_aiperf.json")),
    Client("GuideLLM", peer("guidellm").version, guidellm_argv, imported("benchmarks.json")),
    Client("bare client", "(only stamps and keeps)", bare_argv, printed_duration_s),
)
PACED = ("tunebot", "bare client")
"""The clients that are measured at the server's pace too."""


def install() -> None:
    """See that every peer is there. Raises SetupError."""
    vllm_python()
    for one in PEERS:
        ensure(one)
