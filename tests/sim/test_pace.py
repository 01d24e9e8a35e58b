"""The time of a step, and whether the cost model finds in it what was hidden there."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.terms import best_gain
from agent.sim.pace import Pace, accepted, latency_us
from agent.sim.rules import outcome_of
from agent.sim.world import parse_world
from tests.sim.hidden import hidden_world
from tests.sim.test_laws import ARGS, EAGLE, FUSION

TABLE = {4096: 24.0, 14336: 28.0, 57344: 200.0, 131072: 95.0}


@pytest.mark.parametrize(
    ("size", "us"), [(1, 24), (4096, 24), (14336, 28), (35840, 114), (57344, 200), (131072, 95), (262144, 190)]
)
def test_latency_between_and_beyond_known_sizes(size: int, us: float) -> None:
    assert latency_us(TABLE, size) == pytest.approx(us)


def test_one_token_is_always_right() -> None:
    assert accepted(0.0, 3) == 1.0 and accepted(1.0, 3) == 4.0
    assert accepted(0.7165, 3) == pytest.approx(2.6, rel=2e-3)


@given(st.integers(1, 256), st.integers(1, 8))
def test_more_requests_give_more_in_total_and_less_to_each(batch: int, rows: int) -> None:
    pace = Pace(0.008, 0.75, count=122, row_bytes=14336, rows=rows, latency_us={14336: 28.0, 1 << 20: 330.0})
    assert pace.tok_s(batch + 1) < pace.tok_s(batch)
    alone = Pace(1 / 90, 0.75)
    assert (batch + 1) * alone.tok_s(batch + 1) > batch * alone.tok_s(batch)


@pytest.mark.parametrize("flags", [{}, EAGLE], ids=["decode", "verify"])
@pytest.mark.parametrize("seed", range(20))
def test_the_cost_model_finds_what_a_world_hides(seed: int, flags: dict[str, Any]) -> None:
    world, noise = parse_world(hidden_world(seed)), random.Random(seed)
    assert world.step
    before = outcome_of(world, {**ARGS, **flags}, {"NCCL_P2P_LEVEL": "SYS"}, "cuda13")
    after = outcome_of(world, {**ARGS, **flags, **FUSION}, {"NCCL_P2P_LEVEL": "SYS"}, "cuda13")
    measured_step_s = before.pace.accept / (before.tok_s * (1 + noise.gauss(0, world.noise.launch_sd)))
    measured_each_s = before.pace.allreduce_s() * (1 + noise.gauss(0, 0.02))
    best = best_gain(measured_step_s, world.step.allreduces // 2 * measured_each_s, lower_is_better=False)
    assert 1 + best == pytest.approx(after.tok_s / before.tok_s, rel=0.15)
