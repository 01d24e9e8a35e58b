"""Asks the person at the terminal about the key of a host that nobody knows yet."""

import asyncio
import sys
import time
from typing import TextIO

from agent.ports import Target
from agent.targets.hostkey import HostKeyUnknown, own_known_hosts, remember


async def meet(target: Target, limit_s: float | None = None) -> float:
    """Reach a target for the first time; how many seconds that took.

    Where its key is unknown the person at the terminal is asked. That blocks, so nothing else may run yet. Raises
    HostKeyUnknown where nobody is there or the answer is no, TimeoutError after `limit_s`, and else what reaching a
    target raises.
    """
    while True:
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                await target.exists("~/")
            return time.monotonic() - began
        except HostKeyUnknown as error:
            if not ask(error, sys.stdin, sys.stderr):
                raise
            remember(error)


def ask(error: HostKeyUnknown, stdin: TextIO, stderr: TextIO) -> bool:
    """Whether the person takes the key: only `yes` is yes. False, without a question, where there is no terminal."""
    if not (stdin.isatty() and stderr.isatty()):
        return False
    stderr.write(f"{error}\n{error.compare}\nRemember this key in {own_known_hosts()} and go on? yes/no [no] ")
    stderr.flush()
    return stdin.readline().strip().lower() == "yes"
