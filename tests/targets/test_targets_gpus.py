"""Who holds the memory of GPUs, when it is free again, and how GPUs are connected."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.model import Gpu
from agent.ports import TargetUnusable
from agent.sim.host import create_host
from agent.targets.holders import Holder, Wiring, holders, settled, wiring
from agent.targets.local import LocalTarget
from tests.targets.kit import Placed
from tests.targets.test_targets_host import smi

# As a driver 580 printed them on two H200: while a process computes, in the moment of its death, and idle.
UUIDS = ("GPU-48d0f256-bfd7-7855-41f4-3cef615d1a00", "GPU-fddc5a5a-c92e-0a49-6000-539034ebc4ab")
TABLE = "| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |"
TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\t0-31\t0\t\tN/A\nGPU1\tNV18\t X \t0-31\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n"
)


def gpu(index: int) -> Gpu:
    return Gpu(index=index, name="H200", sm_major=9, sm_minor=0, memory_mib=143771, driver="580.159.04")


BOTH = (gpu(0), gpu(1))


def says(target: Placed, apps: str, used: tuple[int, int]) -> None:
    """What nvidia-smi says from now on. It answers in one go: a new answer is put in place at once."""
    rows = "".join(f"{index}, {uuid}, {mib}\n" for index, (uuid, mib) in enumerate(zip(UUIDS, used, strict=True)))
    folder = target.place.root
    (folder / "apps").write_text(apps)
    (folder / "rows").write_text(rows)
    (folder / "table").write_text(TABLE)
    (folder / "topo").write_text(TOPOLOGY)
    files = {"--query-compute-apps=*": "apps", "--query-gpu=*": "rows", "topo": "topo", "''": "table"}
    cases = " ".join(f"{pattern}) exec cat {folder}/{file} ;;" for pattern, file in files.items())
    smi(target, f'case "$1" in {cases} esac')


async def test_who_holds_memory(target: Placed) -> None:
    me = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    process = await asyncio.create_subprocess_exec("sleep", "600")
    apps = f"{UUIDS[1]}, {process.pid}, /opt/a, b/python3, 61958\n{UUIDS[0]}, 99999999, [Not Found], [N/A]\n"
    says(target, apps, (5, 61967))
    python = Holder(gpu=1, pid=process.pid, name="/opt/a, b/python3", user=me, used_mib=61958)
    ghost = Holder(gpu=0, pid=99999999, name="Not Found", user="", used_mib=0)
    assert await holders(target, BOTH) == (ghost, python)
    assert await holders(target, (gpu(1),)) == (python,)
    assert await holders(target, ()) == ()
    assert str(python) == f"60.5 GiB of GPU 1 held by pid {process.pid} (/opt/a, b/python3 of {me})"
    assert str(ghost) == "GPU 0 held by pid 99999999 (Not Found)"
    process.kill()
    await process.wait()


async def test_memory_that_nobody_is_said_to_hold(target: Placed) -> None:
    says(target, "", (900, 61958))
    [hidden] = await holders(target, BOTH)
    assert (hidden.gpu, hidden.pid, hidden.used_mib) == (1, None, 61958)
    assert str(hidden) == "60.5 GiB of GPU 1 used by no process that nvidia-smi lists"


async def test_memory_that_is_freed_late_is_waited_for(target: Placed) -> None:
    apps = f"{UUIDS[0]}, 99999999, [No data], 61958\n"
    says(target, apps, (0, 0))
    asyncio.get_running_loop().call_later(0.7, says, target, "", (0, 61958))
    asyncio.get_running_loop().call_later(1.4, says, target, "", (0, 0))
    began = asyncio.get_running_loop().time()
    assert await settled(target, BOTH, 30.0) == ()
    assert asyncio.get_running_loop().time() - began >= 1.4
    says(target, apps, (0, 0))
    assert [holder.pid for holder in await settled(target, BOTH, 0.5)] == [99999999]


async def test_a_tool_that_fails_is_no_free_gpu(target: Placed) -> None:
    smi(target, "echo Unknown Error; exit 255")
    for ask in (holders, wiring):
        with pytest.raises(TargetUnusable, match="nvidia-smi failed: Unknown Error"):
            await ask(target, BOTH)


async def test_how_gpus_are_connected(target: Placed) -> None:
    says(target, "", (0, 0))
    found = await wiring(target, BOTH)
    assert found == Wiring(cuda="13.0", links=(("X", "NV18"), ("NV18", "X")))
    assert str(found) == "pairs of GPUs: 1 x NV18"
    assert (await wiring(target, (gpu(1),))).links == (("X",),)


@pytest.fixture
async def simulated(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    world = {"name": "four", "gpu": {"count": 4, "cuda": "12.9"}, "topology": {"switch_size": 2, "numa_nodes": 2}}
    host = create_host(tmp_path / "host", world)
    target = LocalTarget("sim", workdir=tmp_path / "work", home=host.home, path_prefix=str(host.home / "bin"))
    yield target
    await target.close()


async def test_a_simulated_host_says_who_holds_its_gpus(simulated: LocalTarget, tmp_path: Path) -> None:
    gpus = (await simulated.host()).gpus
    assert await holders(simulated, gpus) == ()
    stranger = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent.sim.squatter", str(tmp_path / "host"), "2", "5000"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert stranger.stdout and await stranger.stdout.readline()
    [holder] = await holders(simulated, gpus)
    assert (holder.gpu, holder.pid, holder.used_mib) == (2, stranger.pid, 5000)
    stranger.kill()
    assert await settled(simulated, gpus, 10.0) == ()
    await stranger.wait()


async def test_a_simulated_host_says_how_its_gpus_are_connected(simulated: LocalTarget) -> None:
    found = await wiring(simulated, (await simulated.host()).gpus)
    assert (found.cuda, str(found)) == ("12.9", "pairs of GPUs: 4 x SYS, 2 x PIX")
    assert found.links[0] == ("X", "PIX", "SYS", "SYS")
