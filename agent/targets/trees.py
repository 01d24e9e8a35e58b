"""The processes of a command, wherever they went: found, suspended, killed. Runs here and on targets over SSH.

Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Mapping

from agent.targets import wrapper

MARK = "TUNEBOT_COMMAND"
"""The variable whose value every process of a command inherits."""

_KILL_LIMIT_S = 10.0
_NICE = (("setpriv", "--pdeathsig", "KILL"), ("nice", "-n", "19"), ("ionice", "-c", "3"))


def niceness(env: Mapping[str, str]) -> list[str]:
    """What goes before a background command, as far as the host has it. The first ends it if its starter is killed."""
    words: list[str] = []
    for prefix in _NICE:
        found = shutil.which(prefix[0], path=env.get("PATH", os.defpath))
        if found:
            words += [found, *prefix[1:]]
    return words


def root_of(pid: int, started_after: int) -> wrapper.Proc:
    """The process of a command that was just started; it may have ended by now."""
    return wrapper.find(pid) or wrapper.Proc(pid, 0, 0, started_after)


def ticks_now() -> int:
    """Clock ticks since boot, such that whatever starts from now on started later."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) - 1


def signal_tree(root: wrapper.Proc, mark: str, signum: int) -> None:
    """Signal what lives of a command, in its process group or not."""
    for proc in _tree(root, mark):
        wrapper.send(proc, signum)


def kill_tree(root: wrapper.Proc, mark: str) -> None:
    """Kill what lives of a command, until nothing does."""
    end = time.monotonic() + _KILL_LIMIT_S
    clear = 0
    while clear < 2 and time.monotonic() < end:  # twice, as a fork can slip through one look
        left = _tree(root, mark)
        clear = 0 if left else clear + 1
        for proc in left:
            wrapper.send(proc, signal.SIGKILL)
        if left:
            time.sleep(0.01)


def _tree(root: wrapper.Proc, mark: str) -> list[wrapper.Proc]:
    """What lives of a command: descendants, sessions, and those that carry its mark."""
    procs = wrapper.snapshot()
    young = (proc for proc in procs.values() if proc.start_ticks >= root.start_ticks and proc.pid != os.getpid())
    seeds = [
        proc.pid
        for proc in young
        if (proc.pid, proc.start_ticks) == (root.pid, root.start_ticks) or wrapper.marked(proc.pid, mark)
    ]
    return wrapper.members(procs, seeds)
