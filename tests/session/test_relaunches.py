"""Near verdicts on real processes: the same flags are launched again as planned; the next session knows the noise."""

from pathlib import Path

import pytest

from agent.core import events as ev
from agent.core.verdict import counted
from agent.journal.journal import read_journal
from agent.sim.ledger import launches
from tests.session.kit import run, small_playbook
from tests.session.test_resume import check, only_session, session_of, tunebot


@pytest.mark.long
async def test_the_same_flags_are_launched_again_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # No flag at all: whatever is measured between the two is noise.
    book = small_playbook({"id": "base"}, {"id": "same"}, target="simulated:small", launches=2)
    session = await run(book, tmp_path)
    state, events = session.state, read_journal(session.folder)
    assert state.ending == "completed" and session.nothing_left()
    real = [launch["launch_id"] for launch in launches(session.ledger)]
    assert real == list(state.launches), "what the journal says was launched, once each"
    if spoilt := [line for line in session.lines if "not comparable" in line]:
        pytest.skip(f"the machine was too busy to measure anything: {spoilt[0]}")
    planned = [event for event in events if isinstance(event, ev.LaunchPlanned)]
    assert planned[0].experiment == "same" and planned[0].number == 2
    assert {event.of for event in planned} >= {state.launches[name].experiment for name in real[2:]}
    assert all(len(counted(state, experiment)) <= 2 for experiment in state.experiments.values())
    assert any("near: likely" in line for line in session.lines)
    assert "launch noise measured" in state.experiments["same"].reason
    alone = await run(small_playbook(target="simulated:small"), tmp_path / "next")
    assert alone.state.noise is not None and alone.state.noise.launches == len(real) - (len(real) % 2)


@pytest.mark.long
def test_killed_in_a_relaunch_it_goes_on_with_it(tmp_path: Path) -> None:
    book = small_playbook({"id": "base"}, {"id": "same"}, target="simulated:small", launches=2)
    lines = tunebot(tmp_path, {"playbook": book, "die": ["LaunchRequested", 2]})
    folder = only_session(tmp_path)
    lines += tunebot(tmp_path, {"session": str(folder)})
    session = session_of(folder, lines)
    check(session)
    assert all(len(counted(session.state, e)) <= 2 for e in session.state.experiments.values())
