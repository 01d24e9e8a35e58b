"""Who holds the memory of a target's GPUs, and how the GPUs are connected."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from agent.core.model import Gpu
from agent.ports import CommandResult, Target
from agent.targets.gpus import smi_lines
from agent.text import decode, one_line

_APPS = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
_MEMORY = "--query-gpu=index,uuid,memory.used"
_PLAIN = "--format=csv,noheader,nounits"
_LIMIT_S = 10.0
_POLL_S = 0.25
_OUTPUT_LIMIT = 1 << 16
_UNLISTED_MIB = 1024
"""Less than that is used by drivers and desktops without anybody computing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One process on one GPU, by index. `pid` is None for memory that nvidia-smi counts to no process.

    `name` and `user` are empty where nobody can say; `used_mib` is 0 then.
    """

    gpu: int
    pid: int | None
    name: str
    user: str
    used_mib: int

    def __str__(self) -> str:
        size = f"{self.used_mib / 1024:.1f} GiB of GPU {self.gpu}" if self.used_mib else f"GPU {self.gpu}"
        if self.pid is None:
            return f"{size} used by no process that nvidia-smi lists"
        return f"{size} held by pid {self.pid} ({self.name or 'unknown'}{f' of {self.user}' if self.user else ''})"


async def holders(target: Target, gpus: Sequence[Gpu]) -> tuple[Holder, ...]:
    """Who holds memory of these GPUs, by GPU and pid; nobody where there are no GPUs. Raises TargetUnusable."""
    if not gpus:
        return ()
    apps = [line.split(", ") for line in await _smi(target, _APPS, _PLAIN) if line.startswith("GPU-")]
    used: dict[int, int] = {}
    index_of: dict[str, int] = {}
    for row in (line.split(", ") for line in await _smi(target, _MEMORY, _PLAIN)):
        if len(row) == 3 and row[0].isdigit():
            index_of[row[1]], used[int(row[0])] = int(row[0]), _number(row[2])
    users = await _users(target, sorted({app[1] for app in apps if app[1].isdigit()}))
    found = [
        Holder(
            gpu=index_of[app[0]],
            pid=int(app[1]),
            name=one_line(", ".join(app[2:-1])).strip("[]"),
            user=users.get(app[1], ""),
            used_mib=_number(app[-1]),
        )
        for app in apps
        if app[0] in index_of and app[1].isdigit()
    ]
    for index, total in used.items():
        hidden = total - sum(holder.used_mib for holder in found if holder.gpu == index)
        if hidden >= _UNLISTED_MIB:
            found.append(Holder(gpu=index, pid=None, name="", user="", used_mib=hidden))
    ours = {gpu.index for gpu in gpus}
    return tuple(sorted((h for h in found if h.gpu in ours), key=lambda h: (h.gpu, h.pid or 0)))


async def settled(target: Target, gpus: Sequence[Gpu], within_s: float) -> tuple[Holder, ...]:
    """Wait until nobody holds memory of these GPUs: drivers free it late. Who does after `within_s`, if anybody.

    Raises TargetUnusable.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while True:
        found = await holders(target, gpus)
        if not found or loop.time() >= end:
            return found
        await asyncio.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The newest CUDA that the driver runs ("" where it does not say), and how each pair of GPUs is connected.

    `links` has a row and a column for each GPU, in their order, in the words of `nvidia-smi topo -m`: NV18, PIX, SYS.
    """

    cuda: str
    links: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        pairs = Counter(self.links[a][b] for a, b in combinations(range(len(self.links)), 2))
        words = ", ".join(f"{count} x {link}" for link, count in pairs.most_common())
        return f"pairs of GPUs: {words}" if words else "no pairs of GPUs"


async def wiring(target: Target, gpus: Sequence[Gpu]) -> Wiring:
    """How these GPUs are connected. Raises TargetUnusable."""
    cuda = re.search(r"CUDA (?:UMD )?Version *: *([0-9.]+)", "\n".join(await _smi(target)))
    rows = {}
    for line in await _smi(target, "topo", "-m"):
        first, *cells = [cell.strip() for cell in line.split("\t")]
        if match := re.fullmatch(r"GPU([0-9]+)", first):
            rows[int(match[1])] = cells
    # Columns are in the order of the rows; a GPU that the table does not have is connected by nobody knows what.
    order = list(rows)
    where = [(rows[gpu.index], order.index(gpu.index)) for gpu in gpus if gpu.index in rows]
    links = tuple(tuple(row[column] for _, column in where) for row, _ in where)
    return Wiring(cuda=cuda[1] if cuda else "", links=links)


async def _smi(target: Target, *words: str) -> list[str]:
    return smi_lines(await _run(target, "nvidia-smi", *words), _LIMIT_S)


async def _run(target: Target, *argv: str) -> CommandResult:
    """The command's result; where the link breaks meanwhile it is run again."""
    while True:
        result = await target.run(argv, timeout_s=_LIMIT_S)
        if result.exit_code is not None or result.timed_out:
            return result


async def _users(target: Target, pids: Sequence[str]) -> dict[str, str]:
    if not pids:
        return {}
    # It fails for those that have just ended, and says the others.
    result = await _run(target, "stat", "-c", "%n %U", *(f"/proc/{pid}" for pid in pids))
    rows = [line.split() for line in decode(result.output, _OUTPUT_LIMIT).splitlines() if line.startswith("/proc/")]
    return {row[0].rpartition("/")[2]: row[1] for row in rows if len(row) == 2}


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0
