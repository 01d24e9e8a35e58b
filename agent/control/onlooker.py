"""A session that another tunebot runs, read from its journal as it grows: a second one changes nothing."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.control.client import Audience
from agent.control.fold import Fold, Gap, records, whole_lines
from agent.core import events as ev
from agent.core.state import State
from agent.journal.journal import FILE, is_being_written

EVERY_S = 0.2
_LOOKS_BETWEEN_PROBES = 10
_PIECE = 1 << 20


class Onlooker:
    """Follows the file of one session until the session has ended."""

    def __init__(self, folder: Path, audience: Audience) -> None:
        self._folder = folder
        self._audience = audience
        self._fold = Fold(audience)
        self._offset = 0

    def submit(self, event: ev.Event) -> None:
        """Nothing is handed in: the screen is read-only."""

    async def catch_up(self) -> None:
        """Tell what is in the file and was not told yet. Raises OSError, ValueError and IllegalTransition."""
        with (self._folder / FILE).open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._restart()
            file.seek(self._offset)
            size = _PIECE
            while data := file.read(size):
                lines = whole_lines(data)
                if not lines and len(data) < size:
                    return
                try:
                    for record in records(lines):
                        self._fold.take(record)
                except Gap:
                    # What the disk did not keep was taken back: the file is read again.
                    self._restart()
                    return
                self._offset += len(lines)
                file.seek(self._offset)
                size = _PIECE if lines else 2 * size
                await asyncio.sleep(0)

    async def run(self) -> State:
        """Until the session has ended. Raises as `catch_up`."""
        looks = 0
        while self._fold.end is None:
            if looks % _LOOKS_BETWEEN_PROBES == 0:
                cut_off = not is_being_written(self._folder)
                self._audience.tell_trouble("its tunebot is gone: tunebot resume goes on" if cut_off else "")
            looks += 1
            await asyncio.sleep(EVERY_S)
            await self.catch_up()
        assert self._fold.state is not None, "an end has a state"
        return self._fold.state

    def _restart(self) -> None:
        self._fold.restart()
        self._offset = 0


@asynccontextmanager
async def looking_on(folder: Path, audience: Audience) -> AsyncIterator[tuple[Onlooker, Path]]:
    """A session that was read up to the present; `run()` follows it to its end. Raises as `Onlooker.catch_up`."""
    onlooker = Onlooker(folder, audience)
    await onlooker.catch_up()
    yield onlooker, folder
