"""How long a long recording takes to open and to seek: `python -m tests.bench_replay [EVENTS]`, or `make bench-replay`.

A session of 200 experiments with their research, nine rounds each, and in between the progress of every load and of the
tasks beside it, until there are so many events. It is written as a journal, then opened in a fresh process. Exit code 1
where opening takes 2 s or more, one in twenty seeks 100 ms or more, or it needs 500 MB or more. Times are CPU time: a
recording is read by one thread, and other work on the machine says nothing of it.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent.journal.codec import encode
from agent.journal.journal import FILE, _line, read_journal
from agent.replay import Recording
from tests.core.conftest import World, playbook
from tests.test_replay import with_progress

EVENTS, EXPERIMENTS, SEEKS = 100_000, 200, 200
OPEN_S, SEEK_MS, MEMORY_MB = 2.0, 100.0, 500.0


def write_long_journal(folder: Path, events: int, experiments: int = EXPERIMENTS) -> None:
    """The journal of a session of so many events, nearly all of them progress."""
    research = [{"grep": {"pattern": f"p{n}", "in": ["sglang:a.py"]}} for n in range(3)]
    world = World(fails={f"e{n}": "CUDA out of memory" for n in range(5, experiments, 9)})
    world.play(
        playbook(
            {"id": "base"},
            *({"id": f"e{n}", "args": {"flag": str(n)}, "research": research} for n in range(1, experiments)),
            workloads=[{"name": name, "rounds": 3} for name in ("single", "eight", "many")],
        )
    )
    story = with_progress(world.events, events - len(world.events))
    with (folder / FILE).open("wb") as file:
        file.writelines(_line(seq, encode(event)) for seq, event in enumerate(story, 1))


def opened(folder: Path) -> dict[str, float]:
    """Open a recording as the command does, and go to random places; seconds, milliseconds and megabytes."""
    began = time.process_time()
    events = read_journal(folder)
    read = time.process_time()
    recording = Recording(events)
    del events
    marked = time.process_time()
    recording.state_at(recording.last)
    folded = time.process_time()
    chance, seeks = random.Random(2), []
    for index in [chance.randrange(recording.last + 1) for _ in range(SEEKS)]:
        before = time.process_time()
        recording.state_at(index)
        seeks.append((time.process_time() - before) * 1000)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {
        "events": len(recording.events),
        "decisions": sum(mark.kind in ("verdict", "dead end") for mark in recording.marks),
        "mib": (folder / FILE).stat().st_size / (1 << 20),
        "read_s": read - began,
        "mark_s": marked - read,
        "fold_s": folded - marked,
        "open_s": folded - began,
        "seek_p50_ms": sorted(seeks)[SEEKS // 2],
        "seek_p95_ms": sorted(seeks)[SEEKS * 95 // 100],
        "seek_max_ms": max(seeks),
        "memory_mb": int(peak.split()[1]) / 1024,
    }


def main(events: int) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        write_long_journal(Path(folder), events)
        run = subprocess.run([sys.executable, "-m", "tests.bench_replay", folder], capture_output=True, check=True)
    told = json.loads(run.stdout)
    print(f"{told['events']:,.0f} events, {told['mib']:.0f} MiB, {told['decisions']:.0f} verdicts")
    print(
        f"open  {told['open_s']:.2f} s: read {told['read_s']:.2f}, marks and clock {told['mark_s']:.2f}, "
        f"fold {told['fold_s']:.2f}"
    )
    print(f"seek  p50 {told['seek_p50_ms']:.1f} ms, p95 {told['seek_p95_ms']:.1f} ms, max {told['seek_max_ms']:.1f} ms")
    print(f"memory {told['memory_mb']:.0f} MB at most")
    good = told["open_s"] < OPEN_S and told["seek_p95_ms"] < SEEK_MS and told["memory_mb"] < MEMORY_MB
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:] and Path(sys.argv[1]).is_dir():
        print(json.dumps(opened(Path(sys.argv[1]))))
    else:
        sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else EVENTS))
