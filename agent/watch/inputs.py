"""Log files as bytes: plain, gzip or zstd, from a file or from standard input; oldest line first."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import IO

from agent.text import decode

CHUNK = 1 << 18
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_TIME = re.compile(rb"(20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)")
_REVERSED_LIMIT = 64 << 20
_MANY = 10
_GZIP_FORMAT = 31  # zlib's window bits for a gzip header


class UnusableInput(Exception):
    """A file that is no log. The message says why."""


@dataclass(slots=True)
class LogFile:
    """A log that can be read more than once, oldest line first.

    `turned` is the number of lines of a log that was newest first: its line numbers count from the other end.
    """

    file: IO[bytes]
    turned: int | None = None

    def chunks(self) -> Iterator[bytes]:
        """The whole log, piece by piece."""
        self.file.seek(0)
        while data := self.file.read(CHUNK):
            yield data

    def number(self, number: int) -> int:
        """The number that a line has in the file as it is."""
        return number if self.turned is None else self.turned + 1 - number

    def around(self, number: int, lines: int) -> list[tuple[int, str]]:
        """The lines before and after one, with the numbers that they have in the file."""
        self.file.seek(0)
        wanted = islice(self.file, max(0, number - 1 - lines), number + lines)
        first = max(1, number - lines)
        shown = ((first + index, decode(row.strip(b"\r\n"), 500)) for index, row in enumerate(wanted))
        return sorted((self.number(at), text) for at, text in shown)


@contextmanager
def open_log(name: str) -> Iterator[LogFile]:
    """A log, decompressed; `-` is standard input. Raises UnusableInput."""
    try:
        with _opened(name) as raw, _plain(raw) as plain:
            head = plain.read(CHUNK)
            plain.seek(0)
            _check(head)
            if _is_newest_first(head):
                with tempfile.TemporaryFile() as spool:
                    yield LogFile(spool, _turn(plain, spool))
            else:
                yield LogFile(plain)
    except (OSError, EOFError, zlib.error) as error:
        raise UnusableInput(getattr(error, "strerror", None) or str(error)) from error


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name != "-":
        with Path(name).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as spool:  # its lines are needed twice
        shutil.copyfileobj(sys.stdin.buffer, spool, CHUNK)
        spool.seek(0)
        yield spool


@contextmanager
def _plain(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP):
        with tempfile.TemporaryFile() as spool:
            _gunzip(raw, spool)
            yield spool
    elif magic == _ZSTD:
        with tempfile.TemporaryFile() as spool:
            _unzstd(raw, spool)
            yield spool
    else:
        yield raw


def _gunzip(raw: IO[bytes], spool: IO[bytes]) -> None:
    """The log of a machine that died ends in the middle: what can be read of it is the log."""
    stream, pending = zlib.decompressobj(_GZIP_FORMAT), b""
    try:
        while data := pending or raw.read(CHUNK):
            spool.write(stream.decompress(data))
            pending = stream.unused_data
            if stream.eof:  # files of gzip may stand one after the other
                stream = zlib.decompressobj(_GZIP_FORMAT)
    except zlib.error:
        if not spool.tell():
            raise
    spool.seek(0)


def _unzstd(raw: IO[bytes], spool: IO[bytes]) -> None:
    # Python has zstd since 3.14 only.
    program = shutil.which("zstd")
    if program is None:
        raise UnusableInput("the program `zstd` is needed to read this file")
    os.lseek(raw.fileno(), 0, os.SEEK_SET)  # the other process reads on where the file stands, not our buffer
    done = subprocess.run([program, "-dcq"], stdin=raw, stdout=spool, stderr=subprocess.DEVNULL, check=False)
    if done.returncode and spool.tell() == 0:
        raise UnusableInput("zstd cannot read this file")
    spool.seek(0)


def _check(head: bytes) -> None:
    if not head.strip():
        raise UnusableInput("the log is empty")
    if head.count(b"\0") > len(head) // 20:
        raise UnusableInput("this is not a text file")


def _is_newest_first(head: bytes) -> bool:
    """Whether times go down nearly everywhere: the export of a log console."""
    times = [found[0] for line in head.splitlines()[:2000] if (found := _TIME.search(line[:120]))]
    down = sum(a > b for a, b in pairwise(times))
    up = sum(a < b for a, b in pairwise(times))
    return down > _MANY and down > 9 * up


def _turn(plain: IO[bytes], spool: IO[bytes]) -> int:
    """Write the lines in reverse; how many there are."""
    rows = plain.read(_REVERSED_LIMIT).removesuffix(b"\n").split(b"\n")
    spool.write(b"\n".join(reversed(rows)) + b"\n")
    spool.seek(0)
    return len(rows)
