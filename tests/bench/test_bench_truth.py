"""The times that the load generator tells, against those of the server. `python -m tests.bench.truth` takes longer."""

import asyncio
import time

from agent.bench.load import run_load
from tests.bench.truth import judge


async def test_times_are_true_or_the_client_says_that_it_was_disturbed():
    result = await judge(requests=192, tokens=25)
    assert result.within or result.flagged, str(result)
    print(result)


async def test_a_disturbed_client_is_flagged():
    async def disturbed(server, plan):
        async def disturb():
            while True:
                time.sleep(0.05)  # what a busy screen would do to the event loop
                await asyncio.sleep(0.02)

        task = asyncio.create_task(disturb())
        try:
            return await run_load(server, plan)
        finally:
            task.cancel()

    result = await judge(requests=48, tokens=10, concurrency=16, run=disturbed)
    assert not result.within
    assert result.health.loop_lag_p99_ms > 20
    assert result.flagged
