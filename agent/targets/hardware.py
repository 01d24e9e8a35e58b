"""What of a host decides how its GPUs talk and how fast they may run: driver, kernel, PCIe, power. Read, never changed.

Every answer may be empty: then nobody says. All commands are background ones that need no root.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.core.model import Host
from agent.ports import Target, TargetUnusable
from agent.targets.gpus import number_of
from agent.text import decode

_LIMIT_S = 20.0
_MOST_TEXT = 1 << 18
_QUERY = ("index", "pci.bus_id", "pcie.link.gen.max", "pcie.link.width.current", "power.limit")
BALANCING = "/proc/sys/kernel/numa_balancing"

Iommu = Literal["off", "passthrough", "translated"]
_IOMMU: Mapping[str, Iommu] = {"identity": "passthrough", "DMA": "translated", "DMA-FQ": "translated"}
"""Words of /sys/kernel/iommu_groups/N/type (Documentation/ABI/testing/sysfs-kernel-iommu_groups of Linux)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU on its bus, by its index. `None` is what nobody says.

    `generation` is the newest that GPU and slot can both do (an idle link falls back to the first), `lanes` are in
    use now. `node` is the NUMA node of its slot.
    """

    index: int
    address: str
    generation: int | None
    lanes: int | None
    power_limit_w: float | None
    iommu: Iommu | None = None
    node: int | None = None


async def driver_options(target: Target) -> dict[str, str]:
    """The options of the NVIDIA driver by name, without their quotes."""
    pairs = (
        line.partition(":")[::2] for line in (await _said(target, "cat", "/proc/driver/nvidia/params")).split("\n")
    )
    return {name.strip(): value.strip(' "') for name, value in pairs if value}


async def kernel_arguments(target: Target) -> tuple[str, ...]:
    """The words of the kernel's command line."""
    return tuple((await _said(target, "cat", "/proc/cmdline")).split())


async def numa_balancing(target: Target, host: Host) -> bool | None:
    """Whether the kernel moves pages between NUMA nodes by itself."""
    value = (await _files(target, host, [BALANCING])).get(BALANCING, "")
    return value != "0" if value.isdigit() else None


async def cards(target: Target, host: Host) -> tuple[Card, ...]:
    """The GPUs of a host on their buses."""
    query = ("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in (await _said(target, *query)).split("\n")]
    found = [row for row in rows if len(row) == len(_QUERY) and row[0].isdigit()]
    folders = {row[1]: _folder(row[1]) for row in found}
    told = await _files(target, host, [f"{at}/{name}" for at in folders.values() if at for name in _OF_A_SLOT])
    return tuple(_card(row, folders[row[1]], told) for row in found)


async def bar1_mib(target: Target) -> dict[str, int]:
    """The size of the window through which others reach each GPU's memory (BAR1), by the GPU's address."""
    found, address, inside = {}, "", False
    for line in (await _said(target, "nvidia-smi", "-q", "-d", "MEMORY")).split("\n"):
        if match := re.fullmatch(r"GPU ([0-9A-Fa-f:.]+)", line.strip()):
            address = match[1].upper()
        elif line.strip().endswith("Memory Usage"):
            inside = line.strip().startswith("BAR1")
        elif inside and (match := re.fullmatch(r"Total *: *([0-9]+) MiB", line.strip())):
            found[address] = int(match[1])
    return found


async def peer_access(target: Target, indexes: Sequence[int]) -> dict[tuple[int, int], str]:
    """What the driver says of reads between each two of these GPUs: OK, CNS, NS and the like. OK is no proof."""
    rows: dict[int, list[str]] = {}
    for line in (await _said(target, "nvidia-smi", "topo", "-p2p", "r")).split("\n"):
        first, *cells = [cell.strip() for cell in line.split("\t")]
        if match := re.fullmatch(r"GPU([0-9]+)", first):
            rows[int(match[1])] = cells
    order = [index for index in rows if len(rows[index]) >= len(rows)]
    if not set(indexes) <= set(order):
        return {}
    return {(a, b): rows[a][order.index(b)] for a in indexes for b in indexes if a != b}


async def redirecting_bridges(target: Target, host: Host) -> int | None:
    """How many PCIe bridges send what peers write to each other up to the root (ACS). Takes root to read."""
    text = "" if host.simulated else await _said(target, "sh", "-c", "lspci -vv 2>/dev/null | grep ACSCtl:")
    return text.count("ReqRedir+") if "ACSCtl:" in text else None


_OF_A_SLOT = ("iommu_group/type", "numa_node")


def _card(row: Sequence[str], folder: str, told: Mapping[str, str]) -> Card:
    generation, lanes = (int(cell) if cell.isdigit() else None for cell in row[2:4])
    kind, node = (told.get(f"{folder}/{name}", "") for name in _OF_A_SLOT)
    # A device without a group is one whose transfers nothing translates.
    iommu = _IOMMU.get(kind) if kind else "off" if node else None
    return Card(
        index=int(row[0]),
        address=row[1].upper(),
        generation=generation,
        lanes=lanes,
        power_limit_w=number_of(row[4]),
        iommu=iommu,
        node=int(node) if node.isdigit() else None,
    )


def _folder(address: str) -> str:
    """Where the kernel has a device that nvidia-smi calls 00000000:C1:00.0."""
    match = re.fullmatch(r"([0-9A-Fa-f]+):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", address)
    return f"/sys/bus/pci/devices/{int(match[1], 16):04x}:{match[2].lower()}" if match else ""


async def _files(target: Target, host: Host, paths: Sequence[str]) -> dict[str, str]:
    """The first line of each file that can be read. A simulated host has none: they would be this machine's."""
    if host.simulated or not paths:
        return {}
    lines = (await _said(target, "grep", "-sHm1", "", *paths, may_miss=True)).split("\n")
    return dict(_named(lines, paths))


def _named(lines: Sequence[str], paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        for path in paths:
            if line.startswith(f"{path}:"):
                yield path, line[len(path) + 1 :].strip()


async def _said(target: Target, *argv: str, may_miss: bool = False) -> str:
    """What a command prints; nothing where it fails, unless what it looks for `may_miss`."""
    try:
        result = await target.run(argv, timeout_s=_LIMIT_S, background=True, hide_gpus=True)
    except TargetUnusable:
        return ""
    ended = result.exit_code == 0 or (may_miss and result.exit_code is not None)
    return decode(result.output, _MOST_TEXT) if ended else ""
