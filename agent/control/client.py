"""A session that runs elsewhere, looked at and steered through its socket: another source for the same screen."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from agent import __version__
from agent.control.fold import Fold, Gap, records, whole_lines
from agent.control.places import Note, socket_of
from agent.control.wishes import LONGEST_LINE, write_wish
from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.state import State
from agent.core.views.panels import GpuUse
from agent.diagnostics import UserError
from agent.journal.codec import UnknownEvent
from agent.journal.journal import FILE
from agent.ports import TargetUnreachable
from agent.text import one_line

LONGEST_PAUSE_S = 10.0
"""Between two tries to reach a session again."""

SILENCE_S = 20.0
"""A session that says nothing for so long is out of reach, whatever the connection says."""

_AWAY = "out of reach"
_PIECE = 64 * 1024
_LONGEST_RECORD = 64 * 1024 * 1024
_GPUS = TypeAdapter(tuple[GpuUse, ...])


class Reader(Protocol):
    """The part of a stream that is read."""

    async def read(self, n: int) -> bytes:
        """At most so many bytes; none at its end."""


class Writer(Protocol):
    """The part of a stream that is written."""

    def write(self, data: bytes) -> None:
        """Send."""

    def close(self) -> None:
        """Let go."""


class Gone(Exception):
    """Nobody serves the session any more."""


class Door(Protocol):
    """The way to one session."""

    note: Note
    folder: Path
    """Where the logs of its launches can be read here."""

    def open(self) -> AbstractAsyncContextManager[tuple[Reader, Writer]]:
        """A connection. Raises Gone, TargetUnreachable for what may pass, and TargetUnusable."""

    async def journal(self) -> bytes:
        """The session's journal as it was left. Raises OSError, and as `open`."""


class HereDoor:
    """To a session on this machine."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.folder = Path(note.folder)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Reader, Writer]]:
        """A connection to its socket."""
        try:
            reader, writer = await asyncio.open_unix_connection(socket_of(self.folder))
        except OSError as error:
            raise Gone from error
        try:
            yield reader, writer
        finally:
            writer.close()

    async def journal(self) -> bytes:
        """The file."""
        return await asyncio.to_thread((self.folder / FILE).read_bytes)


class Audience(Protocol):
    """Who is shown the session."""

    def __call__(self, before: State, event: ev.Event, after: State) -> None:
        """Each event once, in order."""

    def watch_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        """What the GPUs do."""

    def tell_trouble(self, text: str) -> None:
        """What is not as it should be; empty where all is well."""

    def set_clock(self, ahead_s: float) -> None:
        """By how much the session's clock is ahead of this machine's."""


class Attached:
    """Follows one session until it ends; connects anew where the connection breaks."""

    def __init__(self, door: Door, audience: Audience) -> None:
        """Begins at once; a loop must run."""
        self.present = asyncio.Event()
        """Set once all that has happened so far was told."""
        self._door = door
        self._audience = audience
        self._fold = Fold(audience)
        self._writer: Writer | None = None
        self._trouble = ""
        self._caught_up = False
        self.following = asyncio.create_task(self._follow(), name="attached")

    async def run(self) -> State:
        """Until the session has ended; its last state.

        Raises UserError where it was cut off or cannot be understood, TargetUnusable where its host is refused.
        """
        return await self.following

    def submit(self, event: ev.Event) -> None:
        """Hand a wish to the session. While it is out of reach nothing is sent, and that is said."""
        self._audience.tell_trouble(self._send(write_wish(event)))

    def _send(self, line: bytes) -> str:
        """What is wrong afterwards, if anything."""
        if len(line) > LONGEST_LINE:
            return "that is too long to be sent"
        with contextlib.suppress(OSError):
            if self._writer is not None:
                self._writer.write(line)
                return self._trouble
        return f"{_AWAY}: what you just did was not sent"

    async def _follow(self) -> State:
        tries = 0
        while True:
            why = "the connection broke"
            try:
                async with self._door.open() as (reader, self._writer):
                    await self._read(reader)
            except Gone:
                return await self._last_words()
            except Gap as error:
                why = str(error)
            except (TargetUnreachable, OSError) as error:
                why = one_line(str(error)) or f"no word for {SILENCE_S:.0f} s"
                if not self.present.is_set():
                    hint = getattr(error, "hint", "") or "is the tunebot that runs it stopped?"
                    raise TargetUnreachable(f"session {self._door.note.session}: {why}", hint) from error
            except (UnknownEvent, IllegalTransition, ValueError) as error:
                raise self._not_understood(error) from error
            finally:
                tries = 0 if self._writer else tries + 1
                self._writer = None
            if (ended := self._ended()) is not None:
                return ended
            self._audience.tell_trouble(f"{_AWAY}: {why}; the session goes on, connecting again")
            # Full jitter: after an outage not everybody comes back in the same second.
            await asyncio.sleep(random.uniform(0, min(LONGEST_PAUSE_S, 0.2 * 2.0**tries)))

    def _ended(self) -> State | None:
        return self._fold.state if self._fold.end else None

    async def _read(self, reader: Reader) -> None:
        self._fold.restart()
        self._caught_up = False
        rest = b""
        while piece := await _within_silence(reader):
            rest += piece
            if len(rest) > _LONGEST_RECORD:
                raise ValueError("a record has no end")
            lines = whole_lines(rest)
            rest = rest[len(lines) :]
            for record in records(lines):
                self._take(record)
            if self._caught_up and self._fold.end is not None:
                return
            # What has been waiting for us must not keep the screen from being drawn.
            await asyncio.sleep(0)

    def _take(self, record: dict[str, Any]) -> None:
        match record:
            case {"seq": _}:
                self._fold.take(record)
            case {"present": _}:
                self._caught_up = True
                self.present.set()
            case {"gpus": gpus}:
                self._audience.watch_gpus(_GPUS.validate_python(gpus))
            case {"trouble": str(trouble)}:
                self._trouble = one_line(trouble)
                self._audience.tell_trouble(self._trouble)
            case {"refused": why}:
                self._audience.tell_trouble(f"the session does not take that: {one_line(str(why))}")
            case {"now": float(now)}:
                self._audience.set_clock(now - time.time())

    async def _last_words(self) -> State:
        """What the journal says where nobody serves the session: its end, or that it was cut off."""
        try:
            self._fold.restart()
            for record in records(whole_lines(await self._door.journal())):
                self._fold.take(record)
        except (Gap, UnknownEvent, IllegalTransition, ValueError) as error:
            raise self._not_understood(error) from error
        except OSError as error:
            text = f"session {self._door.note.session} is gone, and its journal cannot be read: {error.strerror}"
            raise UserError(text, "was it removed?") from error
        if (ended := self._ended()) is not None:
            return ended
        session = self._door.note.session
        raise UserError(
            f"session {session} was cut off: the tunebot that ran it is gone",
            f"its server goes on; tunebot resume {self._door.note.folder} goes on with it, on the machine where it ran",
        )

    def _not_understood(self, error: Exception) -> UserError:
        text = "the session cannot be understood" if isinstance(error, ValidationError) else one_line(str(error))
        hint = f"this is tunebot {__version__}: use the same version at both ends"
        return UserError(f"session {self._door.note.session}: {text}", hint)


async def _within_silence(reader: Reader) -> bytes:
    async with asyncio.timeout(SILENCE_S):
        return await reader.read(_PIECE)


@asynccontextmanager
async def attached(door: Door, audience: Audience) -> AsyncIterator[tuple[Attached, Path]]:
    """A session that was followed up to the present, and where its logs are; `run()` follows it to its end.

    Raises what `Attached.run` raises.
    """
    made = Attached(door, audience)
    present = asyncio.create_task(made.present.wait(), name="attached: present")
    try:
        await asyncio.wait((made.following, present), return_when=asyncio.FIRST_COMPLETED)
        if made.following.done():
            made.following.result()
        yield made, door.folder
    finally:
        made.following.cancel()
        present.cancel()
        await asyncio.gather(made.following, present, return_exceptions=True)
