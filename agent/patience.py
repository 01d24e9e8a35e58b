"""Waits for a target that cannot be reached."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent.ports import Target, TargetUnreachable

T = TypeVar("T")
RETRY_S = 0.2


async def patiently(target: Target, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, once the target can be reached: asked again where it cannot."""
    while True:
        try:
            return await ask()
        except TargetUnreachable:
            await target.reach.wait()
            await asyncio.sleep(RETRY_S)


async def while_it_held(target: Target, launch: str, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of a server over a link that held meanwhile; asked again where it did not.

    What goes through the link fails before the link is known to be broken, so the same link is asked afterwards.
    """
    while True:
        await target.reach.wait()
        breaks = target.reach.breaks
        answer = await ask()
        status = await target.launch_status(launch)
        if status.state != "unknown" and target.reach.breaks == breaks:
            return answer
