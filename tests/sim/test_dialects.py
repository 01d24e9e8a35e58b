"""The logs of both generations of SGLang: the watch follows either one, and finds what ends a load in it."""

# ruff: noqa: E501 - log lines are as long as servers write them

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.core.model import Phase
from agent.servers.sglang import SGLang
from agent.sim.dialect import Dialect, Dialect523
from agent.sim.host import SimHost
from agent.watch.watch import LoadWatch
from tests.sim.conftest import Server, free_port

OLD: dict[str, Any] = {"version": "0.5.10", "nccl": "2.27.5"}
NEW: dict[str, Any] = {"version": "0.5.23", "cuda": "13.0", "nccl": "2.28.9", "flashinfer": "0.7.2"}
EAGLE = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft")
LOADED = [Phase.DIST_INIT, Phase.LOAD_WEIGHTS, Phase.KV_CACHE]
DRAFT = [Phase.LOAD_WEIGHTS, Phase.KV_CACHE]
UP = [Phase.HTTP_START, Phase.WARMUP, Phase.READY]
CAPTURED = [Phase.GRAPH_CAPTURE]
EXPECTED = {
    ("old", False): [Phase.IMPORT, Phase.CONFIG, *LOADED, *CAPTURED, *UP],
    ("old", True): [Phase.IMPORT, Phase.CONFIG, *LOADED, *CAPTURED, *DRAFT, *CAPTURED, *UP],
    ("new", False): [Phase.IMPORT, Phase.ARGS, Phase.CONFIG, *LOADED, *CAPTURED, *UP],
    ("new", True): [Phase.IMPORT, Phase.ARGS, Phase.CONFIG, *LOADED, *DRAFT, *CAPTURED, *UP],
}
LINES = {
    "old": [
        r"TP0\] Init torch distributed begin\.$",
        r"TP0\] sglang is using nccl==2\.27\.5$",
        r"TP1\] Init torch distributed ends\. elapsed=[\d.]+ s, mem usage=0\.50 GB$",
        r"TP0\] Load weight end\. elapsed=[\d.]+ s, type=\w+, dtype=torch\.bfloat16, avail mem=[\d.]+ GB, mem usage=40\.00 GB\.$",
        r"TP0\] Using KV cache dtype: torch\.float8_e4m3fn$",
        r"TP1\] KV Cache is allocated\. #tokens: 100000, KV size: 8\.00 GB$",
        r"TP0\] Capture cuda graph begin\. This can take up to several minutes\. avail mem=[\d.]+ GB$",
        r"TP0\] Capture draft extend cuda graph end\. Time elapsed: [\d.]+ s\. mem usage=0\.00 GB\. avail mem=[\d.]+ GB\.$",
    ],
    "new": [
        r"launch_server\.py:56: UserWarning: 'python -m sglang\.launch_server' is still supported",
        r"Using default HuggingFace chat template",
        r"TP0\] Init parallel begin\.$",
        r"TP0\] sglang is using nccl==2\.28\.9$",
        r"TP1\] Memory baseline taken\. mem usage=0\.50 GB$",
        r"TP0\] Load weight end\. elapsed=[\d.]+ s, type=\w+, quant=compressed-tensors, bits=4, avail mem=[\d.]+ GB, mem usage",
        r"TP1\] KV Cache is allocated\. dtype: torch\.float8_e4m3fn, #tokens: 100000, KV size: 8\.00 GB$",
        r"TP0\] Capture target verify CUDA graph begin\. backend=full, num_tokens_per_req=4, bs=\[1, 2, 3, 4, 5, 6, 7, 8\], avail",
        r"TP0\] Capture draft extend CUDA graph end\. elapsed=[\d.]+ s, mem usage=0\.00 GB, avail mem=[\d.]+ GB\.$",
        r"TP0\] Tree cache initialized: ",
    ],
}


@pytest.fixture
def start(make_host: Callable[..., SimHost]) -> Iterator[Callable[..., Server]]:
    """Starts a server of one generation."""

    def begin(name: str, *flags: str, **changes: Any) -> Server:
        host = make_host(environments={"default": OLD if name == "old" else NEW}, rules=[], **changes)
        largest = "--cuda-graph-max-bs" if name == "old" else "--cuda-graph-max-bs-decode"
        return Server(host, free_port(), largest, "8", *flags)

    return begin


def followed(log: str) -> tuple[LoadWatch, list[Phase]]:
    """The watch behind a whole log that came in pieces, and the phases that it saw."""
    watch = LoadWatch(SGLang(None), None)  # type: ignore[arg-type]
    data = log.encode()
    pieces = [data[at : at + 997] for at in range(0, len(data), 997)]
    updates = [update for second, piece in enumerate(pieces) for update in watch.feed(piece, float(second))]
    return watch, [update.phase for update in updates if update.begins]


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize("name", ["old", "new"])
def test_the_watch_follows_a_start(start: Callable[..., Server], name: str, speculative: bool) -> None:
    log = start(name, "--kv-cache-dtype", "fp8_e4m3", *(EAGLE if speculative else ())).ready().log
    watch, seen = followed(log)
    assert watch.is_up and seen == EXPECTED[name, speculative]
    if speculative:
        assert [pattern for pattern in LINES[name] if not re.search(pattern, log, re.MULTILINE)] == []
    bar = "Loading safetensors checkpoint shards" if name == "old" else "Multi-thread loading shards"
    assert f"\r{bar}:  12% Completed | 1/8 [" in log
    assert (f"it/s]\r{bar}:" in log) == (name == "new"), "the newer one redraws by a bare carriage return"


@pytest.mark.parametrize(
    ("name", "flags", "root", "phase"),
    [
        ("old", ["--enable-torch-symm-mem"], "KeyError: 12", Phase.DIST_INIT),
        ("old", ["--moe-a2a-backend", "deepep"], "ImportError: DeepEP is not installed.", Phase.LOAD_WEIGHTS),
        ("new", ["--moe-a2a-backend", "deepep"], "ImportError: DeepEP is not installed.", Phase.LOAD_WEIGHTS),
        ("new", ["--flashinfer-allreduce-fusion-backend", "trtllm"], "ValueError: FlashInfer allreduce fusion requires",
         Phase.GRAPH_CAPTURE),
        ("new", ["--attention-backend", "trtllm_mla"], "RuntimeError: Unsupported architecture", Phase.GRAPH_CAPTURE),
        ("new", ["--load-format", "dummy", "--model-loader-extra-config", '{"a": 1}'],
         "ValueError: Model loader extra config is not supported", Phase.LOAD_WEIGHTS),
    ],
)  # fmt: skip
def test_the_watch_finds_the_cause(
    start: Callable[..., Server], name: str, flags: list[str], root: str, phase: Phase
) -> None:
    server = start(name, *flags, laws=["sglang"])
    code = server.process.wait(20)
    watch, _ = followed(server.log)
    failure = watch.diagnose(code, False)
    assert any(root in quote.text for quote in failure.evidence), failure
    assert failure.phase is phase


@pytest.mark.parametrize("name", ["old", "new"])
def test_random_weights_are_there_at_once(start: Callable[..., Server], name: str) -> None:
    server = start(name, "--load-format", "dummy", *EAGLE, laws=["sglang"]).ready()
    assert "Completed |" not in server.log, "nothing is read, so there is no bar"
    watch, seen = followed(server.log)
    assert watch.is_up and seen.count(Phase.LOAD_WEIGHTS) == 2
    elapsed = [float(text) for text in re.findall(r"TP0\] Load weight end\. elapsed=([\d.]+)", server.log)]
    assert len(elapsed) == 2 and max(elapsed) < 0.1
    ask = {"prompt": "What is the capital of France?", "max_tokens": 4, "temperature": 0}
    assert not server.post("/v1/completions", ask)["choices"][0]["text"].startswith(" Paris")


def test_what_the_accept_rate_counts_changed() -> None:
    assert "accept len: 2.80, accept rate: 0.70, " in Dialect().decode_line(1, 512, 54.1, 2.8, 4)
    assert "accept len: 2.80, accept rate: 0.60, " in Dialect523().decode_line(1, 512, 54.1, 2.8, 4)
    assert "accept" not in Dialect().decode_line(1, 512, 54.1, None, 1)


def test_ranks_of_two_stages_say_which_they_are(
    start: Callable[..., Server], make_host: Callable[..., SimHost]
) -> None:
    log = start("new", "--pp-size", "2", "--tp", "1").ready().log
    assert " PP0] Load weight begin." in log and " PP1] Load weight begin." in log
    assert followed(log)[0].is_up
