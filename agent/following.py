"""Follows what a launch prints, and keeps a copy of it in the session's folder: always its beginning, without gaps."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

from agent.ports import Target, TargetUnreachable
from agent.session import SessionFolder

T = TypeVar("T")

FINISH_LIMIT_S = 120.0
RETRY_S = 0.2
_CHUNK = 1 << 20
# A copy that fell behind (the disk is full) is not tried again at every look.
_CATCH_UP_EVERY_S = 5.0


async def patiently(target: Target, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, once the target can be reached: asked again where it cannot."""
    while True:
        try:
            return await ask()
        except TargetUnreachable:
            await target.reach.wait()
            await asyncio.sleep(RETRY_S)


class LogFollower:
    """Reads one launch's log once, from its beginning."""

    def __init__(self, target: Target, launch: str, folder: SessionFolder) -> None:
        self._target, self._launch, self._folder = target, launch, folder
        self._offset = 0
        self._tried_at = 0.0

    def kept(self) -> Iterator[bytes]:
        """What the copy holds of an earlier run of tunebot, in pieces; `news` then goes on behind it."""
        for data in self._folder.read_log(self._launch, _CHUNK):
            self._offset += len(data)
            yield data

    async def news(self) -> AsyncIterator[bytes]:
        """What was printed since the last look, in pieces. Raises TargetUnreachable."""
        while data := await self._target.read_log(self._launch, self._offset):
            complete = self._folder.log_size(self._launch) == self._offset
            if complete:
                self._keep(data)
            self._offset += len(data)
            yield data
        if self._folder.log_size(self._launch) < self._offset and time.monotonic() - self._tried_at > _CATCH_UP_EVERY_S:
            self._tried_at = time.monotonic()
            await self._catch_up()

    async def finish(self) -> bool:
        """Copy what is missing; whether the copy is complete: not where the disk is full, or nobody answers."""
        try:
            async with asyncio.timeout(FINISH_LIMIT_S):
                return await patiently(self._target, self._catch_up)
        except TimeoutError:
            return False

    async def _catch_up(self) -> bool:
        while True:
            offset = self._folder.log_size(self._launch)
            data = await self._target.read_log(self._launch, offset)
            if not data:
                return True
            if not self._keep(data):
                return False

    def _keep(self, data: bytes) -> bool:
        try:
            self._folder.append_log(self._launch, data)
        except OSError:  # a full disk: what is missing is fetched when there is room
            return False
        return True
