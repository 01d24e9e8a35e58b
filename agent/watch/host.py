"""What the host says of a load: the CPU time and the states of its processes, compilers among them, GPU memory."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.ports import Process, Target, TargetUnusable
from agent.text import decode

_COMPILERS = frozenset(
    {"ninja", "nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "cc1plus", "cc1", "gcc", "g++", "c++", "cc", "clang",
     "clang++", "hipcc", "ld", "collect2", "as", "cmake", "cuobjdump"}
)  # fmt: skip
_RANK = re.compile(r"_TP(\d+)|\bTP(\d+)|rank[=_ ](\d+)", re.IGNORECASE)
_STAT = re.compile(r"^(\d+) \((.*)\) (\S) (.*)$")
_LIMIT_S = 5.0
_TICKS = 100
"""Clock ticks a second: the same on every Linux that runs these servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One process at one moment."""

    pid: int
    name: str
    title: str
    state: str
    cpu_s: float

    @property
    def rank(self) -> int | None:
        """The rank that its title tells."""
        found = _RANK.search(self.title)
        return int(next(filter(None, found.groups()))) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """All processes of a launch at one moment, and the GPU memory in use in MiB where it is known."""

    processes: tuple[Look, ...]
    gpu_mib: int | None = None

    @property
    def cpu_s(self) -> float:
        """The CPU time of all processes so far."""
        return sum(look.cpu_s for look in self.processes)

    @property
    def compilers(self) -> tuple[str, ...]:
        """Names of compilers that run."""
        return tuple(sorted({look.name for look in self.processes if look.name in _COMPILERS}))

    @property
    def stopped(self) -> tuple[Look, ...]:
        """Processes that somebody stopped (SIGSTOP, a debugger)."""
        return tuple(look for look in self.processes if look.state in ("T", "t"))


async def activity(target: Target, processes: Iterable[Process]) -> Activity | None:
    """Ask the target about the processes of a launch; None where it cannot say."""
    paths = [f"/proc/{process.pid}/{name}" for process in processes for name in ("stat", "cmdline")][:400]
    if not paths:
        return None
    try:
        result = await target.run(["grep", "-aH", "", *paths], timeout_s=_LIMIT_S)
    except TargetUnusable:
        return None
    return Activity(processes=tuple(_looks(decode(result.output.replace(b"\0", b" "), 1 << 20))))


def _looks(text: str) -> Iterable[Look]:
    titles: dict[int, str] = {}
    stats: dict[int, tuple[str, str, float]] = {}
    for line in text.splitlines():
        path, _, rest = line.partition(":")
        pid = path.split("/")[2] if path.startswith("/proc/") else ""
        if not pid.isdigit():
            continue
        if path.endswith("/cmdline"):
            titles[int(pid)] = rest.strip()
        elif found := _STAT.match(rest):
            fields = found[4].split()
            stats[int(pid)] = (found[2], found[3], (int(fields[10]) + int(fields[11])) / _TICKS)
    for number, (name, state, cpu_s) in stats.items():
        yield Look(pid=number, name=name, title=titles.get(number, name), state=state, cpu_s=cpu_s)
