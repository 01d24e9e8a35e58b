"""The cost model on simulated hosts whose all-reduces are hidden: what it predicts is then measured."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from agent.core.terms import Forecast, forecast, measured_s
from tests.session.kit import Session, run, small_playbook
from tests.sim.hidden import NOTHING_LEFT, TERMS, WHOLE, hidden_world

pytestmark = pytest.mark.long

DRAFT = {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "~/models/kimi-k2.5-eagle3"}
PAIRS = {"base": "gone", "eagle3": "eagle3-gone"}
"""Each experiment with the one that takes all of its all-reduces away."""


def gone(name: str, parent: str) -> dict[str, Any]:
    """An experiment without all-reduces."""
    return {"id": name, "based_on": parent, "args": {NOTHING_LEFT: True}, "removes": dict(WHOLE)}


def rates(session: Session, name: str) -> list[float]:
    """Tokens a second of each round."""
    launches = session.state.experiments[name].launches
    metrics = [one.metrics for launch in launches for one in session.state.launches[launch].rounds]
    return [one.steady_output_throughput or one.output_throughput for one in metrics]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_measured_term_predicts_what_is_then_measured(seed: int, tmp_path: Path) -> None:
    world = {**hidden_world(seed), "speed": 600, "ranks": 2}
    step = world["step"]
    book = small_playbook(
        {"id": "base", "args": {"disable-custom-all-reduce": True, "cuda-graph-max-bs": 8}},
        gone("gone", "base"),
        {"id": "eagle3", "based_on": "base", "args": DRAFT},
        gone("eagle3-gone", "eagle3"),
        terms=TERMS,
        objective={"workload": "w", "min_gain": "1%"},
        workloads=[{"name": "w", "input_len": 64, "output_len": 192, "requests": 1, "rounds": 3}],
    )
    book["server"]["args"] |= {"tp": 8, "model-path": "~/models/Kimi-K2.5"}
    book["server"]["env"] = {"NCCL_P2P_LEVEL": "SYS"}
    session = await run(book, tmp_path, world)
    assert set(session.real_launches()) == {*PAIRS, *PAIRS.values()} and session.nothing_left()
    for verifies, size in ((False, 14336), (True, 57344)):
        seconds = measured_s(session.state, "allreduce", verifies)
        assert seconds == pytest.approx(step["kernels"]["nccl"][size] * 1e-6, rel=0.1)
    for name, without in PAIRS.items():
        made = forecast(session.state, session.state.experiments[without])
        assert isinstance(made, Forecast) and made.gain is not None
        (part,) = made.parts
        assert part.measured and part.removed == step["allreduces"] != WHOLE["allreduce"]
        predicted, measured = made.step.value * (1 + made.gain), fmean(rates(session, without))
        truth = session.real_launches()[without]["tok_s"]
        told = f"{made.step.value:.1f}, without predicted {predicted:.1f}, measured {measured:.1f}, true {truth:.1f}"
        print(f"seed {seed}, {name}: {part.removed} x {part.each_s * 1e6:.1f} us; {told} tok/s")
        assert predicted == pytest.approx(measured, rel=0.15), told
