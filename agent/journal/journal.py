"""The journal file: append with a checksum, recover after a crash.

A record is one line `{"seq":n,"event":"Name","data":{...},"crc":"8 hex digits"}`, in this order and without spaces; the
checksum is CRC-32 of the line up to it. A torn last line is moved to `journal.torn`, never appended to.
"""

import errno
import fcntl
import json
import os
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent import __version__
from agent.core.events import Event, PhaseProgressed, TaskProgressed
from agent.journal.codec import UnknownEvent, decode_json, encode

FILE = "journal.jsonl"
_TICKS = (PhaseProgressed, TaskProgressed)
_TICK_NAMES = [kind.__name__.encode() for kind in _TICKS]
_HEAD = re.compile(rb'\{"seq":(\d{1,18}),"event":"(\w+)","data":')


class JournalError(Exception):
    """The journal cannot be used. The message says where and why; the hint what to do.

    `before` are the events in front of the record that cannot be read.
    """

    def __init__(self, message: str, hint: str = "", before: Sequence[Event] = ()) -> None:
        super().__init__(message)
        self.hint = hint
        self.before = before


class JournalFull(JournalError):
    """The disk does not take an event now; it may later. `reason` is the system's word for why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}", "free some space; nothing new is started until then")
        self.reason = reason


class Journal:
    """Appends events to a session's journal. One writer at a time, held by a lock on the file."""

    def __init__(self, folder: Path, redact: Callable[[Any], Any]) -> None:
        """Open or create `folder`/journal.jsonl. `redact` takes secrets out of a JSON-ready value.

        Raises JournalError where another process writes it, or where it cannot be opened.
        """
        self.path = folder / FILE
        self.redact = redact
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            is_new = not self.path.exists()
            self._fd = os.open(self.path, flags, 0o600)
            if is_new:
                _sync_folder(folder)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{self.path} is being written by another tunebot") from None
        except OSError as error:
            raise JournalError(f"cannot open {self.path}: {error.strerror}") from error
        self._seq = _quarantine_tail(self.path, self._fd)

    def append(self, event: Event) -> None:
        """Write one event; on return it survives a crash of tunebot, and of the machine unless it is progress.

        Raises JournalFull where the disk does not take it: the event must then not be acted on.
        """
        line = _line(self._seq + 1, self.redact(encode(event)))
        start = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if not isinstance(event, _TICKS):
                os.fdatasync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, start)
            raise JournalFull(self.path, error.strerror or str(error)) from error
        self._seq += 1

    def close(self) -> None:
        """Give the file and its lock back."""
        os.close(self._fd)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file survive a crash of the machine too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _line(seq: int, record: dict[str, Any]) -> bytes:
    body = json.dumps({"seq": seq, **record}, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


class _Record(NamedTuple):
    """A record as it stands in its line; `data` is still JSON text."""

    seq: int
    event: str
    data: bytes


def _parse(line: bytes) -> _Record | None:
    """The record of a complete line, or None where it is damaged."""
    body, _, rest = line.rpartition(b',"crc":"')
    head = _HEAD.match(body)
    if head is None or rest != b'%08x"}\n' % zlib.crc32(body):
        return None
    return _Record(int(head[1]), head[2].decode(), body[head.end() :])


def _quarantine_tail(path: Path, fd: int) -> int:
    """Move a torn last record aside. The sequence number of the last good record."""
    data = path.read_bytes()
    good, last = 0, 0
    for line in data.splitlines(keepends=True):
        record = _parse(line)
        if record is None:
            break
        good, last = good + len(line), record.seq
    tail = data[good:]
    if tail.count(b"\n") > 1:
        raise JournalError(f"{path} is damaged after record {last}", "keep the file; replay shows what is before it")
    if tail:
        with path.with_name("journal.torn").open("ab") as torn:
            torn.write(tail + b"\n")
        os.ftruncate(fd, good)
    return last


def is_being_written(folder: Path) -> bool:
    """Whether a running tunebot writes this session's journal."""
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_journal(folder: Path, progress: bool = True) -> list[Event]:
    """All events of a session, in order; a torn last record is left out.

    Without `progress`, the ticks that only tell how far something is are passed over unread: a summary is then quick
    however long the session was.

    Raises JournalError where the file is missing, empty, damaged before its end, or of an unknown version.
    """
    path = folder / FILE
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        hint = "give the folder of a session, such as logs/sample"
        raise JournalError(f"cannot read {path}: {error.strerror}", hint) from error
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if not progress and line.startswith(tuple(b'{"seq":%d,"event":"%b"' % (number, name) for name in _TICK_NAMES)):
            continue
        record = _parse(line)
        if record is None or record.seq != number:
            if number == len(lines) and record is None:
                break
            raise JournalError(f"{path}:{number}: the record is damaged", before=events)
        try:
            events.append(decode_json(record.event, record.data))
        except UnknownEvent as error:
            hint = _written_by(lines[:number])
            raise JournalError(f"{path}:{number}: {error}", hint, before=events) from error
    if not events:
        raise JournalError(f"{path} holds no event")
    return events


def _written_by(lines: Sequence[bytes]) -> str:
    """Which tunebot wrote the last of some records, and what can read them."""
    for line in reversed(lines):
        record = _parse(line)
        if record and record.event in ("SessionStarted", "SessionResumed"):
            writer = json.loads(record.data).get("version", "of another version")
            return f"tunebot {writer} wrote it, this is {__version__}: use the tunebot that wrote it, or a newer one"
    return ""
