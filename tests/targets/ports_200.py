"""Launches while an old server answers on the port, or takes it with SO_REUSEPORT after ours began, and on free ports.

`python -m tests.targets.ports_200 [N]` makes N launches, each second one over SSH, and counts how often ours was taken
for ready while somebody else listened (0 is right), and how many got ready once they were alone.
"""

import asyncio
import itertools
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path

from agent.ports import Target
from tests.targets.hosts import hosts
from tests.targets.kit import PYTHON, Placed, printed, spec

SERVER = """
import os, socket, sys, time
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)   # as vLLM does, long before it listens
sock.bind(("127.0.0.1", int(sys.argv[1])))
print("bound", flush=True)
while not os.path.exists(sys.argv[2]): time.sleep(0.005)
sock.listen()
print("listening", flush=True)
while True: sock.accept()
"""
LOOKS = 4
"""How often we ask who owns the port in each state."""


@dataclass
class Figures:
    """What was counted."""

    launches: int = 0
    answered_before: int = 0
    looks: int = 0
    false_ready: int = 0
    missed: int = 0
    ready: int = 0

    def right(self, n: int) -> bool:
        """Whether each of `n` launches got ready, and none while somebody else listened."""
        return self.launches == self.ready == n and self.looks > self.false_ready == self.missed == 0

    def add(self, other: "Figures") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def listening(port: int) -> socket.socket:
    """The old server: this process, which is no part of any launch."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen()
    return sock


async def one(target: Target, launch: str, kind: str, go: Path) -> Figures:
    """One launch. `kind`: the old server is there before, comes late, or the port is free."""
    figures = Figures(launches=1)
    port = await target.free_port()
    old = listening(port) if kind == "before" else None
    figures.answered_before = await target.port_answers(port)
    leader = await target.launch(spec(launch, *PYTHON, "-c", SERVER, str(port), str(go)))
    await printed(target, "bound", launch)
    if kind == "late":
        old = listening(port)

    async def look() -> None:
        for _ in range(LOOKS if old else 0):
            owners = await target.port_owners(launch, port)
            figures.looks += 1
            figures.false_ready += bool(owners.ours) and not owners.others
            figures.missed += not owners.others

    await look()
    go.touch()
    await printed(target, "listening", launch)
    await look()
    if old:
        old.close()
    owners = await target.port_owners(launch, port)
    figures.ready = owners.ours == (leader.pid,) and not owners.others
    await target.stop(launch, 0.0)
    return figures


async def count(target: Placed, n: int, root: Path) -> Figures:
    """The figures of `n` launches."""
    total = Figures()
    for index, kind in zip(range(n), itertools.cycle(("before", "late", "free")), strict=False):
        total.add(await one(target, f"l{index}", kind, root / f"go-{target.place.work.name}-{index}"))
    return total


async def main(n: int) -> int:
    """Print the figures."""
    began, total = time.monotonic(), Figures()
    with tempfile.TemporaryDirectory() as folder:
        async with hosts(Path(folder)) as (local, remote):
            for target, share in ((local, n - n // 2), (remote, n // 2)):
                total.add(await count(target, share, Path(folder)))
    print(f"{total} in {time.monotonic() - began:.0f} s")
    return int(not total.right(n))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)))
