"""`tunebot check --preflight` on the simulated host: what it says, as lines and as JSON, and its exit code."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.check_preflights import check_on_target, foresee
from agent.diagnostics import Exit, UserError
from agent.playbook.model import Playbook
from tests.playbook.kit import HEAD, good

DEMO = (Path(__file__).parents[1] / "playbooks" / "demo.yaml").read_text()


def playbook_of(experiments: str) -> Playbook:
    head = HEAD.replace("target: local", "target: simulated").replace("[python3,", "[~/venv/bin/python3,")
    head = head.replace("~/sglang", "~/sglang/python/sglang")
    return good(f"{head}experiments:\n  - {{id: base, baseline: true}}\n{experiments}")


def said(playbook: Playbook, as_json: bool = False) -> tuple[int, list[str]]:
    lines: list[str] = []
    return check_on_target(playbook, None, as_json, lines.append), lines


def test_the_demo_is_foreseen_without_a_launch() -> None:
    code, lines = said(good(DEMO))
    assert code == Exit.RULED_OUT
    assert lines[0].startswith("demo-kimi-k2.5 on simulated (simulated, 8 x NVIDIA RTX PRO 6000")
    heads = [line for line in lines if line[:1] in "✖✔?○" and ": " in line]
    assert heads == [
        "✔ baseline: fine",
        "✔ eagle3: fine",
        "✖ ar-fusion: would fail",
        "✔ custom-allreduce: fine",
        "✖ nccl-tree: would fail",
        "✖ torch-symm-mem: would fail",
        "✖ ep-deepep: would fail",
        "✔ ep-flashinfer: fine",
        "✔ ep-plain: fine",
        "? cuda13: unknown",
    ]
    assert "    ✔ flags · fine: needs --moe-runner-backend flashinfer_cutlass" in lines
    assert any("KeyError: 12 at torch_symm_mem.py:" in line for line in lines)
    assert any("read · done: needs --moe-runner-backend flashinfer_cutlass" in line for line in lines)
    assert lines[-1] == "4 of 10 experiments would fail or change nothing; nothing was launched"


def test_what_is_not_looked_at_is_said() -> None:
    playbook = playbook_of(
        """\
  - id: other
    prepare: [{run: ["true"]}]
    preflight: [{module-importable: {module: json}}]
    research: [{read: {in: sglang:a.py, around: x}, needed: true}]
  - id: asked
    preflight: [{module-importable: {module: json}}]
    research:
      - {ask: is it wise, needed: true}
      - {probe: {run: ["true"], gpu: true}, needed: true}
      - {probe: {run: ["false"]}, needed: true}
      - {probe: {run: [nobody-needs-this]}}
"""
    )
    code, lines = said(playbook)
    assert code == Exit.OK
    assert [line.strip() for line in lines[5:]] == [
        "? other: unknown",
        "? flags · unknown: its environment is not built yet: looked at after its prepare steps",
        "? module-importable · unknown: its environment is not built yet: looked at after its prepare steps",
        "? read · cancelled: its environment is not built yet: looked at after its prepare steps",
        "",
        "✔ asked: fine",
        "✔ flags · fine: 74 flags read: nothing more is demanded",
        "✔ module-importable · fine: json imports in ~/venv/bin/python3",
        "? ask · cancelled: only asked in a session: it costs money",
        "? probe · cancelled: only run in a session: it needs a GPU",
        "✔ probe · done: exit 1",
        "",
        "0 of 3 experiments would fail or change nothing; nothing was launched",
    ]


def test_an_environment_that_is_built_already_is_looked_at() -> None:
    playbook = playbook_of(
        """\
  - id: built
    args: {tp: 8}
    prepare: [{run: ["true"], creates: ~/venv}]
    preflight: [{topology: {nvlink: full}}]
"""
    )
    host, (_, built) = asyncio.run(foresee(playbook, None))
    assert host.links and host.cuda
    assert built.built
    assert built.outcome == "no-effect"


def test_json_has_the_scope_and_the_evidence() -> None:
    code, (text,) = said(good(DEMO), as_json=True)
    assert code == Exit.RULED_OUT
    told: dict[str, Any] = json.loads(text)
    assert (told["ruled_out"], told["host"]["cuda"]) == (4, "13.0")
    by_id = {one["id"]: one for one in told["experiments"]}
    assert [by_id[name]["outcome"] for name in ("baseline", "ep-deepep")] == ["fine", "fails"]
    (flags, check) = by_id["torch-symm-mem"]["checks"]
    assert (flags["kind"], flags["finding"]["outcome"]) == ("flags", "fine")
    assert (check["kind"], check["scope"]) == ("table-has-key", ["source", "gpus"])
    assert check["finding"]["quotes"][0]["path"].endswith("all_reduce_utils.py")
    (read,) = by_id["ep-flashinfer"]["research"]
    assert read["finding"]["requires"] == {"moe-runner-backend": "flashinfer_cutlass"}


def test_a_target_that_is_not_there() -> None:
    with pytest.raises(UserError, match="there is no target nowhere") as caught:
        check_on_target(good(DEMO), "nowhere", False, print)
    assert caught.value.code == Exit.TARGET_UNUSABLE
