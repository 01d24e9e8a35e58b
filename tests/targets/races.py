"""Two tunebots that want the same GPUs in the same moment, and two that resume the same launch.

`python -m tests.targets.races [N]` lets two processes race N times, half of it over SSH. Who started is told by the
servers themselves: each appends to a ledger, and the GPUs are a socket that only one can hold.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.ports import Target, TargetBusy
from tests.targets.hosts import hosts
from tests.targets.kit import PYTHON, Place, Placed, printed, spec

ROOT = Path(__file__).parents[2]
SERVER = """
import os, socket, sys, time
gpus = socket.socket(socket.AF_UNIX)
try: gpus.bind("\\0" + sys.argv[1]); word = "up"
except OSError: word = "second"
with open(sys.argv[1], "a") as ledger: ledger.write(f"{word} {os.environ['TUNEBOT_LAUNCH_ID']}\\n")
print("told", flush=True)
time.sleep(600)
"""


@dataclass
class Figures:
    """What was counted. `started` and `second` come from the ledger."""

    races: int = 0
    won: int = 0
    refused: int = 0
    shared: int = 0
    started: int = 0
    second: int = 0

    def right(self, n: int) -> bool:
        """Whether each race had one server, known to one of two, or to both where both asked for the same launch."""
        return self.races == self.started == self.won + self.shared == n and self.refused == self.won > self.second == 0


async def race(target: Target, ledger: str) -> None:
    """One of the two: reads launch ids and when to begin, tells the leader's pid, or 0 where it was refused."""
    await target.exists("~/")
    print("here", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        launch, pause = line.split()
        await asyncio.sleep(float(pause))
        try:
            started = await target.launch(spec(launch, *PYTHON, "-c", SERVER, ledger))
            print(started.pid, flush=True)
        except TargetBusy:
            print(0, flush=True)
    await target.close()


@asynccontextmanager
async def racer(place: Place, ledger: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own that races."""
    pipe = asyncio.subprocess.PIPE
    words = [sys.executable, "-m", "tests.targets.races", place.recipe, str(ledger)]
    env = {**os.environ, **place.env}
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, cwd=ROOT, env=env)
    assert await _told(process) == "here"
    try:
        yield process
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        await process.wait()


async def _told(process: asyncio.subprocess.Process) -> str:
    return (await process.stdout.readline()).decode().strip()  # type: ignore[union-attr]


async def count(target: Placed, n: int, ledger: Path) -> Figures:
    """The figures of `n` races; in each third one both ask for the same launch."""
    figures, chance = Figures(), random.Random(n)
    async with racer(target.place, ledger) as a, racer(target.place, ledger) as b:
        for index in range(n):
            ids = [f"r{index}"] * 2 if index % 3 == 2 else [f"r{index}a", f"r{index}b"]
            for process, launch in zip((a, b), ids, strict=True):
                process.stdin.write(f"{launch} {chance.uniform(0, 0.03)}\n".encode())  # type: ignore[union-attr]
            pids = [int(pid) for pid in await asyncio.gather(_told(a), _told(b))]
            figures.races += 1
            figures.won += pids.count(0) == 1
            figures.refused += pids.count(0)
            figures.shared += pids[0] == pids[1] != 0
            for launch, pid in dict(zip(ids, pids, strict=True)).items():
                if pid:
                    await printed(target, "told", launch)
                    await target.stop(launch, 0.0)
    words = [line.split()[0] for line in ledger.read_text().splitlines()]
    figures.started, figures.second = len(words), words.count("second")
    return figures


async def main(n: int) -> int:
    """Print the figures."""
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        async with hosts(Path(folder)) as (local, remote):
            for how, target, share in (("here", local, n - n // 2), ("over SSH", remote, n // 2)):
                began = time.monotonic()
                figures = await count(target, share, target.place.work.with_suffix(".ledger"))
                wrong |= not figures.right(share)
                print(f"{how}: {figures} in {time.monotonic() - began:.0f} s")
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        exec(sys.argv[1])
        asyncio.run(race(target, sys.argv[2]))  # type: ignore[name-defined]  # noqa: F821
    else:
        sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)))
