"""The cost model in worlds whose all-reduces are hidden: it predicts what is left of a step without them."""

import random
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Finding
from agent.core.state import State
from agent.core.terms import Forecast, forecast
from agent.sim.collective import JITTER
from agent.sim.pace import US, latency_us
from agent.sim.rules import outcome_of
from agent.sim.world import parse_world
from tests.core.conftest import World, playbook
from tests.sim.hidden import NOTHING_LEFT, TERMS, WHOLE, hidden_world
from tests.sim.test_laws import ARGS, EAGLE

SEEDS = range(60)
GONE = {NOTHING_LEFT.replace("-", "_"): True}
CLOSE = 0.15


@dataclass
class Verifying(World):
    """A world whose server tells how many tokens a verify pass keeps, None without speculation."""

    accept: float | None = None

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        answers = super().answer(state, command, at)
        return [
            replace(event, metrics=replace(event.metrics, accept_length=self.accept))
            if isinstance(event, ev.RoundMeasured)
            else event
            for event in answers
        ]


def error(seed: int, flags: dict[str, Any], counted: bool = True) -> float:
    """By how much the predicted best case misses the measured one, as a fraction of that.

    Launches differ as those of the world do, rounds too, and the benchmark as the simulated one does.
    """
    data = hidden_world(seed)
    hidden, noise = parse_world(data), random.Random(f"{seed}{flags}")
    env = {"NCCL_P2P_LEVEL": "SYS"}
    before, after = (outcome_of(hidden, {**ARGS, **flags, **more}, env, "default") for more in ({}, GONE))
    term = TERMS["allreduce"]
    layers = data["models"][0]["config"]["text_config"]["num_hidden_layers"]
    found = Finding(
        summary="8 GPUs",
        calls_s={
            str(size): latency_us(before.pace.latency_us, size) * US * (1 + noise.gauss(0, JITTER))
            for size in (term["bytes"], term["bytes_verify"])
        },
        calls=term["per_layer"] * layers if counted else None,
    )
    world = Verifying(findings={"base/term-allreduce": found}, accept=before.spec_accept)
    for name, one in (("base", before), ("gone", after)):
        launch = 1 + noise.gauss(0, hidden.noise.launch_sd)
        world.speeds[name] = one.tok_s * launch * (1 + noise.gauss(0, hidden.noise.round_sd / 3**0.5))
    state = world.play(playbook({"id": "base"}, {"id": "gone", "removes": WHOLE}, terms=TERMS), attended=True)
    made = forecast(state, state.experiments["gone"])
    assert isinstance(made, Forecast)
    if made.gain is None:
        return float("inf")
    launch = state.launches[state.experiments["gone"].launches[0]]
    measured = fmean(one.metrics.output_throughput for one in launch.rounds)
    return abs(made.step.value * (1 + made.gain) - measured) / measured


@pytest.mark.parametrize("flags", [{}, EAGLE], ids=["decode", "verify"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_measured_term_predicts_the_best_case(seed: int, flags: dict[str, Any]) -> None:
    assert error(seed, flags) <= CLOSE


def test_a_count_that_is_only_believed_does_not() -> None:
    """Of the sixty worlds: the believed count is that of another model, so this is no more than chance."""
    assert sum(error(seed, {}, counted=False) > CLOSE for seed in SEEDS) > len(SEEDS) // 4
