"""Sessions that run on another machine: found by SFTP, attached to through its sshd, their logs copied here."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import asyncssh

from agent.control.client import Gone, Reader, Writer
from agent.control.places import Note, read_note
from agent.diagnostics import UserError
from agent.journal.journal import FILE
from agent.paths import cache_folder, targets_files
from agent.ports import TargetUnreachable, TargetUnusable
from agent.targets.dial import Dialling, dial
from agent.targets.file import find_target
from agent.text import one_line

COPY_EVERY_S = 0.5

_LIMIT_S = 20.0
"""For one answer of the other machine."""

_LARGEST_NOTE = 64 * 1024
_PIECE = 1 << 20
_LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*\.log")
_STATE = ".local/state"


class Box:
    """A machine on which sessions run, and the one connection to it."""

    def __init__(self, host: str, to: Dialling, state: str) -> None:
        """`state` is the state folder there (XDG_STATE_HOME), from the home folder if it is not absolute."""
        self.host = host
        self._to, self._state = to, state
        self._connection: asyncssh.SSHClientConnection | None = None
        self._sftp: asyncssh.SFTPClient | None = None

    async def connect(self) -> tuple[asyncssh.SSHClientConnection, asyncssh.SFTPClient]:
        """The connection, and files through it. Raises TargetUnreachable and TargetUnusable."""
        if self._connection is None or self._connection.is_closed() or self._sftp is None:
            self.close()
            self._connection = await dial(self._to)
            try:
                async with asyncio.timeout(_LIMIT_S):
                    self._sftp = await self._connection.start_sftp_client()
            except (asyncssh.Error, OSError, TimeoutError) as error:
                self.close()
                hint = "its sshd needs `Subsystem sftp`"
                raise TargetUnusable(f"cannot read files on {self.host}: {_words(error)}", hint) from error
        return self._connection, self._sftp

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.abort()
        self._connection = self._sftp = None

    async def running(self) -> dict[str, Note]:
        """The sessions that answer there by their sockets, newest first. Raises as `connect`."""
        connection, sftp = await self.connect()
        found: dict[str, Note] = {}
        mute = ""
        try:
            async with asyncio.timeout(_LIMIT_S):
                home = str(await sftp.realpath("."))
                folder = PurePosixPath(home, self._state.removeprefix("~/"), "tunebot", "run")
                for file in await _notes(sftp, folder):
                    path = str(file.with_suffix(".sock"))
                    note = read_note(await _read(sftp, str(file), _LARGEST_NOTE))
                    if note is None:
                        continue
                    if await _answers(connection, path):
                        found[path] = note
                    elif await sftp.exists(f"/proc/{note.pid}"):
                        mute = note.session
        except (asyncssh.Error, OSError, TimeoutError) as error:
            raise TargetUnreachable(f"{self.host} does not say what runs there: {_words(error)}") from error
        # sshd says the same of a socket that a crash left there and of one that it may not connect to.
        if mute and not found:
            hint = "does its sshd have `AllowStreamLocalForwarding no`?"
            raise TargetUnusable(f"{self.host} does not connect to the socket of session {one_line(mute)}", hint)
        return dict(sorted(found.items(), key=lambda item: item[1].started, reverse=True))


async def _answers(connection: asyncssh.SSHClientConnection, path: str) -> bool:
    try:
        _, writer = await connection.open_unix_connection(path)
    except asyncssh.ChannelOpenError:
        return False
    writer.close()
    return True


def _words(error: Exception) -> str:
    return one_line(str(error)) or "no answer"


async def _notes(sftp: asyncssh.SFTPClient, folder: PurePosixPath) -> list[PurePosixPath]:
    try:
        names = [str(name) for name in await sftp.listdir(str(folder))]
    except asyncssh.SFTPNoSuchFile:
        return []
    return [folder / name for name in names if re.fullmatch(r"[0-9a-f]{12}\.json", name)]


async def _read(sftp: asyncssh.SFTPClient, path: str, size: int, offset: int = 0) -> bytes:
    async with sftp.open(path, "rb") as file:
        data = await file.read(size, offset)
    assert isinstance(data, bytes), "the file was opened as one of bytes"
    return data


def box_of(name: str) -> Box:
    """The machine of a name of targets.yaml, of `ssh:HOST`, or of a plain HOST. Raises TargetUnusable, UserError."""
    entry = find_target(name, targets_files())
    if entry is None:
        return Box(name, Dialling(host=name.removeprefix("ssh:")), _STATE)
    if entry.host is None:
        raise UserError(f"{name} is this machine", "leave --host out")
    return Box(name, Dialling(host=entry.host), entry.env.get("XDG_STATE_HOME", _STATE))


class ThereDoor:
    """To a session on another machine."""

    def __init__(self, box: Box, path: str, note: Note, tell_trouble: Callable[[str], None]) -> None:
        """`path` is that of the socket there; `tell_trouble` is told where logs cannot be copied."""
        self.note = note
        self.folder = cache_folder() / "attached" / PurePosixPath(path).stem
        self._box, self._path, self._tell = box, path, tell_trouble

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Reader, Writer]]:
        """A connection to its socket; while it holds, the logs are copied."""
        self._make_room()
        connection, sftp = await self._box.connect()
        try:
            async with asyncio.timeout(_LIMIT_S):
                reader, writer = await connection.open_unix_connection(self._path)
        except asyncssh.ChannelOpenError as error:
            raise Gone from error
        except (asyncssh.Error, OSError, TimeoutError) as error:
            self._box.close()
            raise TargetUnreachable(f"{self._box.host}: {_words(error)}") from error
        copying = asyncio.create_task(self._copy(sftp), name="copy logs")
        try:
            yield reader, writer
        except asyncssh.Error as error:
            raise TargetUnreachable(f"{self._box.host}: {_words(error)}") from error
        finally:
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            writer.close()

    def _make_room(self) -> None:
        folder = self.folder / "launches"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            hint = "set XDG_CACHE_HOME to a folder that you can write"
            raise TargetUnusable(f"cannot make {folder}: {error.strerror}", hint) from error

    async def journal(self) -> bytes:
        """The file there."""
        _, sftp = await self._box.connect()
        try:
            async with asyncio.timeout(_LIMIT_S):
                return await _read(sftp, f"{self.note.folder}/{FILE}", -1)
        except (asyncssh.Error, TimeoutError) as error:
            raise OSError(None, _words(error)) from error

    async def _copy(self, sftp: asyncssh.SFTPClient) -> None:
        """Copy what the logs of the launches grew by, the newest first, until the connection breaks."""
        there, here = f"{self.note.folder}/launches", self.folder / "launches"
        try:
            while True:
                began = time.monotonic()
                more = False
                for name, size in await _logs(sftp, there):
                    more = await _copy_piece(sftp, f"{there}/{name}", size, here / name) or more
                if not more:
                    await asyncio.sleep(max(0.0, COPY_EVERY_S - (time.monotonic() - began)))
        except asyncssh.SFTPConnectionLost:
            pass  # whoever reads the events says so
        except (asyncssh.Error, OSError) as error:
            self._tell(f"the logs are not copied to {here}: {_words(error)}")


async def _logs(sftp: asyncssh.SFTPClient, folder: str) -> list[tuple[str, int]]:
    """The logs of a folder and their sizes, that which was written last first."""
    try:
        entries = [entry for entry in await sftp.readdir(folder) if _LOG.fullmatch(str(entry.filename))]
    except asyncssh.SFTPNoSuchFile:
        return []
    entries.sort(key=lambda entry: entry.attrs.mtime or 0, reverse=True)
    return [(str(entry.filename), entry.attrs.size or 0) for entry in entries]


async def _copy_piece(sftp: asyncssh.SFTPClient, there: str, size: int, here: Path) -> bool:
    """Add the next piece to a copy; whether there is more to come. One that is longer is begun anew."""
    fd = os.open(here, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        have = os.fstat(fd).st_size
        if have > size:
            os.ftruncate(fd, 0)
            have = 0
        if have == size:
            return False
        written = os.write(fd, await _read(sftp, there, _PIECE, have))
        return written > 0 and have + written < size
    finally:
        os.close(fd)
