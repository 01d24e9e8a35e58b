"""Host keys that a person took: tunebot's own known_hosts file, read beside those of OpenSSH."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent.paths import config_folder
from agent.ports import TargetUnusable

if TYPE_CHECKING:
    import asyncssh


class HostKeyUnknown(TargetUnusable):
    """Nobody vouches for the key that a host shows. `entry` is the host as known_hosts files name it.

    `compare` says how a person finds out whether the key is right.
    """

    def __init__(self, host: str, entry: str, key: "asyncssh.SSHKey") -> None:
        kind = key.algorithm.decode().removeprefix("ssh-").partition("-")[0]
        self.compare = f"compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub` prints on the host"
        message = f"the host key of {host} is not known: {key.algorithm.decode()} {key.get_fingerprint()}"
        hint = f"{self.compare}; if they agree, `tunebot doctor ssh:{host}` asks, or run `ssh {host}` once and say yes"
        super().__init__(message, hint)
        self.entry, self.key = entry, key


def own_known_hosts() -> Path:
    """The file of the keys that `remember` keeps, in the format of OpenSSH."""
    return config_folder() / "known_hosts"


def remember(error: HostKeyUnknown) -> None:
    """From now on that very key is known for that host. Raises TargetUnusable where the file cannot be written."""
    path = own_known_hosts()
    line = f"{error.entry} {error.key.export_public_key('openssh').decode().strip()}\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "rb+", buffering=0) as file:
            os.fchmod(fd, 0o600)
            size = file.seek(0, os.SEEK_END)
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # somebody's editor left the last line open
            os.write(fd, (b"\n" if torn else b"") + line.encode())
    except OSError as err:
        raise TargetUnusable(f"cannot write {path}: {err.strerror}", "the key was not remembered") from err
