"""In a flood pieces that come close one after the other are taken together, all others at once."""

import asyncio
import itertools
from time import perf_counter

import pytest

from agent.bench.client import Lane, Server
from agent.bench.load import Plan, run_load
from agent.bench.pause import Pause


def pieces(*gaps):
    """The times of pieces, given how often each gap follows the one before."""
    return list(itertools.accumulate(itertools.chain([1.0], *([gap_s] * count for gap_s, count in gaps))))


CLOSE, APART, QUIET = 0.000_005, 0.000_2, 0.002


@pytest.mark.parametrize(
    ("came_s", "due"),
    [
        (pieces((CLOSE, 3000)), True),
        (pieces((APART, 75), (CLOSE, 1)), True),
        (pieces((CLOSE, 1000)), False),  # half of what makes a flood
        (pieces((APART, 200)), False),
        (pieces((APART, 45), (QUIET, 1), (CLOSE, 16)), False),
        (pieces(*([(QUIET, 1), (CLOSE, 16)] * 20)), False),  # a step of 16 requests, every two milliseconds
    ],
)
async def test_a_pause_is_due_in_a_flood_of_close_pieces(came_s, due):
    pause = Pause()
    for at_s in came_s:
        if not pause.due:
            pause.came(at_s)
    assert pause.due is due
    began_s = perf_counter()
    await asyncio.sleep(0)
    assert not pause.due
    assert perf_counter() - began_s > (0.000_05 if due else 0)


@pytest.mark.parametrize("through_a_load", [True, False])
async def test_only_a_load_pauses(serve, through_a_load, monkeypatch):
    """All else shares its event loop with a screen."""
    came = []
    monkeypatch.setattr(Pause, "came", lambda self, now_s: came.append(now_s))

    async def handler(_, answer):
        await answer.head()
        await answer.token("a", 1)
        await answer.finish(1)

    server = Server((await serve(handler)).url)
    if through_a_load:
        plan = Plan(api="completions", model="m", prompts=("p",), output_lens=(1,), concurrency=1)
        assert (await run_load(server, plan)).samples[0].ok
    else:
        lane = Lane(server)
        assert (await lane.complete("completions", "m", "p", 1, 5.0)).error is None
        await lane.close()
    assert bool(came) is through_a_load
