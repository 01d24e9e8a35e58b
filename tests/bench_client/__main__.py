"""tunebot's load generator beside the field's: tokens/s and CPU on the same server with the same load.

    python -m tests.bench_client                    # all that is missing: 20 minutes; writes figures.json and README.md
    python -m tests.bench_client --only AIPerf      # the missing runs of one client; may be given again
    python -m tests.bench_client --repeats 3        # once more of each than there is
    python -m tests.bench_client --fresh            # forget earlier runs (of --only's clients) and measure again
    python -m tests.bench_client --quick            # a small load, once, in two minutes; keeps nothing
    python -m tests.bench_client --table            # the table of figures.json

The server (server.py) has core 0, the client core 1. Clients take turns, so that whatever slows the machine hits all.
Each finished run is kept in <cache>/bench-client/runs.jsonl at once: after an interruption the rest is measured.
Nothing else should run on the machine meanwhile.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from tests.bench_client.clients import CLIENTS, PACED, Client, Load, install, work_folder
from tests.bench_client.figures import OUTPUT_LEN, PACED_TOKENS_PER_S, block, figures, with_block
from tests.bench_client.runs import Run, RunError, fast_server, line_of, measure, runs_of
from tests.real.setup_vllm import SetupError

FIGURES = Path(__file__).parent / "figures.json"
README = Path(__file__).parents[2] / "README.md"
PACED_CONCURRENCY = 16


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    sizes: tuple[int, int]
    concurrencies: tuple[int, ...]
    paced_sizes: tuple[int, int]
    repeats: int


REPEATS = 2
WHOLE = Scale(sizes=(192, 1920), concurrencies=(16, 64, 256), paced_sizes=(64, 320), repeats=REPEATS)
QUICK = Scale(sizes=(48, 192), concurrencies=(16,), paced_sizes=(32, 64), repeats=1)


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


def plan(scale: Scale, clients: Sequence[Client]) -> Iterator[tuple[str, Client, int, int, int]]:
    """Kind, client, requests, concurrency and repeat of each run; the clients in turn."""
    for repeat in range(scale.repeats):
        for concurrency, client, requests in product(scale.concurrencies, clients, scale.sizes):
            yield "full", client, max(requests, concurrency), concurrency, repeat
        for requests in scale.paced_sizes:
            for client in clients:
                if client.name in PACED:
                    yield "paced", client, requests, PACED_CONCURRENCY, repeat


def measure_all(scale: Scale, clients: Sequence[Client], done: list[Run], kept: Path | None) -> list[str]:
    """Measure what is missing in `done` and add it there; what went wrong."""
    todo = list(plan(scale, clients))
    keys = {run.key for run in done}
    wrong: list[str] = []
    with fast_server() as full, fast_server(1000 * PACED_CONCURRENCY / PACED_TOKENS_PER_S) as paced:
        for number, (kind, client, requests, concurrency, repeat) in enumerate(todo, 1):
            if (client.name, client.version, kind, requests, concurrency, repeat) in keys:
                continue
            url = full if kind == "full" else paced
            try:
                run = measure(client, Load(url, requests, concurrency, OUTPUT_LEN), kind, repeat)
            except RunError as error:
                wrong.append(str(error))
                print(f"[{number}/{len(todo)}] {error}", file=sys.stderr, flush=True)
                continue
            done.append(run)
            if kept:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(line_of(run))
            speed = requests * OUTPUT_LEN / run.duration_s
            line = f"{kind} {concurrency:4} x {requests:5}: {speed:8,.0f} tok/s  {run.cpu_s:6.2f} s CPU"
            print(f"[{number}/{len(todo)}] {client.name:22} {line}  {run.wall_s:5.1f} s", file=sys.stderr, flush=True)
    return wrong


def main() -> int:
    """Read the arguments, measure, print the table; 1 where a client failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[client.name for client in CLIENTS], help="these clients")
    parser.add_argument("--quick", action="store_true", help="a small load, once")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"how often (default: {REPEATS})")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--table", action="store_true", help="print what figures.json says")
    options = parser.parse_args()
    if options.table:
        print(block(json.loads(FIGURES.read_text(encoding="utf-8"))), end="")
        return 0
    try:
        install()
    except SetupError as error:
        print(f"bench_client: {error}\nhint: {error.hint}", file=sys.stderr)
        return 1
    clients = [client for client in CLIENTS if not options.only or client.name in options.only]
    if options.quick:
        runs: list[Run] = []
        wrong = measure_all(QUICK, clients, runs, None)
    else:
        kept = work_folder() / "runs.jsonl"
        runs = runs_of(kept.read_text(encoding="utf-8")) if kept.exists() else []
        if options.fresh:
            runs = [run for run in runs if run.client not in {client.name for client in clients}]
        kept.write_text("".join(map(line_of, runs)), encoding="utf-8")
        wrong = measure_all(replace(WHOLE, repeats=options.repeats), clients, runs, kept)
    order = [client.name for client in CLIENTS]
    made = figures(sorted(runs, key=lambda run: order.index(run.client)), machine())
    if not options.quick:
        FIGURES.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        README.write_text(with_block(README.read_text(encoding="utf-8"), made), encoding="utf-8")
    print(block(made), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("bench_client: interrupted; what is measured is kept, the next run goes on", file=sys.stderr)
        sys.exit(130)
