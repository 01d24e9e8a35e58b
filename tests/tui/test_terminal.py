"""The command on a real terminal: what is drawn, how it ends, what is left on the screen after it."""

import asyncio
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

from agent.sim.ledger import alive_pids

DEADLINE_S = 60.0


class Terminal:
    """A program behind a pseudo-terminal, and all that it has written."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int) -> None:
        self.process = process
        self.output = b""
        self._descriptor = descriptor
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 1 << 16)
        except OSError:  # Linux says EIO once the other side is closed
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self.output += data
        self._news.set()

    async def until(self, text: str) -> None:
        """Wait for a text after what was seen so far."""
        async with asyncio.timeout(DEADLINE_S):
            while text.encode() not in self.output:
                self._news.clear()
                await self._news.wait()
        self.output = self.output.partition(text.encode())[2]

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._descriptor, keys)

    def go_away(self) -> None:
        """What a terminal does whose window is closed: nobody reads any more, and its programs are told."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._descriptor)
        os.close(nowhere)
        self.process.send_signal(signal.SIGHUP)

    async def end(self) -> tuple[int, str]:
        """The exit code, and what was written after the screen was closed."""
        async with asyncio.timeout(DEADLINE_S):
            code = await self.process.wait()
            while b"journal: " not in self.output and b"tunebot: " not in self.output:
                self._news.clear()
                await self._news.wait()
        return code, self.output.rpartition(b"\x1b[?1049l")[2].decode()


@asynccontextmanager
async def terminal(folder: Path, *arguments: str) -> AsyncIterator[Terminal]:
    """tunebot on a terminal of 120 x 40."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent.cli",
        *arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(folder / "state")},
    )
    os.close(theirs)
    shown = Terminal(process, ours)
    try:
        yield shown
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


@pytest.mark.parametrize("way", ["keys", "signal"])
async def test_the_demo_is_shown_and_left(tmp_path: Path, way: str) -> None:
    async with terminal(tmp_path, "demo", "--logs", str(tmp_path / "logs")) as t:
        await t.until("load-weights")
        if way == "keys":
            t.type(b"\x11")
            await t.until("Leave the session")
            t.type(b"s")
        else:
            t.process.send_signal(signal.SIGTERM)
        code, after = await t.end()
    assert code == 130
    assert "session interrupted after" in after and "journal: " in after and "TODO" in after
    assert "Traceback" not in after


async def test_a_terminal_that_goes_away_leaves_no_server_behind(tmp_path: Path) -> None:
    async with terminal(tmp_path, "demo", "--logs", str(tmp_path / "logs")) as t:
        await t.until("load-weights")
        t.go_away()
        async with asyncio.timeout(DEADLINE_S):
            assert await t.process.wait() == 130
    (folder,) = (path for path in (tmp_path / "logs").iterdir() if path.is_dir())
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []


async def test_what_is_wrong_before_the_screen_is_said_in_words(tmp_path: Path) -> None:
    async with terminal(tmp_path, "demo", "--target", "nowhere", "--logs", str(tmp_path / "logs")) as t:
        code, after = await t.end()
    assert code == 3 and "tunebot: there is no target nowhere" in after and "\x1b" not in after
