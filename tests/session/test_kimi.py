"""The shipped playbook of the story, whole, on the simulated host: every experiment, judged by the ledger.

Its rounds are short here and its guard is away; what is tried, in which order and why is all there.
"""

import asyncio
from typing import Any

import pytest
import yaml

from agent.core import events as ev
from agent.core.plan import approvals_needed
from agent.core.terms import Forecast, forecast, measured_s
from agent.headless import replay
from agent.journal.journal import read_journal
from agent.paths import shipped_playbooks
from agent.sim.host import world_file
from agent.sim.ledger import read_ledger
from tests.session.kit import Session, parsed, run

pytestmark = pytest.mark.kimi

DEVICES = "lib/python3.12/site-packages/sglang/srt/distributed/device_communicators"
DEAD: dict[str, str] = {
    "ar-fusion": "ruled-out",
    "custom-allreduce": "ruled-out",
    "custom-forced": "worse",
    "nccl-tree": "ruled-out",
    "nccl-allreduce-tree": "worse",
    "nccl-allreduce-tree-ll": "worse",
    "torch-symm-mem": "ruled-out",
}
"""The first strategy, given up."""

STORY = {
    "baseline": "keep",
    "eagle3": "worse",
    **DEAD,
    "ep-flashinfer": "failed",
    "ep-deepep": "ruled-out",
    "ep-plain": "keep",
    "cuda13": "keep",
    "ar-fusion@cuda13": "keep",
    "torch-symm-mem@cuda13": "keep",
    "pcie-ipc": "keep",
    "eagle3-pcie-ipc": "keep",
    "mla-draft": "keep",
}
REST = {
    "dcp-8": "worse",
    "nccl-proto-ll": "keep",
    "nccl-proto-mixed": "keep",
    "nccl-graph": "ruled-out",
    "drafts-1": "keep",
    "drafts-2": "keep",
    "spec-v2": "keep",
    "forced-p2p": "ruled-out",
    "attn-flashinfer": "keep",
    "attn-flashinfer-ep": "keep",
    "kv-fp8-flashinfer": "worse",
    "p2p-off": "worse",
    "ngram": "worse",
    "pp2-tp4": "worse",
}
NEAR = {"adaptive-drafts", "kv-fp8", "torch-compile", "graph-bs-16", "p2p-level-unset", "context-131072"}
"""Nothing, or less than a busy machine can tell from it."""

TOK_S = {
    "baseline": 89.5,
    "eagle3": 54.1,
    "custom-forced": 38.0,
    "nccl-allreduce-tree": 82.0,
    "ep-plain": 101.2,
    "cuda13": 94.0,
    "ar-fusion@cuda13": 112.0,
    "torch-symm-mem@cuda13": 108.0,
    "pcie-ipc": 126.0,
    "eagle3-pcie-ipc": 137.9,
}


@pytest.fixture(scope="module")
def kimi(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """All experiments, everything approved, with loads of a second and hardly any noise."""
    world: dict[str, Any] = yaml.safe_load(world_file("story").read_text())
    world |= {"speed": 600, "noise": {"launch_sd": 0.001, "round_sd": 0.001}}
    book = yaml.safe_load((shipped_playbooks() / "kimi-k2.5-8x-rtx-pro-6000.yaml").read_text())
    single, streams = book["workloads"]
    single |= {"input_len": 128, "output_len": 96, "requests": 1}
    streams |= {"input_len": 128, "output_len": 24, "requests": 4, "concurrency": 4}
    book |= {"launches": 1, "at_end": "stop"}
    del book["guard"]
    approved = tuple(step for one in parsed(book).experiments for step in approvals_needed(parsed(book), one))
    return asyncio.run(run(book, tmp_path_factory.mktemp("kimi"), world, approved))


def test_it_ends_as_the_story_does(kimi: Session) -> None:
    told = {name: word for name, word in kimi.words.items() if name not in NEAR}
    assert told == {**STORY, **REST}
    assert {kimi.words[name] for name in NEAR} <= {"no-gain", "inconclusive", "worse", "keep"}
    assert kimi.state.ending == "completed"
    assert kimi.state.incumbent == "mla-draft"


def test_the_true_speeds_are_those_of_the_story_and_were_measured(kimi: Session) -> None:
    real = kimi.real_launches()
    assert {name: real[name]["tok_s"] for name in TOK_S} == pytest.approx(TOK_S, rel=0.01)
    for name, launch in real.items():
        rounds = [r for one in kimi.state.experiments[name].launches for r in kimi.state.launches[one].rounds]
        values = [r.metrics.output_throughput for r in rounds if r.workload == "single"]
        assert values == pytest.approx([launch["tok_s"]] * len(values), rel=0.15)


def test_only_what_was_not_ruled_out_was_loaded(kimi: Session) -> None:
    saved = {name for name, word in kimi.words.items() if word == "ruled-out"}
    assert len(saved) == 7
    assert set(kimi.real_launches()) == set(kimi.words) - saved


def test_the_first_strategy_is_given_up_once_and_then_the_second_is_tried(kimi: Session) -> None:
    (pivot,) = kimi.state.pivots
    assert (pivot.group, pivot.to) == ("allreduce", "ep")
    assert {tried.experiment: tried.word for tried in pivot.trail} == DEAD
    events = list(read_journal(kimi.folder))
    at = next(n for n, event in enumerate(events) if isinstance(event, ev.PivotReached))
    launched = [n for n, e in enumerate(events) if isinstance(e, ev.LaunchRequested) and e.experiment.startswith("ep-")]
    assert len(launched) == 2 and min(launched) > at


def test_what_the_source_demands_was_found_before_the_launch(kimi: Session) -> None:
    argv = kimi.real_launches()["ep-flashinfer"]["argv"]
    assert argv[argv.index("--moe-runner-backend") + 1] == "flashinfer_cutlass"
    read = kimi.state.tasks["ep-flashinfer/2"].finding
    assert read and any("flashinfer_cutlass" in quote.text for quote in read.quotes)
    events = list(read_journal(kimi.folder))
    found = [n for n, e in enumerate(events) if isinstance(e, ev.TaskFinished) and e.task == "ep-flashinfer/flags"]
    launch = [n for n, e in enumerate(events) if isinstance(e, ev.LaunchRequested) and e.experiment == "ep-flashinfer"]
    assert found and max(found) < min(launch)
    assert "OutOfMemoryError" in kimi.state.experiments["ep-flashinfer"].reason


def test_the_cost_model_foretold_the_end_of_the_all_reduces(kimi: Session) -> None:
    for verifies, seconds in ((False, 28e-6), (True, 200e-6)):
        assert measured_s(kimi.state, "allreduce", verifies) == pytest.approx(seconds, rel=0.1)
    for name, best in (("torch-symm-mem", 1.03), ("pcie-ipc", 0.47)):
        made = forecast(kimi.state, kimi.state.experiments[name])
        assert isinstance(made, Forecast) and made.gain == pytest.approx(best, rel=0.2)


def test_other_builds_ran_in_environments_of_their_own(kimi: Session) -> None:
    real = kimi.real_launches()
    ours = {"cuda13", "pcie-ipc", "eagle3-pcie-ipc", "mla-draft", "adaptive-drafts", "dcp-8"}
    again = {"ar-fusion@cuda13", "torch-symm-mem@cuda13"}
    assert {name for name, launch in real.items() if launch["environment"] == "cuda13"} == ours | again
    assert [record["kind"] for record in read_ledger(kimi.ledger)].count("pip") == 1
    home = kimi.folder / "host"
    patched, plain = (home / place / DEVICES / "custom_all_reduce.py" for place in ("venvs/forced", "venv"))
    line = 'full_nvlink = is_full_nvlink(group) or os.environ.get("SGLANG_FORCE_PCIE_CUSTOM_ALL_REDUCE") == "1"\n'
    assert line in patched.read_text() and line not in plain.read_text()


def test_the_journal_alone_gives_the_same_state(kimi: Session) -> None:
    lines: list[str] = []
    assert replay(read_journal(kimi.folder), lines.append) == kimi.state
    assert lines == kimi.lines
    assert kimi.nothing_left()
