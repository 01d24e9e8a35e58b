"""Serves a running session at its socket: its events to whoever looks on, a person's wishes back to its engine.

The journal is the queue. Each client is sent the file from its beginning at its own pace, so nobody waits for one
that is slow, and one that comes back has missed nothing.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from agent import __version__
from agent.control.fold import whole_lines
from agent.control.places import Note, open_place, remove, socket_of
from agent.control.wishes import LONGEST_LINE, Refused, read_wish
from agent.core import events as ev
from agent.core.state import State
from agent.core.views.panels import GpuUse
from agent.journal.journal import FILE
from agent.targets.places import Unfit
from agent.telemetry import Tell

EVERY_S = 0.05
"""How often the journal is looked at for a client that has all of it."""

WORD_EVERY_S = 5.0
"""How often a client is told the time, so that silence means something."""

FAREWELL_S = 2.0
"""How long a client may take to read the last events."""

_PIECE = 256 * 1024


class Steered(Protocol):
    """The part of an engine that is served. `trouble` is what keeps it from working as it should, or empty."""

    state: State
    trouble: str

    def submit(self, event: ev.Event) -> None:
        """Hand in an event."""


class Control:
    """The clients of one session."""

    def __init__(self, session: Steered, folder: Path, gpus: Tell | None) -> None:
        self._session = session
        self._folder = folder.resolve()
        self._screen = gpus
        self._gpus: tuple[GpuUse, ...] = ()
        self._clients: set[asyncio.Task[None]] = set()
        self._ending = False

    def note(self) -> Note:
        """What is to be known of the session beside its socket."""
        state = self._session.state
        return Note(
            session=state.session,
            folder=str(self._folder),
            pid=os.getpid(),
            started=state.started_at,
            name=state.playbook.name,
        )

    @property
    def watched(self) -> bool:
        """Whether anybody looks at the GPUs."""
        return self._screen is not None or bool(self._clients)

    def tell_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        """Pass on what the telemetry saw."""
        self._gpus = gpus
        if self._screen is not None:
            self._screen(gpus)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one more client."""
        task = asyncio.create_task(self._serve(reader, writer), name="control client")
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def close(self) -> None:
        """Let the clients read the last events, then leave them."""
        self._ending = True
        if self._clients:
            _, slow = await asyncio.wait(self._clients, timeout=FAREWELL_S)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that goes away is no fault: what breaks with it ends here.
        with contextlib.suppress(OSError), contextlib.closing(writer.transport):
            if _peer(writer) not in (0, os.getuid()):
                return
            hearing = asyncio.create_task(self._hear(reader, writer), name="control wishes")
            try:
                await self._tell(writer, hearing)
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
            writer.close()
            await writer.wait_closed()

    async def _tell(self, writer: asyncio.StreamWriter, hearing: "asyncio.Task[None]") -> None:
        state = self._session.state
        hello = {
            "tunebot": __version__,
            "session": state.session,
            "folder": str(self._folder.resolve()),
            "now": time.time(),
        }
        writer.write(_line(**hello))
        said: dict[str, Any] = {}
        spoke_at = time.monotonic()
        with (self._folder / FILE).open("rb", buffering=0) as journal:
            while not hearing.done():
                ending = self._ending
                if data := _next_lines(journal.fileno(), journal.tell()):
                    journal.seek(len(data), os.SEEK_CUR)
                    writer.write(data)
                elif ending:
                    return
                else:
                    for key, value in self._present().items():
                        if said.get(key) != value:
                            said[key] = value
                            writer.write(_line(**{key: value}))
                    if time.monotonic() - spoke_at > WORD_EVERY_S:
                        spoke_at = time.monotonic()
                        writer.write(_line(now=time.time()))
                    await asyncio.sleep(EVERY_S)
                await writer.drain()

    def _present(self) -> dict[str, Any]:
        """What is so now and in no journal; `present` itself says once that the client has all of that."""
        gpus = [asdict(gpu) for gpu in self._gpus]
        return {"gpus": gpus, "trouble": self._session.trouble, "present": True}

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                writer.write(_line(refused=f"a line of more than {LONGEST_LINE} bytes"))
                return
            if not line.endswith(b"\n"):
                return
            try:
                self._session.submit(read_wish(line, time.time()))
            except Refused as refusal:
                writer.write(_line(refused=str(refusal)))
                await writer.drain()


@asynccontextmanager
async def serving(session: Steered, folder: Path, gpus: Tell | None) -> AsyncIterator[Control]:
    """While inside, the session can be attached to. `gpus` is the session's own screen, if it has one.

    Where there can be no socket the session goes on without, and says so.
    """
    control = Control(session, folder, gpus)
    path = socket_of(folder)
    try:
        listening = open_place(path, control.note())
    except Unfit as error:
        session.submit(ev.Noted(at=time.time(), text=f"nobody can attach to this session: {error}; {error.hint}"))
        yield control
        return
    server = await asyncio.start_unix_server(control.accept, sock=listening, limit=LONGEST_LINE)
    try:
        yield control
    finally:
        with contextlib.suppress(OSError):
            remove(path)
        server.close()
        await control.close()


def _peer(writer: asyncio.StreamWriter) -> int:
    """The user at the other end."""
    layout = struct.Struct("3i")
    packed = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size)
    return int(layout.unpack(packed)[1])


def _next_lines(fd: int, offset: int) -> bytes:
    """The next whole lines of a file, about _PIECE bytes of them; nothing where there is none yet."""
    size = _PIECE
    while True:
        data = os.pread(fd, size, offset)
        if (lines := whole_lines(data)) or len(data) < size:
            return lines
        size *= 2


def _line(**values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"
