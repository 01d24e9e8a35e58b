"""Real shells that a person types into: bash, zsh and fish in a terminal of their own."""

import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

DEADLINE_S = 20.0
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78A-Z])|[\r\x07\x0f]")

START = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
LEARN = {
    "bash": 'eval "$(tunebot completion bash)"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(tunebot completion zsh)"',
    "fish": "tunebot completion fish | source",
}


class Shell:
    """A shell in a terminal: what is typed, and what it has shown since."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._seen = b""

    def type(self, text: str) -> None:
        """Press keys; what was shown before is forgotten."""
        self._seen = b""
        os.write(self._fd, text.encode())

    def wait_for(self, *texts: str) -> str:
        """What is shown, once all of it has come."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            shown = _ESCAPE.sub(b"", self._seen).decode(errors="replace")
            if all(text in shown for text in texts):
                return shown
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._fd], [], [], left)[0], f"no {texts} in:\n{shown}"
            piece = os.read(self._fd, 65536)
            if b"\x1b[c" in piece or b"\x1b[0c" in piece:
                os.write(self._fd, b"\x1b[?62;c")  # fish asks which terminal it is, and waits for the answer
            self._seen += piece


def environment(home: Path) -> dict[str, str]:
    """A person's, with the tunebot that is tested first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "TERM": "xterm", "LANG": "C.UTF-8", "XDG_STATE_HOME": f"{home}/state"}


def needs(shell: str) -> None:
    """Skip where a shell is missing; with CI set it must be there."""
    if shutil.which(shell) is None:
        assert not os.environ.get("CI"), f"apt-get install {shell}"
        pytest.skip(f"needs {shell}, which is not installed")


@contextmanager
def typing(shell: str, folder: Path) -> Iterator[Shell]:
    """A shell that has learnt to complete tunebot, in a folder."""
    needs(shell)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(START[shell][0], START[shell], environment(folder))
    ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        made = Shell(fd)
        made.type(f"{LEARN[shell]}; echo rea''dy\n")
        made.wait_for("ready")
        yield made
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
