"""What the host's history says at a launch is in the journal, and the page of the load stands on it."""

from pathlib import Path

import pytest

from agent.core.model import Phase
from agent.core.views.usual import loads_against
from tests.session.kit import run, small_playbook


async def test_the_second_load_is_held_against_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = await run(
        small_playbook({"id": "base"}, {"id": "idea", "args": {"ep-size": 2}}, target="simulated:small"), tmp_path
    )
    first, second = session.state.launches.values()
    assert first.usual_s == {} and first.load_s is not None
    took = {phase: end - at for (phase, at), (_, end) in zip(first.phases, first.phases[1:], strict=False)}
    assert second.usual_s[Phase.LOAD_WEIGHTS] == pytest.approx(took[Phase.LOAD_WEIGHTS], abs=1.0)
    (load,) = loads_against(session.state, session.state.experiments["idea"], session.state.now)
    weights = next(phase for phase in load.phases if phase.phase == "load-weights")
    assert weights.usual_s == second.usual_s[Phase.LOAD_WEIGHTS] and weights.slow == ""
    assert loads_against(session.state, session.state.experiments["base"], session.state.now) == ()
