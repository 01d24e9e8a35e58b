"""GPUs that wait for each other are busy and draw little: what nvidia-smi of a simulated host shows of a launch."""

from pathlib import Path

import pytest

from agent.sim.nvidia_smi import facts
from agent.sim.pace import Pace
from agent.sim.world import World

WORLD = World(name="w")
FAST = Pace(compute_s=7.5e-3, exponent=1.0, count=122, row_bytes=14336, latency_us={14336: 30.0})
CLIFF = Pace(compute_s=7.5e-3, exponent=1.0, extra_s=16e-3, count=122, row_bytes=57344, latency_us={57344: 200.0})
UNKNOWN = Pace(compute_s=11e-3, exponent=1.0)


@pytest.mark.parametrize(
    ("pace", "share", "watts"), [(FAST, 0.33, 210), (CLIFF, 0.51, 140), (UNKNOWN, 0.0, 330), (None, None, 92)]
)
def test_what_waits_draws_less(tmp_path: Path, pace: Pace | None, share: float | None, watts: float) -> None:
    (tmp_path / ".sim" / "busy").mkdir(parents=True)
    if pace is not None:
        assert pace.waiting() == pytest.approx(share, abs=0.01)
        (tmp_path / ".sim" / "busy" / "7").write_text(f"{pace.waiting():.3f}")
    states = [{"gpu": 0, "pid": 8, "launcher": 7, "used_mib": 90000}]
    told = facts(WORLD, str(tmp_path), states, 0)
    assert told["utilization.gpu"] == ("97" if pace else "0")
    assert float(told["power.draw"]) == pytest.approx(watts, rel=0.05)
    assert float(facts(WORLD, str(tmp_path), states, 1)["power.draw"]) == 32.0, "another GPU has nothing to do"
