"""Speed and memory of the watch on one core, beside `grep -c` of one pattern: `python -m tests.bench_watch [MIB]`.

The lines are those of a busy server with some of a start in between: 115 bytes on average. Exit code 1 where it is
slower than 150,000 lines a second of CPU time, or takes 150 MB or more.
"""

# ruff: noqa: E501 - log lines are as long as servers write them

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent.explain import diagnose

WANTED_LINES_S, LIMIT_MB = 150_000, 150
LINES = {
    "[2026-11-29 23:23:32 TP0] Decode batch, #running-req: 16, #token: 1136, token usage: 0.00, cuda graph: True, "
    "gen throughput (token/s): 1093.91, #queue-req: 0": 30,
    '[2026-11-29 23:23:32] INFO:     127.0.0.1:51090 - "POST /v1/completions HTTP/1.1" 200 OK': 30,
    "[2026-11-29 23:23:32 TP3] Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0": 20,
    "[2026-11-29 23:23:32 TP2] Using default MoE kernel config. Performance might be sub-optimal! No file for E=32": 5,
    "[2026-11-29 23:23:32 TP2] Ignore import error when loading sglang.srt.models.x: No module named 'helion'": 2,
    "Loading safetensors checkpoint shards:  50% Completed | 81/163 [01:15<00:00,  2.15it/s]": 2,
    "node0:75205:75205 [1] NCCL INFO Channel 00/0 : 4[4] -> 3[3] via P2P/IPC": 6,
    "[2026-11-29 23:23:32 TP1] KV cache event: block 4711 of sequence 17 was moved to the host, 131072 bytes in 0.41 ms": 5,
}


def write_log(path: Path, mib: int) -> int:
    """Write the lines in random order; how many there are."""
    chance, lines = random.Random(1), 0
    block = ("\n".join(chance.choices(list(LINES), list(LINES.values()), k=20_000)) + "\n").encode()
    with path.open("wb") as out:
        while out.tell() < mib << 20:
            out.write(block)
            lines += 20_000
    return lines


def main(mib: int) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        lines = write_log(path, mib)
        size = path.stat().st_size
        with path.open("rb") as log:
            began = time.process_time()
            diagnose(iter(lambda: log.read(1 << 18), b""), "sglang")
            seconds = time.process_time() - began
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["grep", "-c", "CUDA error", str(path)], check=False, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    grep = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{size / (1 << 20):.0f} MiB, {lines} lines of {size / lines:.0f} bytes, CPU time of one core")
    print(
        f"watch    {lines / seconds:>12,.0f} lines/s  {size / seconds / 1e6:>8.0f} MB/s   {memory:.0f} MB of memory at most"
    )
    print(f"grep -c  {lines / max(grep, 1e-3):>12,.0f} lines/s  {size / max(grep, 1e-3) / 1e6:>8.0f} MB/s")
    return 0 if lines / seconds >= WANTED_LINES_S and memory < LIMIT_MB else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 64))
