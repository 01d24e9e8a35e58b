"""Follows what a launch prints, by inode and offset, and keeps a copy of it in the session's folder."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

from agent.patience import patiently
from agent.ports import LogPiece, Target
from agent.session import SessionFolder

FINISH_LIMIT_S = 120.0
_CHUNK = 1 << 20
# A copy that fell behind (the disk is full) is not tried again at every look.
_CATCH_UP_EVERY_S = 5.0


class LogFollower:
    """Reads one launch's log once, from its beginning. A log that begins anew is told, and read from there."""

    def __init__(self, target: Target, launch: str, folder: SessionFolder, tell: Callable[[str], None]) -> None:
        self._target, self._launch, self._folder, self._tell = target, launch, folder, tell
        self._offset, self._inode = 0, 0
        self._base = 0
        """Bytes of the copy that are of an earlier log, before the present one began."""
        self._tried_at = 0.0

    def kept(self) -> Iterator[bytes]:
        """What the copy holds of an earlier run of tunebot, in pieces; `news` then goes on behind it."""
        for data in self._folder.read_log(self._launch, _CHUNK):
            self._offset += len(data)
            yield data

    async def news(self) -> AsyncIterator[bytes]:
        """What was printed since the last look, in pieces. Raises TargetUnreachable."""
        while True:
            piece = await self._read(self._offset)
            if piece is None:
                continue
            if not piece.data:
                break
            if self._copied() == self._offset:
                self._keep(piece.data)
            self._offset += len(piece.data)
            yield piece.data
        if self._copied() < self._offset and time.monotonic() - self._tried_at > _CATCH_UP_EVERY_S:
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
            piece = await self._read(self._copied())
            if piece is None:
                continue
            if not piece.data:
                return True
            if not self._keep(piece.data):
                return False

    async def _read(self, offset: int) -> LogPiece | None:
        """The log from an offset; None where it turned out to begin anew."""
        piece = await self._target.read_log(self._launch, offset)
        replaced = self._inode not in (0, piece.inode)
        if not replaced and piece.size >= offset:
            self._inode = piece.inode
            return piece
        how = "replaced by another file" if replaced else f"cut from {offset} to {piece.size} bytes"
        self._tell(f"the log of launch {self._launch} was {how}: what was not read before is lost, it is read on")
        self._base = self._folder.log_size(self._launch)
        self._offset, self._inode = 0, piece.inode
        return None

    def _copied(self) -> int:
        return self._folder.log_size(self._launch) - self._base

    def _keep(self, data: bytes) -> bool:
        try:
            self._folder.append_log(self._launch, data)
        except OSError:  # a full disk: what is missing is fetched when there is room
            return False
        return True
