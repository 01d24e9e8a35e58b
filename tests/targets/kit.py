"""What the tests of the targets share: servers in a line of Python, and conditions to wait for."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent.ports import LaunchSpec, Started, Target
from agent.targets import wrapper
from agent.targets.local import LocalTarget
from agent.targets.ssh import SshTarget
from tests.sshd import Sshd

PYTHON = (os.path.realpath(sys.executable), "-I", "-S", "-u")
SLEEP = "import time; time.sleep(600)"
RANKS = """
import os, subprocess, sys, time
ranks = [subprocess.Popen([sys.executable, "-I", "-S", "-c", sys.argv[1]]) for _ in range(3)]
print("pids", *(rank.pid for rank in ranks))
time.sleep(600)
"""
RETITLED = """
import ctypes, time
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(fields[47]), int(fields[48])   # the environment, as setproctitle overwrites it
ctypes.memset(start, 0, end - start)
time.sleep(600)
"""
DAEMON = """
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
print("daemon", os.getpid(), flush=True)
time.sleep(600)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"


@dataclass
class Place:
    """Where a target under test has its files, and how another process makes the same target."""

    root: Path
    work: Path
    env: dict[str, str]
    sshd: Sshd | None

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tools(self) -> Path:
        return self.root / "bin"

    @property
    def recipe(self) -> str:
        """Python that makes `target`."""
        if self.sshd is None:
            return f"""
import pathlib
from agent.targets.local import LocalTarget
target = LocalTarget("here", workdir=pathlib.Path({str(self.work)!r}), home=pathlib.Path({str(self.home)!r}))
"""
        return f"""
import pathlib
from agent.targets.dial import Dialling
from agent.targets.ssh import SshTarget
to = Dialling(host="box", config=pathlib.Path({str(self.sshd.config)!r}))
target = SshTarget("here", to, workdir={str(self.work)!r}, env={ {**self.env, "HOME": str(self.home)}!r})
"""

    def target(self) -> "Placed":
        """The target: on this machine, or over SSH to it."""
        made: Local | Remote
        if self.sshd is None:
            made = Local("here", workdir=self.work, home=self.home, path_prefix=str(self.tools), extra_env=self.env)
        else:
            env = {**self.env, "HOME": str(self.home)}
            made = Remote("here", self.sshd.dialling(), workdir=str(self.work), env=env, path=[str(self.tools)])
        made.place = self
        return made


class Placed(Target, Protocol):
    """A target under test."""

    place: Place


class Local(LocalTarget):
    place: Place


class Remote(SshTarget):
    place: Place


def spec(launch: str, *argv: str, env: dict[str, str] | None = None, owner: str = "ann") -> LaunchSpec:
    return LaunchSpec(launch=launch, port=8000, argv=argv, env=env or {}, unset=(), owner=owner)


async def serve(target: Target, code: str, *words: str, launch: str = "l1", **rest: dict[str, str]) -> Started:
    """Launch a server of that Python code."""
    return await target.launch(spec(launch, *PYTHON, "-c", code, *words, env=rest.get("env")))


async def until(ask: Callable[[], Any], limit_s: float = 15.0) -> Any:
    """Ask (or await) until the answer is true, and return it."""
    async with asyncio.timeout(limit_s):
        while True:
            answer = ask()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(0.01)


async def log_bytes(target: Target, launch: str, offset: int, limit: int = 1 << 20) -> bytes:
    """What the launch printed, from an offset."""
    return (await target.read_log(launch, offset, limit)).data


async def printed(target: Target, word: str, launch: str = "l1") -> list[int]:
    """The numbers behind a word in the launch's output, once its line is complete."""

    async def numbers() -> list[int] | None:
        for line in (await log_bytes(target, launch, 0)).decode(errors="replace").splitlines(keepends=True):
            if line.startswith(word) and line.endswith("\n"):
                return [int(number) for number in line.split()[1:]] or [0]
        return None

    found: list[int] = await until(numbers)
    return found


def lives(pid: int) -> bool:
    return wrapper.find(pid) is not None


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
