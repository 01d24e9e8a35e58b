"""Smoke loads on simulated hosts: what really ran, what the history keeps, and what a kill changes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.core.model import Phase
from agent.headless import ledger_line
from agent.history import read_lines, record_of
from agent.journal.journal import read_journal
from agent.paths import history_file
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.sim.host import world_file
from agent.sim.ledger import launches
from tests.session.kit import Session, run, small_playbook
from tests.session.test_resume import check, only_session, session_of, tunebot

EXTRA = '{"enable_multithread_load": true}'
DUMMY = {"load_format": "dummy"}
REFUSED = {"phase": "load-weights", "exception": "ValueError", "message": "extra config is not supported"}
WORLD: dict[str, Any] = yaml.safe_load(world_file("small").read_text())
WORLD |= {
    "phases": {**WORLD["phases"], "load-weights": 1600},
    "rules": [
        *WORLD["rules"],
        {"when": {"flags": DUMMY}, "then": {"load": {"load-weights": 0.005}}},
        {"when": {"flags": {**DUMMY, "model_loader_extra_config": "{*:*}"}}, "then": {"fail": REFUSED}},
    ],
}
"""Two seconds of real weights, none of dummy ones; an extra configuration is refused as SGLang does."""

BOOK = small_playbook(
    {"id": "base"},
    {"id": "threads", "args": {"model-loader-extra-config": EXTRA}},
    {"id": "bad", "env": {"SIM_FAIL": "oom"}},
    target="simulated:small",
    smoke="dummy",
)


def really(session: Session) -> list[tuple[str, bool]]:
    """Of each server that the host saw: its experiment, and whether it ran on dummy weights."""
    return [
        (session.state.launches[one["launch_id"]].experiment, "dummy" in one["argv"])
        for one in launches(session.ledger)
    ]


async def test_a_smoke_load_comes_first_and_one_that_fails_saves_the_real_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = await run(BOOK, tmp_path, WORLD)
    assert really(session) == [("base", True), ("base", False), ("threads", True), ("threads", False), ("bad", True)]
    assert session.words["base"] == "keep" and session.words["bad"] == "failed"
    assert session.state.experiments["bad"].reason.startswith("in the smoke load: ")
    assert "CUDA out of memory" in session.state.experiments["bad"].reason
    assert [len(launch.rounds) for launch in session.state.launches.values()] == [0, 3, 0, 3, 0]
    assert session.nothing_left()
    smoke, real = (launch.argv for launch in list(session.state.launches.values())[2:4])
    assert EXTRA in real and EXTRA not in smoke
    kept = kept_loads()
    assert [kind for kind, _ in kept] == ["sglang dummy", "sglang"] * 2
    second_smoke, second_real = list(session.state.launches.values())[2:4]
    assert second_smoke.usual_s[Phase.LOAD_WEIGHTS] == pytest.approx(kept[0][1], abs=0.1)
    assert second_real.usual_s[Phase.LOAD_WEIGHTS] == pytest.approx(kept[1][1], abs=0.1)
    assert kept[0][1] < kept[1][1]
    state, lane = fold(read_journal(session.folder))
    ledger = report_of(state, lane, now=state.now, live=False).ledger
    assert (ledger.loads, ledger.smoke_loads, ledger.smoke_failed) == (2, 3, 1)
    assert "2 loads paid" in ledger_line(session.state) and "3 smoke loads" in ledger_line(session.state)


def kept_loads() -> list[tuple[str, float]]:
    """Of each load in the history its kind, and the seconds of its weights."""
    records = [record_of(line) for line in read_lines(history_file())]
    return [(one["load"][1], one["phases_s"]["load-weights"]) for one in records if "load" in one]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "survives"), [("LaunchRequested", 0), ("PhaseEntered", 1), ("ServerReady", 0), ("ServerStopped", 0)]
)
def test_killed_around_a_smoke_load_it_is_paid_once(tmp_path: Path, name: str, survives: int) -> None:
    book = {**BOOK, "experiments": BOOK["experiments"][:1]}
    lines = tunebot(tmp_path, {"playbook": book, "die": [name, survives]})
    folder = only_session(tmp_path)
    lines += tunebot(tmp_path, {"session": str(folder)})
    session = session_of(folder, lines)
    check(session)
    assert really(session) == [("base", True), ("base", False)]
