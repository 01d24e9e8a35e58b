"""The link to one host: it connects, notices when the connection broke, and alone connects anew."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from agent.ports import TargetGone, TargetUnreachable, TargetUnusable
from agent.reach import Reach
from agent.targets.dial import Dialling, dial
from agent.targets.wire import Broken, Reply, Wire

LONGEST_PAUSE_S = 60.0
_STEADY_S = 60.0
_PINGS_A_KEEPALIVE = 1.25
"""Ours come a little sooner than SSH's own, so that a frozen link is noticed within four keepalives."""


class Link:
    """Requests to the helper on a host, over whatever connection there is at the time."""

    def __init__(self, to: Dialling, settings: Mapping[str, Any], reach: Reach) -> None:
        self._to, self._settings, self._reach = to, dict(settings), reach
        self._wire: Wire | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._dialling = asyncio.Lock()
        self._refused: TargetUnusable | None = None
        self._closed = False

    async def wire(self) -> Wire:
        """The connection; waits while the host is out of reach.

        Raises TargetUnusable and TargetUnreachable where the first connection failed, TargetGone where a later one
        was refused for good.
        """
        while True:
            if wire := self.now():
                return wire
            if self._keeper is None:
                await self._first()
            else:
                await self._reach.wait()
                await asyncio.sleep(0)  # a wire that broke just now is not yet known to be down

    def now(self) -> Wire | None:
        """The connection, or None while the host is out of reach. Raises TargetUnusable and TargetGone as `wire`."""
        if self._closed:
            raise TargetUnusable("the target is closed")
        if self._refused:
            raise TargetGone(str(self._refused), self._refused.hint) from self._refused
        return self._wire if self._wire and not self._wire.broken.is_set() else None

    async def now_or_unreachable(self) -> Wire:
        """The connection, at once. Raises TargetUnreachable while the host is out of reach."""
        if self._keeper is None:
            return await self.wire()
        if wire := self.now():
            return wire
        raise TargetUnreachable(f"{self._to.host} cannot be reached: {self._reach.why}")

    async def call(self, verb: str, **order: Any) -> Reply:
        """Ask for something that may be asked twice: where the link breaks it is asked again."""
        while True:
            wire = await self.wire()
            try:
                return await wire.call(verb, **order)
            except Broken:
                continue

    def set(self, **settings: Any) -> None:
        """Change what the next helper is told at its start."""
        self._settings.update(settings)

    async def close(self) -> None:
        """Close the connection; nothing connects any more."""
        self._closed = True
        if self._keeper:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._wire:
            await self._wire.close()
        self._reach.found()  # whoever waits is told that it is closed

    async def _first(self) -> None:
        async with self._dialling:
            if self._keeper is None and not self._closed:
                self._wire = await self._dial()
                self._keeper = asyncio.create_task(self._keep(), name=f"link {self._to.host}")

    async def _dial(self) -> Wire:
        connection = await dial(self._to)
        return await Wire.open(connection, self._settings, self._to.host, self._to.keepalive_s / _PINGS_A_KEEPALIVE)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        tries = 0
        while self._wire:
            since = loop.time()
            await self._wire.broken.wait()
            self._reach.lost(self._wire.why)
            await self._wire.close()
            if loop.time() - since > _STEADY_S:
                tries = 0
            self._wire = None
            while self._wire is None:
                # Full jitter: after an outage not everybody comes back in the same second.
                await asyncio.sleep(random.uniform(0, min(LONGEST_PAUSE_S, 2.0**tries)))
                tries += 1
                try:
                    self._wire = await self._dial()
                except TargetUnreachable as error:
                    self._reach.why = str(error)
                except TargetUnusable as error:
                    self._refused = error
                    break
            self._reach.found()
