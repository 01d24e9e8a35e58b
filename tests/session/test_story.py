"""The demo's playbook in a hurry, judged by the simulator's ledger."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.core.plan import approvals_needed
from agent.headless import replay
from agent.journal.journal import read_journal
from agent.sim.host import world_file
from agent.sim.ledger import read_ledger
from tests.session.kit import Session, parsed, run

DEMO = Path(__file__).parents[2] / "playbooks" / "demo.yaml"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The story with loads of a second, tokens four times as fast, and hardly any noise: rounds are short here."""
    world: dict[str, Any] = yaml.safe_load(world_file("story").read_text())
    world["speed"] = 600
    world["rates"]["token_speed"] = 4
    world["noise"] = {"launch_sd": 0.001, "round_sd": 0.001}
    book = yaml.safe_load(DEMO.read_text())
    book["workloads"][0]["rounds"] = 5  # on a busy machine three spread too much for the 4 % of cuda13
    approved = tuple(n for e in parsed(book).experiments for n in approvals_needed(parsed(book), e))
    return asyncio.run(run(book, tmp_path_factory.mktemp("story"), world, approved))


def test_it_ends_as_the_story_does(story: Session) -> None:
    assert story.words == {
        "baseline": "keep",
        "eagle3": "worse",
        "ar-fusion": "ruled-out",
        "custom-allreduce": "worse",
        "nccl-tree": "ruled-out",
        "torch-symm-mem": "ruled-out",
        "ep-deepep": "ruled-out",
        "ep-flashinfer": "failed",
        "ep-plain": "keep",
        "cuda13": "keep",
        "ar-fusion@cuda13": "keep",
        "torch-symm-mem@cuda13": "keep",
    }
    assert story.state.ending == "completed"
    assert story.state.incumbent == "ar-fusion@cuda13"


def test_only_what_was_not_ruled_out_was_loaded(story: Session) -> None:
    saved = {name for name, word in story.words.items() if word == "ruled-out"}
    assert len(saved) == 4
    assert set(story.real_launches()) == set(story.words) - saved


def test_the_measured_speed_is_that_of_the_ledger(story: Session) -> None:
    for name, launch in story.real_launches().items():
        values = [r.metrics for one in story.state.experiments[name].launches for r in story.state.launches[one].rounds]
        for metrics in values:
            assert metrics.output_throughput == pytest.approx(launch["tok_s"], rel=0.12)


def test_what_the_source_demands_was_found_before_the_launch(story: Session) -> None:
    argv = story.real_launches()["ep-flashinfer"]["argv"]
    assert argv[argv.index("--moe-runner-backend") + 1] == "flashinfer_cutlass"
    finding = story.state.tasks["ep-flashinfer/flags"].finding
    assert finding and finding.requires == {"moe-runner-backend": "flashinfer_cutlass"}
    assert any("flashinfer_cutlass" in quote.text for quote in finding.quotes)
    read = story.state.tasks["ep-flashinfer/2"].finding
    assert read and any("flashinfer_cutlass" in quote.text for quote in read.quotes)
    assert "OutOfMemoryError" in story.state.experiments["ep-flashinfer"].reason


def test_cuda13_ran_in_its_own_environment(story: Session) -> None:
    real = story.real_launches()
    assert {name for name, launch in real.items() if launch["environment"] == "cuda13"} == {
        "cuda13",
        "ar-fusion@cuda13",
        "torch-symm-mem@cuda13",
    }
    kinds = [record["kind"] for record in read_ledger(story.ledger)]
    assert kinds.count("pip") == 1


def test_the_probe_ran_beside_the_load(story: Session) -> None:
    probe = story.state.tasks["baseline/1"]
    assert probe.finding and "passed" in probe.finding.summary


def test_the_question_waits_for_a_key(story: Session) -> None:
    assert story.state.tasks["ep-flashinfer/3"].status == "needs-key"


def test_every_request_is_accounted_for(story: Session) -> None:
    real = [r for r in story.requests() if r["ok"]]
    kept = (story.folder / "measurements.jsonl").read_text().splitlines()
    rounds = sum(len(launch.rounds) for launch in story.state.launches.values())
    ready = [launch for launch in story.state.launches.values() if launch.load_s is not None]
    # Beside the rounds: one warm-up request a launch, and tunebot's and the server's own first generations.
    assert len(kept) >= rounds
    assert len(real) >= rounds + 2 * len(ready)


def test_nothing_is_left_running(story: Session) -> None:
    assert story.nothing_left()
    assert all(not launch.left for launch in story.state.launches.values())


def test_the_journal_alone_gives_the_same_lines_and_state(story: Session) -> None:
    lines: list[str] = []
    assert replay(read_journal(story.folder), lines.append) == story.state
    assert lines == story.lines


def test_it_says_that_it_is_simulated(story: Session) -> None:
    assert "SIMULATED" in story.lines[0]
    assert b"simulated" in story.log("baseline").lower().splitlines()[0]
