"""The best configuration among those that keep a workload's limits."""

from dataclasses import replace

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.state import State
from agent.core.views.slo import slo_lines
from tests.core.conftest import World, playbook

WORKLOADS = [{"name": "single", "rounds": 3, "slo": {"ttft_ms": 200, "tpot_ms": 20}}]
SPEEDS = {"base": 100.0, "fast": 150.0, "faster": 180.0}


class Limited(World):
    """Tells which fraction of the requests of each experiment met the limits."""

    kept: dict[str, float]

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        events = super().answer(state, command, at)
        for place, event in enumerate(events):
            if isinstance(event, ev.RoundMeasured):
                goodput = self.kept[state.launches[event.launch].experiment] * event.metrics.request_throughput
                events[place] = replace(event, metrics=replace(event.metrics, goodput=goodput))
        return events


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ({"base": 1.0, "fast": 0.995, "faster": 0.8}, "fast, 150.1 tok/s (2 of 3 keep it)"),
        ({"base": 1.0, "fast": 1.0, "faster": 1.0}, "faster, 180.1 tok/s (3 of 3 keep it)"),
        ({"base": 0.5, "fast": 0.9, "faster": 0.1}, "none; fast comes nearest with 90% of its requests"),
    ],
)
def test_the_fastest_that_keeps_the_limits(kept: dict[str, float], told: str) -> None:
    world = Limited(speeds=SPEEDS)
    world.kept = kept
    ideas = [{"id": "base"}, {"id": "fast"}, {"id": "faster"}]
    state = world.play(playbook(*ideas, workloads=WORKLOADS, launches=1))
    assert slo_lines(state) == (f"single within TTFT 200 ms, TPOT 20 ms: {told}",)


def test_without_limits_there_is_nothing_to_say(world: World) -> None:
    assert slo_lines(world.play(playbook({"id": "base"}))) == ()
