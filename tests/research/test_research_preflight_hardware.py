"""Checks of how a host lets its GPUs talk and run: what its commands and files print, as a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent.core.model import Finding, LaunchConfig
from agent.playbook.preflight_entries import PreflightEntry
from agent.ports import CommandResult, TargetUnusable
from agent.research.common import ResearchError
from agent.research.preflight import preflight
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.targets import hardware
from agent.targets.local import LocalTarget

from .conftest import BLACKWELLS

TWO = replace(BLACKWELLS, gpus=BLACKWELLS.gpus[:2])
DEVICES = "/sys/bus/pci/devices"
FILES = {
    f"{DEVICES}/0000:11:00.0/iommu_group/type": "identity",
    f"{DEVICES}/0000:11:00.0/numa_node": "0",
    f"{DEVICES}/0000:c1:00.0/iommu_group/type": "identity",
    f"{DEVICES}/0000:c1:00.0/numa_node": "1",
    hardware.BALANCING: "1",
}
CARDS = "0, 00000000:11:00.0, 5, 16, 600.00\n1, 00000000:C1:00.0, 5, 8, 450.00\n"
BAR1 = """
==============NVSMI LOG==============

GPU 00000000:11:00.0
    FB Memory Usage
        Total                             : 97887 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 1 MiB
    Conf Compute Protected Memory Usage
        Total                             : 0 MiB

GPU 00000000:C1:00.0
    BAR1 Memory Usage
        Total                             : 256 MiB
"""
PEERS = " \tGPU0\tGPU1\t\n GPU0\t X \tOK\t\n GPU1\tNS\t X \t\n\nLegend:\n\n  X    = Self\n"
ACS = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n\t\tACSCtl:\tSrcValid- ReqRedir- CmpltRedir-\n"
PARAMS = 'EnableResizableBar: 1\nRegistryDwords: "ForceP2P=0x11;RMForceP2PType=1"\nX: ""\n'
HOST: Mapping[str, str] = {
    "cat /proc/driver/nvidia/params": PARAMS,
    "cat /proc/cmdline": "BOOT_IMAGE=/vmlinuz ro iommu=pt pci=noacs,realloc nosmt\n",
    "nvidia-smi --query-gpu": CARDS,
    "nvidia-smi -q": BAR1,
    "nvidia-smi topo": PEERS,
    "lspci": ACS,
}
GARBLED = {begin: "[N/A], [N/A]\nGPU0\tGPU1\n: :\n" for begin in HOST if "cmdline" not in begin}
"""Whatever the kernel's command line holds, it is words."""


class Machine:
    """A host whose commands print this, by how they begin; what is not there cannot be started."""

    def __init__(self, said: Mapping[str, str], files: Mapping[str, str]) -> None:
        self.said, self.files = said, files

    async def run(self, argv: Sequence[str], **how: Any) -> CommandResult:
        assert how["background"] and how["hide_gpus"] and how["timeout_s"] <= 60, "it is in nobody's way"
        if argv[0] == "grep":
            lines = [f"{path}:{self.files[path]}\n" for path in argv if path in self.files]
            return CommandResult(exit_code=2 if len(lines) < len(argv) - 3 else 0, output="".join(lines).encode())
        text = next((text for begin, text in self.said.items() if begin in " ".join(argv)), None)
        if text is None:
            raise TargetUnusable(f"{argv[0]} is not there")
        return CommandResult(exit_code=0 if text else 1, output=text.encode())


async def look(entry: Mapping[str, Any], machine: Any, tp: int = 2, simulated: bool = False) -> Finding:
    """What a check says; unknown with the reason where it cannot tell."""
    config = LaunchConfig(
        kind="sglang",
        command=("python3",),
        args={"tp": str(tp)},
        env={},
        source={},
        version=None,
        load_timeout_s=60.0,
    )
    adapter: TypeAdapter[PreflightEntry] = TypeAdapter(PreflightEntry)
    check, host = adapter.validate_python(entry), replace(TWO, simulated=simulated)
    try:
        return await preflight(
            Sources(machine, {}, lambda text: text), check, host, config, FlagResolver().table, lambda _: None
        )
    except ResearchError as error:
        return Finding(summary=str(error), outcome="unknown")


DWORDS = "the driver has RegistryDwords=ForceP2P=0x11;RMForceP2PType=1"
NO_EFFECT, FAILS, FINE = "no-effect", "fails", "fine"


@pytest.mark.parametrize(
    ("entry", "tp", "outcome", "summary"),
    [
        ({"driver-option": {"name": "RegistryDwords", "contains": "ForceP2P"}}, 2, FINE, DWORDS),
        (
            {"driver-option": {"name": "RegistryDwords", "contains": "Grdma"}},
            2,
            NO_EFFECT,
            f"{DWORDS}: it must hold Grdma",
        ),
        (
            {"driver-option": {"name": "X", "one_of": ["1", "2"]}},
            2,
            NO_EFFECT,
            "the driver has no X: it must be 1 or 2",
        ),
        (
            {"driver-option": {"name": "EnableResizableBar", "one_of": ["1"]}},
            2,
            FINE,
            "the driver has EnableResizableBar=1",
        ),
        (
            {"driver-option": {"name": "Y", "one_of": ["1"]}},
            2,
            "unknown",
            "/proc/driver/nvidia/params says nothing of Y",
        ),
        ({"kernel-arg": {"name": "iommu", "one_of": ["off", "pt"]}}, 2, FINE, "the kernel has iommu=pt"),
        ({"kernel-arg": {"name": "iommu", "not_in": ["pt"]}}, 2, FAILS, "the kernel has iommu=pt: it must not be pt"),
        ({"kernel-arg": {"name": "pci", "one_of": ["noacs"]}}, 2, FINE, "the kernel has pci=noacs,realloc"),
        ({"kernel-arg": {"name": "nosmt", "one_of": [""]}}, 2, FINE, "the kernel has nosmt"),
        (
            {"kernel-arg": {"name": "pcie_aspm", "one_of": ["off"], "otherwise": "no-effect"}},
            2,
            NO_EFFECT,
            "the kernel has no argument pcie_aspm: it must be off",
        ),
        ({"kernel-arg": {"name": "pcie_aspm", "not_in": ["force"]}}, 2, FINE, "the kernel has no argument pcie_aspm"),
        ({"pcie-link": {"generation": 5, "lanes": 8}}, 2, FINE, "2 GPUs have PCIe 5 x16, PCIe 5 x8"),
        ({"pcie-link": {"lanes": 16}}, 2, NO_EFFECT, "GPU 1 has PCIe 5 x8, not 16 lanes"),
        ({"pcie-link": {"lanes": 16}}, 1, FINE, "1 GPU has PCIe 5 x16"),
        (
            {"pcie-link": {"generation": 6, "lanes": 32}},
            1,
            NO_EFFECT,
            "GPU 0 has PCIe 5 x16, not generation 6 and 32 lanes",
        ),
        ({"power-limit": {"at_least_w": 500}}, 2, NO_EFFECT, "GPU 1 is limited to 450 W, not to 500 W or more"),
        ({"power-limit": {"at_most_w": 500}}, 2, NO_EFFECT, "GPU 0 is limited to 600 W, not to 500 W or less"),
        ({"power-limit": {"at_least_w": 450}}, 2, FINE, "2 GPUs have a power limit of 600 W or 450 W"),
        ({"numa": {"nodes": 1}}, 2, NO_EFFECT, "2 GPUs on NUMA node 0 and 1: 2 nodes, not 1"),
        ({"numa": {"nodes": 1}}, 1, FINE, "1 GPU on NUMA node 0"),
        (
            {"numa": {"balancing": False}},
            2,
            NO_EFFECT,
            "NUMA balancing is on: echo 0 > /proc/sys/kernel/numa_balancing",
        ),
        ({"numa": {"balancing": True, "nodes": 2}}, 2, FINE, "NUMA balancing is on; 2 GPUs on NUMA node 0 and 1"),
        ({"peers": {"iommu": ["off", "passthrough"]}}, 2, FINE, "IOMMU passthrough"),
        ({"peers": {"iommu": ["off"]}}, 2, FAILS, "the IOMMU is passthrough for GPU 0: it must be off"),
        ({"peers": {"access": True}}, 2, FAILS, "the driver says NS for GPU 1 reading GPU 0"),
        ({"peers": {"access": False}}, 2, FINE, "the driver says NS for GPU 1 reading GPU 0"),
        ({"peers": {"access": True}}, 1, "unknown", "one GPU has no peers"),
        ({"peers": {"bar1": "64GiB"}}, 2, FAILS, "GPU 1 has a BAR1 of 0.2 GiB, not 64.0 GiB"),
        ({"peers": {"bar1": "64GiB"}}, 1, FINE, "BAR1 128.0 GiB"),
        ({"peers": {"acs": False}}, 2, FAILS, "1 PCIe bridge sends peers' transfers up to the root (ACS)"),
    ],
)
async def test_what_a_host_prints_decides(entry: Any, tp: int, outcome: str, summary: str) -> None:
    finding = await look(entry, Machine(HOST, FILES), tp)
    assert (finding.outcome, finding.summary) == (outcome, summary)


@pytest.mark.parametrize(
    "entry",
    [
        {"driver-option": {"name": "RegistryDwords", "contains": "ForceP2P"}},
        {"kernel-arg": {"name": "iommu", "one_of": ["pt"]}},
        {"pcie-link": {"lanes": 16}},
        {"power-limit": {"at_least_w": 500}},
        {"numa": {"nodes": 1}},
        {"numa": {"balancing": False}},
        {"peers": {"access": True}},
        {"peers": {"bar1": "64GiB"}},
        {"peers": {"iommu": ["off"]}},
        {"peers": {"acs": False}},
    ],
    ids=lambda entry: re.sub(r"[^a-z0-9_-]+", " ", str(entry)).strip(),
)
@pytest.mark.parametrize("said", [{}, dict.fromkeys(HOST, ""), GARBLED], ids=["absent", "empty", "garbled"])
async def test_what_cannot_be_read_is_unknown(entry: Any, said: Any) -> None:
    assert (await look(entry, Machine(said, {}))).outcome == "unknown"


async def test_what_is_wrong_comes_before_what_is_not_known() -> None:
    machine = Machine({**HOST, "lspci": ""}, FILES)
    assert (await look({"peers": {"acs": False, "bar1": "64GiB"}}, machine)).outcome == "fails"
    finding = await look({"peers": {"acs": False, "iommu": ["passthrough"]}}, machine)
    assert (finding.outcome, finding.summary) == ("unknown", "lspci shows no ACS (that takes root)")


async def test_without_an_iommu_group_nothing_is_translated() -> None:
    files = {path: value for path, value in FILES.items() if "iommu" not in path}
    assert (await look({"peers": {"iommu": ["off"]}}, Machine(HOST, files))).summary == "IOMMU off"
    files[f"{DEVICES}/0000:11:00.0/iommu_group/type"] = "DMA-FQ"
    finding = await look({"peers": {"iommu": ["off", "passthrough"]}}, Machine(HOST, files))
    assert finding.summary == "the IOMMU is translated for GPU 0: it must be off or passthrough"


async def test_the_files_of_a_simulated_host_are_not_those_of_this_machine() -> None:
    peers: list[dict[str, Any]] = [{"iommu": ["off"]}, {"acs": False}]
    for entry in ({"numa": {"balancing": False}}, {"numa": {"nodes": 1}}, *({"peers": keys} for keys in peers)):
        assert (await look(entry, Machine(HOST, FILES), simulated=True)).outcome == "unknown"


async def test_a_real_kernel_tells_its_arguments(tmp_path: Path) -> None:
    target = LocalTarget("local", workdir=tmp_path)
    name = Path("/proc/cmdline").read_text().split()[0].partition("=")[0]
    assert (await look({"kernel-arg": {"name": name, "not_in": ["-"]}}, target)).outcome == "fine"
    if Path(hardware.BALANCING).exists():
        assert await hardware.numa_balancing(target, TWO) is (Path(hardware.BALANCING).read_text().strip() != "0")
    await target.close()
