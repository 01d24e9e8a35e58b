"""Tracebacks as the ranks of the server print them, with line numbers looked up in the simulated source tree."""

from pathlib import Path

from agent.sim.effects import Fail, Raised

Frame = tuple[str, ...]

SCHEDULER = "sglang/srt/managers/scheduler.py"
RUNNER = "sglang/srt/model_executor/model_runner.py"
GRAPHS = "sglang/srt/model_executor/cuda_graph_runner.py"
HEAD: tuple[Frame, ...] = (
    (SCHEDULER, "run_scheduler_process", "scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank)"),
    (SCHEDULER, "__init__", "self.init_model_worker()"),
    (SCHEDULER, "init_model_worker", "self.tp_worker = TpModelWorker(self.server_args, self.gpu_id, self.tp_rank)"),
    ("sglang/srt/managers/tp_worker.py", "__init__", "self.model_runner = ModelRunner(server_args, gpu_id, tp_rank)"),
)
LOAD: tuple[Frame, ...] = (
    (RUNNER, "__init__", "self.initialize(min_per_gpu_memory)"),
    (RUNNER, "initialize", "self.load_model()"),
    (RUNNER, "load_model", "self.model = get_model(self.model_config, self.load_config)"),
)
CAPTURE: tuple[Frame, ...] = (
    (RUNNER, "__init__", "self.initialize(min_per_gpu_memory)"),
    (RUNNER, "initialize", "self.init_device_graphs()"),
    (RUNNER, "init_device_graphs", "self.graph_runner = CudaGraphRunner(self)"),
)
CHAINS: dict[str, tuple[Frame, ...]] = {
    "dist-init": ((RUNNER, "__init__", "min_per_gpu_memory = self.init_torch_distributed()"),),
    "load-weights": LOAD,
    "repack": LOAD,
    "draft-load": LOAD,
    "kv-cache": (*LOAD[:1], (RUNNER, "initialize", "self.init_memory_pool(min_per_gpu_memory)")),
    "graph-capture": CAPTURE,
    "draft-capture": CAPTURE,
}
ADVICE = (
    "Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
    "3. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n"
)
CHAINED = "\nDuring handling of the above exception, another exception occurred:\n\n"
MEMORY_ERRORS = ("RuntimeError", "torch.OutOfMemoryError")


def rank_traceback(site: Path, fail: Fail) -> str:
    """What follows `Scheduler hit an exception: ` for this failure, a capture's wrapper included."""
    chain = (*HEAD, *CHAINS[fail.phase])
    raised = Raised(fail.exception, fail.message, (*chain, *fail.frames))
    parts = [] if fail.cause is None else [fail.cause]
    if "capture" in fail.phase and fail.exception in MEMORY_ERRORS:
        inner = ((GRAPHS, "__init__", "self.capture()"), *fail.frames)
        outer = (*chain, (GRAPHS, "__init__", 'raise Exception(f"Capture cuda graph failed: {error}\\n{ADVICE}")'))
        text = f"Capture cuda graph failed: {fail.message}\n{ADVICE}"
        parts += [Raised(fail.exception, fail.message, inner), Raised("Exception", text, outer)]
    else:
        parts.append(raised)
    return CHAINED.join(traceback_text(site, part) for part in parts) + "\n"


def traceback_text(site: Path, raised: Raised) -> str:
    """One traceback block as Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for file, function, code in raised.frames:
        lines += [f'  File "{site / file}", line {line_of(site / file, code)}, in {function}', f"    {code}"]
    lines.append(f"{raised.exception}: {raised.message}" if raised.message else raised.exception)
    return "\n".join(lines) + "\n"


def line_of(file: Path, code: str) -> int:
    """Number of the first line of the tree's file that holds this source line; 0 if there is none."""
    if file.exists():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip() == code:
                return number
    return 0
