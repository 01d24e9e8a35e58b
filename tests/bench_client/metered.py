"""Run a command on one core and say what it and everything below it used of the CPU.

    python metered.py CORE LIMIT_S RESULT.json COMMAND ...

The result is `{"exit_code", "wall_s", "cpu_s"}`; cpu_s is user and system time of the whole process tree. This process
is the reaper of its orphans, so that the time of a helper that outlives its parent counts too. Only Linux.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 10.0


def reap(limit_s: float, leader: int) -> int | None:
    """Wait for all children; the leader's exit code, or None where not all had ended within `limit_s`."""
    end_s = time.monotonic() + limit_s
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == leader:
            code = os.waitstatus_to_exitcode(status)
            end_s = min(end_s, time.monotonic() + GRACE_S)
        if not pid:
            if time.monotonic() > end_s:
                return code
            time.sleep(0.02)


def main(core: str, limit_s: str, result: str, *command: str) -> None:
    """Run the command; its group is killed where it is not done in time."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, {int(core)})
    began_s = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        code = reap(float(limit_s), child.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    wall_s = time.monotonic() - began_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = {"exit_code": code, "wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime}
    Path(result).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
