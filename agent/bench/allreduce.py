"""tunebot nccl-allreduce: seconds of one all-reduce, by the bytes of its message, as decoding calls it.

Runs on the target with the server's own Python, whose PyTorch and NCCL are those that decode; nothing of tunebot is
there. One process a GPU; the calls are captured in a CUDA graph, as a server's decode steps are. One line is JSON:
`{"sizes": {"14336": {"seconds": 3.1e-05}}, "ranks": 8}`, each the median over repetitions on the slowest rank.
"""

import argparse
import importlib
import json
import multiprocessing
import socket
import sys
import time
from statistics import median
from typing import Any

CALLS = 122
"""All-reduces in a graph: about as many as a step of a large model makes."""

REPEATS = 15
GRACE_S = 3.0


def _rank(rank: int, ranks: int, port: int, sizes: "list[int]") -> None:
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    torch.cuda.set_device(rank)
    where = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("nccl", init_method=where, rank=rank, world_size=ranks)
    seconds = {str(size): {"seconds": _seconds(torch, dist, size)} for size in sizes}
    if rank == 0:
        sys.stdout.write(json.dumps({"sizes": seconds, "ranks": ranks}) + "\n")
        sys.stdout.flush()
    dist.destroy_process_group()


def _seconds(torch: Any, dist: Any, size: int) -> float:
    """Of one call, the median over replays of the graph; the slowest rank's."""
    message = torch.zeros(size // 2, dtype=torch.bfloat16, device="cuda")
    for _ in range(3):
        dist.all_reduce(message)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(CALLS):
            dist.all_reduce(message)
    graph.replay()
    times = []
    for _ in range(REPEATS):
        dist.barrier(device_ids=[torch.cuda.current_device()])
        torch.cuda.synchronize()
        began = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) / CALLS)
    slowest = torch.tensor([median(times)], dtype=torch.float64, device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest.item())


def main() -> int:
    """Measure with as many processes as ranks; 1 where one of them failed, once the others are ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("sizes", type=int, nargs="+")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # CUDA is not touched before the fork: each child imports PyTorch itself.
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_rank, args=(rank, options.ranks, port, options.sizes)) for rank in range(options.ranks)
    ]
    for process in processes:
        process.start()
    until = float("inf")
    while any(process.is_alive() for process in processes):
        for process in processes:
            process.join(0.1)
        if any(process.exitcode for process in processes):
            # The others wait for it in vain, unless they are about to say why they failed too.
            until = min(until, time.monotonic() + GRACE_S)
        if time.monotonic() > until:
            for process in processes:
                process.terminate()
    return 1 if any(process.exitcode for process in processes) else 0


if __name__ == "__main__":
    sys.exit(main())
