"""Dead ends with their scope over several sessions on one host, whose versions change."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.known import elsewhere
from agent.core.plan import approvals_needed
from agent.dead_ends import read_dead_ends
from agent.sim.host import SimHost
from agent.sim.venvs import SITE
from tests.session.kit import parsed, run, small_playbook

FUSION: dict[str, Any] = {
    "id": "fusion",
    "based_on": "base",
    "args": {"enable-flashinfer-allreduce-fusion": True},
    "preflight": [
        {
            "list-contains": {
                "in": "flashinfer:jit/comm.py",
                "function": "gen_trtllm_comm_module",
                "list": "supported_major_versions",
                "item": "{gpu.sm_major}",
            }
        }
    ],
}
CUDA13: dict[str, Any] = {
    "id": "cuda13",
    "based_on": "base",
    "prepare": [
        {"run": ["python3", "-m", "venv", "~/venvs/cu130"], "creates": "~/venvs/cu130"},
        {"run": ["~/venvs/cu130/bin/pip", "install", "sglang==0.5.23"], "creates": "~/venvs/cu130/bin/sglang"},
    ],
    "server": {
        "command": ["~/venvs/cu130/bin/python3", "-m", "sglang.launch_server"],
        "source": {name: f"~/venvs/cu130/lib/python3.12/site-packages/{name}" for name in ("sglang", "flashinfer")},
    },
}
BASE: dict[str, Any] = {"id": "base"}


def book(*experiments: dict[str, Any]) -> dict[str, Any]:
    return small_playbook(BASE, *experiments, target="box")


async def test_dead_ends_outlive_their_session_with_their_scope(
    box: SimHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(box.home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    whole = book(FUSION, CUDA13)
    steps = tuple(n for e in parsed(whole).experiments for n in approvals_needed(parsed(whole), e))
    first = await run(whole, tmp_path, approved=steps)
    assert first.words["fusion"] == "ruled-out" and first.words["cuda13"] not in ("failed", "not-reached", "open")
    scope = dict(first.state.experiments["fusion"].scope)
    assert set(scope) == {"GPU", "flashinfer"} and scope["flashinfer"][0].isdigit()
    facts = first.state.facts["~/venvs/cu130/bin/python3"]
    assert facts["sglang"] == "0.5.23" and facts["flashinfer"] == "0.7.2" and facts["NCCL"] == "2.28.9"
    (found,) = elsewhere(first.state, first.state.experiments["fusion"])
    assert found[0] == "cuda13" and [str(c) for c in found[1].changed] == [f"flashinfer {scope['flashinfer']} → 0.7.2"]
    assert "ForceP2P" not in first.state.facts[""]["driver options"]

    (kept,) = read_dead_ends("box")
    assert (kept.experiment, kept.word, kept.session) == ("fusion", "ruled-out", first.folder.name)
    second = await run(book(), tmp_path)
    assert any(line.endswith("1 known dead end holds here") for line in second.lines), second.lines

    info = next((box.home / "venv" / SITE).glob("flashinfer_python-*.dist-info"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flashinfer-python\nVersion: 0.6.17\n")
    third = await run(book(FUSION), tmp_path)
    assert any(line.endswith("0 known dead ends hold here, 1 may not any more") for line in third.lines)
    assert third.words["fusion"] == "ruled-out", "a check looks anew; nothing is ruled out by what is known"
