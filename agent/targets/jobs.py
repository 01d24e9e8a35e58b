"""Commands that the helper runs on a target over SSH: nothing of one is left behind when its run has ended.

Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from agent.targets import places, trees

_DRAIN_LIMIT_S = 2.0
_CHUNK = 1 << 16


class Jobs:
    """The running commands, and whether those in the background are suspended."""

    def __init__(self, env: dict[str, str], quiet: bool) -> None:
        """`env` is the environment that every command gets; what an order adds goes on top."""
        self._env, self._quiet = env, quiet
        self._jobs: dict[int, Job] = {}
        self._lock, self._signalling = threading.Lock(), threading.Lock()

    def add(self, number: int, order: dict[str, Any]) -> Job:
        """A job that waits for its `run`, and can be cancelled from now on."""
        job = Job(order, self._env)
        with self._lock:
            self._jobs[number] = job
            job.held = self._quiet and job.background
        return job

    def discard(self, number: int) -> None:
        """Forget a job whose answer was given."""
        with self._lock:
            job = self._jobs.pop(number, None)
        if job:
            job.gone.set()

    def cancel(self, number: int) -> None:
        """End a job now; its `run` returns."""
        with self._lock:
            job = self._jobs.get(number)
        if job:
            job.cancel()

    def quiet(self, on: bool) -> None:
        """Suspend the background commands, or let them go on."""
        with self._lock:
            self._quiet = on
            jobs = [job for job in self._jobs.values() if job.background]
        for job in jobs:
            job.hold(on)
        threading.Thread(target=self._hold_rest, args=(jobs,), daemon=True).start()

    def _hold_rest(self, jobs: list[Job]) -> None:
        # Those that left the group. One after the other, each as it should be by then: the last one is right.
        with self._signalling:
            for job in jobs:
                job.signal_all(signal.SIGSTOP if job.held else signal.SIGCONT)

    def close(self) -> None:
        """Kill every command, and return when nothing of any lives."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()
        for job in jobs:
            job.gone.wait(timeout=15.0)


class Job:
    """One command: its process, its output so far, and what is left of its time while it is not suspended."""

    def __init__(self, order: dict[str, Any], env: dict[str, str]) -> None:
        self.background = bool(order["background"])
        self.held = False
        self.gone = threading.Event()
        self._mark = f"{trees.MARK}={os.urandom(8).hex()}"
        self._order, self._home = order, env["HOME"]
        changes = {name: self._expand(value) for name, value in order["env"].items()}
        name, _, value = self._mark.partition("=")
        self._env = {**env, **changes, name: value}
        self._left_s, self._limit = float(order["timeout_s"]), int(order["limit"])
        self._since: float | None = None
        self._changed = threading.Condition()
        self._over, self._timed_out, self._cancelled, self._truncated = False, False, False, False
        self._output = bytearray()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> tuple[dict[str, Any], bytes]:
        """Run the command to its end; what became of it, and its output. Raises places.Unfit."""
        with self._changed:
            if self._cancelled:
                return {"exit_code": None, "timed_out": False, "truncated": False}, b""
            self._start()
        threads = [threading.Thread(target=work, daemon=True) for work in (self._wait, self._read)]
        for thread in threads:
            thread.start()
        self._until_over()
        trees.kill_tree(self._root, self._mark)
        for thread in threads:  # what cannot be killed may still hold the pipe
            thread.join(_DRAIN_LIMIT_S)
        return self._result()

    def hold(self, on: bool) -> None:
        """Suspend the command and its clock, or let both go on."""
        with self._changed:
            self.held = on
            self._stop_clock()
            if not on:
                self._since = time.monotonic()
            self._signal(signal.SIGSTOP if on else signal.SIGCONT)
            self._changed.notify()

    def signal_all(self, signum: int) -> None:
        """Signal every process of the command, also those that left its group."""
        if self._process is not None and not self._over:
            trees.signal_tree(self._root, self._mark, signum)

    def cancel(self) -> None:
        """Kill the command; `run` returns soon."""
        with self._changed:
            self._cancelled = self._over = True
            self._signal(signal.SIGKILL)
            self._changed.notify()

    def _start(self) -> None:
        cwd = Path(self._home) / self._expand(self._order["cwd"])
        argv = [self._expand(word) for word in self._order["argv"]]
        argv = [places.find_program(argv, self._env, cwd), *argv[1:]]
        if self.background:
            argv = [*trees.niceness(self._env), *argv]
        ticks = trees.ticks_now()
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=str(cwd),
                start_new_session=True,
            )
        except (OSError, ValueError) as err:
            raise places.Unfit(f"cannot start {argv[0]}: {err}") from err
        self._root = trees.root_of(self._process.pid, ticks)
        if self.held:
            self._signal(signal.SIGSTOP)
        else:
            self._since = time.monotonic()

    def _until_over(self) -> None:
        with self._changed:
            while not self._over:
                left = None if self._since is None else self._since + self._left_s - time.monotonic()
                if left is not None and left <= 0:
                    self._timed_out = self._over = True
                    self._signal(signal.SIGKILL)
                else:
                    self._changed.wait(left)
            self._stop_clock()

    def _stop_clock(self) -> None:
        if self._since is not None:
            self._left_s -= time.monotonic() - self._since
            self._since = None

    def _signal(self, signum: int) -> None:
        # Called with `_changed` held: until the process is reaped, which needs it too, the group is ours.
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signum)

    def _wait(self) -> None:
        assert self._process is not None
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._changed:
            self._process.wait()
            self._over = True
            self._changed.notify()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while True:
                chunk = os.read(pipe.fileno(), _CHUNK)
                if not chunk:
                    return
                self._output += chunk
                if len(self._output) > 2 * self._limit + _CHUNK:
                    del self._output[: len(self._output) - self._limit]
                    self._truncated = True

    def _result(self) -> tuple[dict[str, Any], bytes]:
        assert self._process is not None
        output = bytes(self._output)
        head = {
            "exit_code": self._process.returncode,
            "timed_out": self._timed_out,
            "truncated": self._truncated or len(output) > self._limit,
        }
        return head, output[max(0, len(output) - self._limit) :]

    def _expand(self, word: str) -> str:
        return self._home + word[1:] if word.startswith("~/") else word
