"""Small logs in the formats of real servers, written for these tests: what they are, and what they are not mistaken for."""

# ruff: noqa: E501 - log lines are as long as servers write them

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """A log and its answer."""

    name: str
    server: str
    log: str
    outcome: str
    category: str
    phase: str
    rank: int | None
    root: str | None


START = """\
[2026-03-02 10:00:00] server_args=ServerArgs(model_path='/models/big', tp_size=4, watchdog_timeout=300)
[2026-03-02 10:00:09 TP0] Init torch distributed begin.
[2026-03-02 10:00:09 TP1] Init torch distributed begin.
[2026-03-02 10:00:10 TP2] Init torch distributed begin.
[2026-03-02 10:00:10 TP3] Init torch distributed begin.
[2026-03-02 10:00:12 TP0] Init torch distributed ends. elapsed=3.1 s, mem usage=1.2 GB
[2026-03-02 10:00:13 TP0] Ignore import error when loading sglang.srt.models.other: No module named 'other'
[2026-03-02 10:00:14 TP0] Load weight begin. avail mem=94.12 GB
[2026-03-02 10:00:14 TP1] Load weight begin. avail mem=94.12 GB
[2026-03-02 10:00:14 TP2] Load weight begin. avail mem=94.12 GB
[2026-03-02 10:00:14 TP3] Load weight begin. avail mem=94.12 GB
"""
LOADED = (
    START
    + """\
[2026-03-02 10:01:00 TP0] Load weight end. elapsed=46 s, type=Big, avail mem=19.8 GB
[2026-03-02 10:01:00 TP1] Load weight end. elapsed=46 s, type=Big, avail mem=19.8 GB
[2026-03-02 10:01:00 TP2] Load weight end. elapsed=46 s, type=Big, avail mem=19.8 GB
[2026-03-02 10:01:00 TP3] Load weight end. elapsed=46 s, type=Big, avail mem=19.8 GB
[2026-03-02 10:01:02 TP0] KV Cache is allocated. #tokens: 240000, KV size: 9.5 GB
[2026-03-02 10:01:03 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=9 GB
"""
)
READY = (
    LOADED
    + """\
[2026-03-02 10:02:00 TP0] Capture cuda graph end. Time elapsed: 57 s. mem usage=1.2 GB. avail mem=8 GB.
[2026-03-02 10:02:01] INFO:     Started server process [7]
[2026-03-02 10:02:01] INFO:     Application startup complete.
[2026-03-02 10:02:01] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
[2026-03-02 10:02:05] The server is fired up and ready to roll!
"""
)
SIGQUIT = "[2026-03-02 10:09:09] Received sigquit from a child process. It usually means the child failed.\n"
ADVICE = "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"


def raised(rank: int, exception: str, *frames: str, source: str = "go()", second: int = 0) -> str:
    """A traceback as a rank of SGLang prints it."""
    rows = "".join(
        f'  File "/opt/sglang/srt/{frame.split()[0]}", line 45, in {frame.split()[1]}\n    {source}\n'
        for frame in frames
    )
    head = f"[2026-03-02 10:09:{second:02d} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
    return f"{head}{rows}{exception}\n\n"


def vllm(*rows: str, who: str = "EngineCore pid=9") -> str:
    """Error lines as vLLM prints them: each has the whole prefix."""
    return "".join(f"({who}) ERROR 11-30 00:45:52 [core.py:15] {row}\n" for row in rows)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 2 has a total capacity of 94.97 GiB"
LATE = "ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't finish loading."
SAMPLES = (
    Sample("oom of one rank", "sglang", START + SIGQUIT + raised(2, OOM, "managers/scheduler.py run", "loader.py load_model")
           + raised(0, LATE, "model_runner.py load_model", second=1) + SIGQUIT, "failed", "oom-weights", "load-weights", 2, OOM),
    Sample("capture", "sglang", LOADED + raised(1, "RuntimeError: No supported CUDA architectures found for major versions [9].",
           "cuda_graph_runner.py capture") + "During handling of the above exception, another exception occurred:\n\n"
           "Traceback (most recent call last):\n  File \"/opt/x.py\", line 4, in init_cuda_graphs\n    raise Exception(\n"
           "Exception: Capture cuda graph failed: No supported CUDA architectures found for major versions [9].\n" + ADVICE + SIGQUIT,
           "failed", "gpu-arch-unsupported", "graph-capture", 1, "RuntimeError: No supported CUDA architectures"),
    Sample("bare assertion", "sglang", START + raised(3, "AssertionError", "models/big.py __init__", "loader.py load_model",
           source="assert self.total_num_heads % tp_size == 0") + SIGQUIT, "failed", "tp-sharding", "load-weights", 3,
           "assert self.total_num_heads % tp_size == 0"),
    Sample("serving", "sglang", READY + "[2026-03-02 10:08:00 TP0] Prefill batch, #new-seq: 1\n" + raised(0,
           "RuntimeError: CUDA error: an illegal memory access was encountered", "managers/scheduler.py event_loop_overlap") + SIGQUIT,
           "failed", "illegal-memory-access", "serving", 0, "an illegal memory access was encountered"),
    Sample("argparse", "sglang", "usage: launch_server.py [-h] --model-path MODEL_PATH\n"
           "launch_server.py: error: unrecognized arguments: --enable_metrics\n", "failed", "cli-arguments", "args", None,
           "error: unrecognized arguments: --enable_metrics"),
    Sample("port", "sglang", READY.replace("[2026-03-02 10:02:05] The server is fired up and ready to roll!\n", "")
           + "[2026-03-02 10:02:02] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): "
           "address already in use\n", "failed", "port-in-use", "http-start", None, "[Errno 98]"),
    Sample("killed rank", "sglang", START + "Traceback (most recent call last):\n  File \"/opt/e.py\", line 1, in launch\n    wait()\n"
           "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common "
           "cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.\n", "failed", "root-not-in-log", "load-weights", 1,
           "Rank 1 scheduler died"),
    Sample("healthy", "sglang", READY + '[2026-03-02 10:03:00] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n',
           "ready", "none", "ready", None, None),
    Sample("drained", "sglang", READY + "[2026-03-02 10:08:00] SIGTERM received. signum=None frame=None. Draining requests and "
           "shutting down...\n[2026-03-02 10:08:05] Gracefully exiting... Remaining number of requests 3.\n"
           "[2026-03-02 10:08:06] kill_process_tree called: parent_pid=1\n", "stopped", "none", "serving", None, None),
    Sample("silent", "sglang", START.split("[2026-03-02 10:00:12")[0] + "[2026-03-02 10:00:11 TP0] sglang is using nccl==2.27.5\n",
           "hung", "hang-silent", "dist-init", None, None),
    Sample("library", "vllm", vllm("EngineCore failed to start.", "Traceback (most recent call last):", '  File "/v/core.py", line 4, in load_model',
           "    import flash", "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory")
           + "(APIServer pid=1) Traceback (most recent call last):\n(APIServer pid=1)   File \"/v/api.py\", line 4, in run\n"
           "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
           "failed", "shared-library-missing", "load-weights", None, "libcudart.so.13: cannot open shared object file"),
    Sample("pydantic", "vllm", "(APIServer pid=1) INFO 11-30 00:45:29 [api_utils.py:286] non-default args: {'model': '/m'}\n"
           "(APIServer pid=1) Traceback (most recent call last):\n(APIServer pid=1)   File \"/v/arg_utils.py\", line 2, in create_engine_config\n"
           "(APIServer pid=1)     ModelConfig()\n(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
           "(APIServer pid=1)   Value error, User-specified max_model_len (99) is greater than the derived max_model_len "
           "[type=value_error, input_value=ArgsKwargs((), {'model': 'x'}), input_type=ArgsKwargs]\n",
           "failed", "config-validation", "config", None, "User-specified max_model_len (99)"),
    Sample("llama", "llamacpp", "build: 5894 (33f1bb9f) with cc for x86_64-linux-gnu\nmain: HTTP server is listening, hostname: 127.0.0.1\n"
           "main: loading model\nsrv    load_model: loading model '/m.gguf'\nllama_model_load: error loading model: error loading model "
           "architecture: unknown model architecture: 'big'\nllama_model_load_from_file_impl: failed to load model\n"
           "srv    load_model: failed to load model, '/m.gguf'\nmain: exiting due to model loading error\n",
           "failed", "model-arch-unsupported", "load-weights", None, "unknown model architecture: 'big'"),
)  # fmt: skip
