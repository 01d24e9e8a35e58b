"""What a ledger says that a session cost: the arithmetic, on a ledger by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.sim.ledger import Span
from tests.story.costs import costs_of, covered_s, loads_of
from tests.story.overlap import times
from tests.story.plans import approvals, parsed, shipped, unchecked

RECORDS: list[dict[str, Any]] = [
    {"t": 10.0, "kind": "launch", "pid": 1, "launch_id": "a", "argv": []},
    {"t": 19.0, "kind": "ready", "pid": 1},
    {"t": 20.5, "kind": "request", "pid": 1, "prompt": "x", "start": 19.5, "end": 20.5},
    {"t": 21.0, "kind": "signal", "pid": 1, "signal": "SIGTERM"},
    {"t": 22.0, "kind": "exit", "pid": 1, "code": -9},
    {"t": 23.0, "kind": "venv", "pid": 9, "start": 22.5, "folder": "v"},
    {"t": 24.0, "kind": "launch", "pid": 2, "launch_id": "b", "argv": []},
    {"t": 26.0, "kind": "exit", "pid": 2, "code": 1},
]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_what_a_session_cost_its_host(ledger: Path) -> None:
    costs = costs_of(ledger, speed=10.0)
    assert (costs.loads, costs.ready) == (2, 1)
    assert (costs.loading_s, costs.stopping_s, costs.preparing_s) == (110.0, 10.0, 5.0)
    assert costs.host_s == 125.0
    assert loads_of(ledger, 10.0) == {"a": (90.0, True), "b": (20.0, False)}


def test_what_went_on_at_once_counts_once() -> None:
    spans = [Span("launch", "ready", 0, 10, 1), Span("phase", "import", 0, 50, 1), Span("request", "a", 9, 12, 1)]
    spans += [Span("request", "b", 11, 11.5, 1), Span("stop", "SIGTERM", 13, 14, 1)]
    assert covered_s(spans) == 13.0


def test_what_a_campaign_takes_beside_its_steps(ledger: Path) -> None:
    told = times(15.0, ledger, speed=10.0)
    # Steps: a load of 9, a round of 1, a stop of 1, an environment of 0.5, a load of 2 that failed.
    assert (told["steps_s"], told["rounds_s"], told["between_s"]) == (13.5, 1.0, 1.5)
    assert told["ratio"] == pytest.approx(15 / 13.5, abs=1e-4)
    assert told["ratio_at_speed_1"] == pytest.approx(1 + 1.5 / 126, abs=1e-4)


def test_without_looking_first_it_is_the_same_plan() -> None:
    plan = shipped()
    whole, blind = parsed(plan), parsed(unchecked(plan))
    nothing = {"preflight": (), "research": ()}
    for one, other in zip(whole.experiments, blind.experiments, strict=True):
        server = one.server and one.server.model_copy(update={"source": None})
        assert other == one.model_copy(update={**nothing, "server": server})
    assert any(one.preflight for one in whole.experiments) and whole.server.source
    assert blind.server.source == {}
    assert approvals(plan) == approvals(unchecked(plan))
