"""The folder of one session under `logs/`: its journal, a copy of the playbook, server logs, measurements."""

import errno
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.ports import TargetUnusable

PLAYBOOK = "playbook.yaml"
_ELSEWHERE = "choose another folder with --logs"
_GITIGNORE = "*\n!.gitignore\n!sample/\n!sample/**\n"


class SessionFolder:
    """Where one session writes. Readable by its owner only."""

    def __init__(self, path: Path) -> None:
        """`path` must exist; `create` makes one."""
        self.path = path
        self._unwritten = bytearray()

    @classmethod
    def create(cls, logs: Path, name: str) -> "SessionFolder":
        """A new folder, named by time, playbook and four random hex digits. Raises TargetUnusable."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:40].strip("-.") or "session"
        path = logs / f"{stamp}-{slug}-{secrets.token_hex(2)}"
        try:
            logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            if logs.is_symlink() or logs.stat().st_mode & 0o002:
                raise TargetUnusable(f"{logs} is a link or writable by everybody", "choose another with --logs")
            if not (logs / ".gitignore").exists():
                (logs / ".gitignore").write_text(_GITIGNORE)
            path.mkdir(mode=0o700)
            (path / "launches").mkdir(mode=0o700)
        except OSError as error:
            raise TargetUnusable(f"cannot make {path}: {error.strerror}", _ELSEWHERE) from error
        return cls(path)

    @property
    def id(self) -> str:
        """The session's id: the folder's name."""
        return self.path.name

    def keep_playbook(self, text: str) -> None:
        """Put the (redacted) playbook beside the journal. Raises TargetUnusable."""
        try:
            self._append(self.path / PLAYBOOK, text.encode())
        except OSError as error:
            raise TargetUnusable(f"cannot write {self.path / PLAYBOOK}: {error.strerror}", _ELSEWHERE) from error

    def log_of(self, launch: str) -> Path:
        """The file that holds what a launch printed."""
        return self.path / "launches" / f"{launch}.log"

    def append_log(self, launch: str, data: bytes) -> None:
        """Add to the copy of a launch's log. Raises OSError where the disk does not take it, or not all of it."""
        self._append(self.log_of(launch), data)

    def log_size(self, launch: str) -> int:
        """Bytes of the copy of a launch's log."""
        path = self.log_of(launch)
        return path.stat().st_size if path.exists() else 0

    def read_log(self, launch: str, piece: int) -> Iterator[bytes]:
        """The copy of a launch's log in pieces of so many bytes; nothing where there is none."""
        path = self.log_of(launch)
        if path.exists():
            with path.open("rb") as file:
                while data := file.read(piece):
                    yield data

    def add_measurement(self, record: dict[str, Any]) -> None:
        """One request of a measurement as a JSON line. On a full disk it waits for the next one."""
        self._unwritten += json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with suppress(OSError):
            self._append(self.path / "measurements.jsonl", bytes(self._unwritten))
            self._unwritten.clear()

    @staticmethod
    def _append(path: Path, data: bytes) -> None:
        """All of it, or nothing and an OSError."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            start = os.fstat(fd).st_size
            if os.write(fd, data) < len(data):
                os.ftruncate(fd, start)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(fd)
