"""The workloads with `tool:` with the real tools: each measures the fast server through a local target.

python -m tests.bench_client.tools
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from agent.bench.tools import ToolLoad, round_of, run_tool
from agent.playbook.workload import Workload
from agent.targets.local import LocalTarget
from tests.bench_client.clients import HERE, MODEL, install, peer, work_folder
from tests.bench_client.runs import fast_server
from tests.real.setup_peers import vllm_python

STEP_MS = 5.0
OUTPUT_LEN = 32


def loads(port: int) -> list[ToolLoad]:
    """One for each tool; the model is the folder with its tokenizer, as a server names it that was started from it."""
    model = ("--model", MODEL, "--tokenizer", str(work_folder() / MODEL))
    runs = {
        "sglang-bench": (str(peer("sglang").python), str(HERE / "sglang_bench.py"), *model),
        "vllm-bench": (str(vllm_python().parent / "vllm"), "bench", "serve", *model),
    }
    shape = {"name": "w", "requests": 24, "concurrency": 4, "input_len": 64, "output_len": OUTPUT_LEN}
    workloads = [Workload.model_validate({**shape, "tool": tool, "run": run}) for tool, run in runs.items()]
    return [ToolLoad(workload=one, port=port, native=False, seed=3, timeout_s=120.0) for one in workloads]


async def main() -> int:
    """Measure with each; 1 where a round is not what the server's pace allows."""
    wrong = 0
    with tempfile.TemporaryDirectory() as home, fast_server(STEP_MS) as url:
        target = LocalTarget("here", workdir=Path(home) / "work")
        for load in loads(int(url.rpartition(":")[2])):
            made = round_of(await run_tool(target, load, f"{home}/results/one.json"), load.workload.requests)
            times = f"TPOT {made.tpot_ms:.2f} ms, TTFT {made.ttft_ms:.1f} ms"
            print(f"{load.workload.tool}: {made.output_throughput:.0f} tok/s, {times}")
            for item in made.hygiene:
                print(f"  {item.level}: {item.text}")
            good = made.failed == 0 and made.output_tokens == 24 * OUTPUT_LEN and abs(made.tpot_ms - STEP_MS) < 0.25
            wrong += not good
        await target.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    install()
    sys.exit(asyncio.run(main()))
