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
