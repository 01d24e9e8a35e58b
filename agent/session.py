"""The folder of one session under `logs/`: its journal, a copy of the playbook, server logs, measurements."""

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.ports import TargetUnusable

PLAYBOOK = "playbook.yaml"
_GITIGNORE = "*\n!.gitignore\n!sample/\n!sample/**\n"


class SessionFolder:
    """Where one session writes. Readable by its owner only."""

    def __init__(self, path: Path) -> None:
        """`path` must exist; `create` makes one."""
        self.path = path

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
            hint = "choose another folder with --logs"
            raise TargetUnusable(f"cannot make {path}: {error.strerror}", hint) from error
        return cls(path)

    @property
    def id(self) -> str:
        """The session's id: the folder's name."""
        return self.path.name

    def keep_playbook(self, text: str) -> None:
        """Put the (redacted) playbook beside the journal."""
        self._append(self.path / PLAYBOOK, text.encode())

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
        """One request of a measurement as a JSON line."""
        self._append(self.path / "measurements.jsonl", json.dumps(record, ensure_ascii=False).encode() + b"\n")

    @staticmethod
    def _append(path: Path, data: bytes) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "ab") as file:
            file.write(data)
