"""What tunebot knows of each kind of server: argv, log lines, and how a server is asked."""

from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.model import LaunchConfig, Phase
from agent.playbook.model import Args
from agent.ports import ServerKind
from agent.servers import server_kind
from agent.servers.common import same


def config(kind: str, args: Args) -> LaunchConfig:
    command = ("python3", "-m", "sglang.launch_server") if kind == "sglang" else ("vllm", "serve")
    return LaunchConfig(kind=kind, command=command, args=args, env={}, source={}, version=None, load_timeout_s=60)


SG, VL = (server_kind(name, httpx.AsyncClient()) for name in ("sglang", "vllm"))


ARGS: Args = {
    "model-path": "~/m", "tp": "8", "trust-remote-code": True, "disable-radix-cache": False, "api-key": None,
    "cuda-graph-bs": ("1", "2", "4"), "json-model-override-args": '{"a": 1}',
}  # fmt: skip


def test_sglang_argv() -> None:
    assert SG.argv(config("sglang", ARGS), 30001) == (
        "python3", "-m", "sglang.launch_server", "--model-path", "~/m", "--tp", "8", "--trust-remote-code",
        "--cuda-graph-bs", "1", "2", "4", "--json-model-override-args", '{"a": 1}', "--host", "127.0.0.1",
        "--port", "30001",
    )  # fmt: skip


def test_vllm_argv_has_the_model_first_and_the_playbooks_own_address() -> None:
    args: Args = {"tensor-parallel-size": "2", "model": "~/m", "host": "0.0.0.0", "port": "8000"}
    assert VL.argv(config("vllm", args), 30001) == (
        "vllm", "serve", "~/m", "--tensor-parallel-size", "2", "--host", "0.0.0.0", "--port", "8000",
    )  # fmt: skip


def test_the_model_of_a_launch() -> None:
    assert SG.model_of(ARGS) == "~/m"
    assert SG.model_of({"model": "/m"}) == "/m"
    assert VL.model_of({"model": "/m"}) == "/m"
    assert VL.model_of({}) == ""


SGLANG_LINES = {
    "x.py:56: UserWarning: 'python -m sglang.launch_server' is still supported, but": Phase.ARGS,
    "'--cuda-graph-max-bs' is deprecated and will be removed in a future release.": Phase.ARGS,
    "[2026-03-02 10:00:00] server_args=ServerArgs(model_path='/m', load_format='auto')": Phase.CONFIG,
    "[2026-03-02 10:00:00 TP0] Init torch distributed begin.": Phase.DIST_INIT,
    "[2026-03-02 10:00:00 TP0] Init parallel begin.": Phase.DIST_INIT,
    "[2026-03-02 10:00:00 TP0] Load weight begin. avail mem=94.12 GB": Phase.LOAD_WEIGHTS,
    "[2026-03-02 10:00:00 TP0] Load weight end. elapsed=412.10 s, type=K, dtype=bf16": Phase.KV_CACHE,
    "[2026-03-02 10:00:00 TP0] KV Cache is allocated. #tokens: 9, KV size: 1 GB": Phase.KV_CACHE,
    "[2026-03-02 10:00:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9": Phase.KV_CACHE,
    "[2026-03-02 10:00:00 TP0] Capture cuda graph begin. This can take": Phase.GRAPH_CAPTURE,
    "[2026-03-02 10:00:00 TP0] Capture target verify CUDA graph begin. backend=full": Phase.GRAPH_CAPTURE,
    "[2026-03-02 10:00:00 TP0] Capture draft extend cuda graph begin. avail": Phase.GRAPH_CAPTURE,
    "[2026-03-02 10:00:00] INFO:     Started server process [7]": Phase.HTTP_START,
    "[2026-03-02 10:00:00] INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C)": Phase.WARMUP,
    "[2026-03-02 10:00:00] The server is fired up and ready to roll!": Phase.READY,
    "[2026-03-02 10:00:00] INFO:     Application startup complete.": None,
    "[2026-03-02 10:00:00 TP0] Decode batch, #running-req: 1, #token: 512, cuda graph: True": None,
    '[2026-03-02 10:00:00] INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable': None,
    "": None,
}
VLLM_LINES = {
    "(APIServer pid=1) INFO 11-30 00:45:29 [api_utils.py:347]   █▄█▀ █  version 0.32.0": Phase.ARGS,
    "(APIServer pid=1) INFO 11-30 00:45:29 [api_utils.py:286] non-default args: {'port': 1}": Phase.CONFIG,
    "(EngineCore_DP0 pid=2) INFO 11-30 00:45:45 [core.py:1] Initializing a V1 LLM engine (v0.33.0)": Phase.DIST_INIT,
    "(Worker_TP0 pid=3) INFO 11-30 00:45:52 [r.py:68] Starting to load model /m...": Phase.LOAD_WEIGHTS,
    "(Worker_TP0 pid=3) INFO 11-30 00:45:52 [r.py:68] Loading drafter model...": Phase.LOAD_WEIGHTS,
    "(Worker_TP0 pid=3) INFO 11-30 00:45:52 [r.py:68] Loading weights took 17.35 seconds": Phase.LOAD_WEIGHTS,
    "(Worker_TP0 pid=3) INFO 11-30 00:45:52 [r.py:68] Model loading took 56.93 GiB memory": Phase.PROFILE,
    "(Worker_TP0 pid=3) INFO 11-30 00:45:52 [r.py:68] torch.compile took 11.84 s in total": Phase.COMPILE,
    "(Worker pid=3) INFO 11-30 00:45:52 [r.py:68] Warming up model for the compilation...": Phase.COMPILE,
    "(Worker pid=3) INFO 11-30 00:45:53 [w.py:2] Available KV cache memory: 13.84 GiB": Phase.KV_CACHE,
    "(EngineCore pid=2) INFO 11-30 00:45:53 [k.py:2] CPU KV cache size: 262,144 tokens": Phase.KV_CACHE,
    "(Worker pid=3) INFO 11-30 00:45:53 [w.py:2] Graph capturing finished in 4 secs": Phase.GRAPH_CAPTURE,
    "(APIServer pid=1) INFO 11-30 00:45:55 [entry.py:140] Starting vLLM server on http://h:1": Phase.HTTP_START,
    "INFO 05-12 02:46:33 [api_server.py:1090] Starting vLLM API server on http://h:1": Phase.HTTP_START,
    "INFO:     Application startup complete.": Phase.READY,
    "(APIServer pid=1) INFO 11-30 00:46:05 [loggers.py:335] Engine 000: KV cache usage: 0.0%": None,
}
BARS = [
    (SG, "Loading safetensors checkpoint shards:  12% Completed | 1/8 [00:04<00:29,  4.2s/it]", "load-weights 1/8"),
    (SG, "Multi-thread loading shards: 100% Completed | 8/8 [00:02<00:00,  5.04it/s]", "load-weights 8/8"),
    (SG, "Capturing batches (bs=8 avail_mem=3 GB):  25%|##5  | 13/52 [00:10<00:30,  1it/s]", "graph-capture 13/52"),
    (SG, "Capturing num tokens (num_tokens=4 avail_mem=3 GB):   0%|  | 0/50 [00:00<?, ?it/s]", "graph-capture 0/50"),
    (VL, "(Worker pid=3) Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01", "load-weights 2/4"),
    (VL, "Capturing CUDA graphs (decode, FULL):  40%|####  | 2/5 [00:00<00:00, 12it/s]", "graph-capture 2/5"),
    (
        VL,
        "Capturing CUDA graphs (X):   0%|  | 0/7 [0Capturing CUDA graphs (X):  29%| | 2/7 [0",
        "graph-capture 2/7",
    ),
]


@pytest.mark.parametrize(
    ("it", "line", "phase"),
    [(SG, *row) for row in SGLANG_LINES.items()] + [(VL, *row) for row in VLLM_LINES.items()],
)
def test_what_a_line_says(it: ServerKind, line: str, phase: Phase | None) -> None:
    mark = it.phase_of(line)
    assert (mark and mark.phase) == phase
    assert mark is None or (mark.done, mark.total) == (None, None)


@pytest.mark.parametrize(("it", "line", "said"), BARS)
def test_how_far_a_bar_is(it: ServerKind, line: str, said: str) -> None:
    mark = it.phase_of(line)
    assert mark is not None and not mark.begins
    assert f"{mark.phase} {mark.done}/{mark.total}" == said


@settings(deadline=None)
@given(st.text())
def test_any_line_may_come(line: str) -> None:
    for it in (SG, VL):
        it.phase_of(line)
        it.fatal(line)


def test_fatal_lines() -> None:
    bind = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 1): address already in use"
    assert SG.fatal(bind)
    assert SG.fatal("[2026-03-02 10:00:00] SIGQUIT received. signum=None, frame=None. It usually means")
    assert VL.fatal("OSError: [Errno 98] Address already in use")
    assert SG.fatal("[2026-03-02 10:00:00] Load weight begin.") is None
    assert VL.fatal("OSError: [Errno 24] Too many open files") is None


@pytest.mark.parametrize(
    ("requested", "effective", "equal"),
    [
        ("8", 8, True), ("0.90", 0.9, True), ("1e3", 1000, True), ("010", 10, True), ("8", "8", True), ("9", 8, False),
        (True, True, True), (True, False, False), (False, False, True), (False, None, True), (False, True, False),
        ("true", True, True), ("no", False, False), ("~/m", "/home/u/m", True), ("~/m", "/home/u/mm", False),
        ("~/m", "/home/u/xm", False), ("/m/", "/m", True), ("/m", "/n", False), ('{"a": 1}', {"a": 1}, True),
        ('{"a": 1}', '{"a":1}', True), (("1", "2"), [1, 2], True), (("1", "2"), [1], False), ("8", None, False),
        ("None", None, True), ("nan", "nan", True), ("nan", 1.5, False), ("a", ["a"], False),
    ],
)  # fmt: skip
def test_same(requested: Any, effective: Any, equal: bool) -> None:
    assert same(requested, effective) is equal


LLAMA = server_kind("llamacpp", httpx.AsyncClient())
LLAMA_LINES = {
    "build: 5894 (33f1bb9f) with cc for x86_64-linux-gnu": Phase.CONFIG,
    "main: HTTP server is listening, hostname: 127.0.0.1, port: 8081, http threads: 15": None,
    "srv    load_model: loading model '/m.gguf'": Phase.LOAD_WEIGHTS,
    "llama_context: constructing llama_context": Phase.KV_CACHE,
    "common_init_from_params: warming up the model with an empty run - please wait ...": Phase.WARMUP,
    "main: server is listening on http://127.0.0.1:8081 - starting the main loop": Phase.READY,
    "slot update_slots: id  0 | task 0 | prompt done": None,
}


@pytest.mark.parametrize(("line", "phase"), LLAMA_LINES.items())
def test_llamacpp_lines(line: str, phase: Phase | None) -> None:
    mark = LLAMA.phase_of(line)
    assert (mark.phase if mark else None) == phase


def test_llamacpp_draws_a_dot_for_each_per_cent() -> None:
    mark = LLAMA.phase_of("." * 42)
    assert mark is not None and (mark.phase, mark.done, mark.total) == (Phase.LOAD_WEIGHTS, 42, 100)


def test_llamacpp_argv_has_one_dash_before_short_names() -> None:
    given = {"m": "/m.gguf", "ctx-size": "4096", "ngl": "99", "nocb": True, "fa": False, "ot": ("--a", "--b=CPU")}
    argv = LLAMA.argv(config("llamacpp", given), 8081)
    flags = ("-m", "/m.gguf", "--ctx-size", "4096", "-ngl", "99", "-nocb", "-ot", "--a", "--b=CPU")
    assert argv[2:] == (*flags, "--host", "127.0.0.1", "--port", "8081")
    assert LLAMA.model_of({"m": "/m.gguf"}) == "/m.gguf"


@pytest.mark.parametrize(("kind", "lines"), [("sglang", SGLANG_LINES), ("vllm", VLLM_LINES), ("llamacpp", LLAMA_LINES)])
def test_every_line_that_a_kind_understands_has_one_of_its_words(kind: str, lines: dict[str, Phase | None]) -> None:
    known = server_kind(kind, httpx.AsyncClient())
    for line in lines:
        assert known.phase_of(line) is None or any(word in line for word in known.words), line
