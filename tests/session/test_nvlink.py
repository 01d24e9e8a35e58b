"""Another topology: what is ruled out or changes nothing over PCIe is measured over NVLink, and wins."""

from pathlib import Path

import pytest

from agent.sim.host import world_file
from agent.sim.world import read_world
from tests.session.kit import Session, run, small_playbook

TABLE = "sglang:srt/distributed/device_communicators/all_reduce_utils.py"
SIZES = "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES"
BASE = {"id": "base", "args": {"disable-custom-all-reduce": True, "cuda-graph-max-bs": 8}}
CUSTOM = {"id": "custom", "args": {"disable-custom-all-reduce": None}, "preflight": [{"topology": {"nvlink": "full"}}]}
SYMM = {
    "id": "symm",
    "args": {"enable-torch-symm-mem": True},
    "preflight": [{"table-has-key": {"in": TABLE, "table": SIZES, "key": "{gpu.sm_major}"}}],
}


async def session_on(name: str, tmp_path: Path) -> Session:
    """The three experiments on a shipped world, its loads in a hurry."""
    world = {**read_world(world_file(name)), "speed": 600, "noise": {}}
    book = small_playbook(BASE, CUSTOM, SYMM, objective={"workload": "w", "min_gain": "10%"})
    book["server"]["args"]["tp"] = 8
    session = await run(book, tmp_path, world)
    assert session.words["base"] == "keep" and session.nothing_left()
    return session


@pytest.mark.long
async def test_over_pcie_both_are_ruled_out(tmp_path: Path) -> None:
    session = await session_on("story", tmp_path)
    assert session.words["custom"] == session.words["symm"] == "ruled-out"
    assert set(session.real_launches()) == {"base"}


@pytest.mark.long
async def test_over_nvlink_both_win(tmp_path: Path) -> None:
    session = await session_on("nvlink", tmp_path)
    rates = {name: launch["tok_s"] for name, launch in session.real_launches().items()}
    for name, gain in (("custom", 0.217), ("symm", 0.260)):
        assert rates[name] / rates["base"] - 1 == pytest.approx(gain, abs=0.001)
        # A busy machine may make rounds differ by more than that.
        assert session.words[name] in ("keep", "inconclusive"), session.state.experiments[name].verdict
