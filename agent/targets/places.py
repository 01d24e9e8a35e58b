"""Programs, files and the work folder of a machine, without a shell. Runs here and on targets over SSH.

Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path


class Unfit(Exception):
    """What was asked for is not there, or cannot be trusted. The hint says what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def find_program(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> str:
    """The path of the program that argv starts. Raises Unfit where there is none."""
    if not argv:
        raise Unfit("an empty command")
    path = env.get("PATH", os.defpath)
    if "/" in argv[0]:
        found = shutil.which(str(cwd / argv[0]))
        hint = "does it exist, and may it be executed?"
    else:
        found = shutil.which(argv[0], path=path)
        hint = f"not found in PATH={path}"
    if found is None:
        raise Unfit(f"no program {argv[0]}", hint)
    return found


def read_range(path: Path, offset: int, limit: int) -> bytes:
    """At most `limit` bytes from `offset`. Raises OSError, and ValueError for what is not a regular file."""
    return read_piece(path, offset, limit)[0]


def read_piece(path: Path, offset: int, limit: int) -> tuple[bytes, int, int]:
    """As `read_range`, with the file's inode and its size after reading."""
    # Without O_NONBLOCK opening a fifo would wait for its writer.
    fd = os.open(str(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        data = bytearray()
        while len(data) < limit:
            chunk = os.pread(fd, limit - len(data), offset + len(data))
            if not chunk:
                break
            data += chunk
        found = os.fstat(fd)
        return bytes(data), found.st_ino, found.st_size
    finally:
        os.close(fd)


def make_workdir(workdir: Path) -> None:
    """Make the work folder, or check it: whoever can write there could be us. Raises Unfit."""
    try:
        workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = workdir.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            hint = f"it must be a folder of yours that nobody else can write: chmod 700 {workdir}"
            raise Unfit(f"{workdir} is a link, or others can write there", hint)
        workdir.chmod(0o700)
    except OSError as err:
        raise Unfit(f"cannot use {workdir}: {err.strerror}", "choose another work folder") from err


def install_wrapper(workdir: Path, source: bytes) -> Path:
    """The wrapper's path in the work folder, where it is kept under the hash of its content. Raises Unfit."""
    make_workdir(workdir)
    script = workdir / f"wrapper-{hashlib.sha256(source).hexdigest()[:8]}.py"
    try:
        if not script.exists() or script.read_bytes() != source:
            temporary = script.with_name(f"{script.name}.{os.urandom(4).hex()}.tmp")
            temporary.touch(mode=0o600)
            temporary.write_bytes(source)
            temporary.replace(script)
    except OSError as err:
        raise Unfit(f"cannot use {workdir}: {err.strerror}", "choose another work folder") from err
    return script
