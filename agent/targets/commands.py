"""Commands on this machine that are ours from start to end: nothing of one is left behind when its run has ended."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.ports import CommandResult, TargetUnusable
from agent.targets import places, trees
from agent.text import one_line

_DRAIN_LIMIT_S = 2.0
_CHUNK = 1 << 16


class Commands:
    """The running commands of one target, and whether those in the background are suspended."""

    def __init__(self) -> None:
        self._jobs: set[_Job] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._awake = asyncio.Event()
        self._awake.set()
        self._signalling = asyncio.Lock()
        self._closed = False

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        timeout_s: float,
        background: bool,
        max_output_bytes: int,
    ) -> CommandResult:
        """As Target.run; `env` is the whole environment and `argv[0]` is looked up in its PATH."""
        argv = [find_program(argv, env, cwd), *argv[1:]]
        if background:
            argv = [*trees.niceness(env), *argv]
            await self._awake.wait()
        if self._closed:
            raise TargetUnusable("the target is closed")
        job = _Job(timeout_s, background, max_output_bytes)
        await job.start(argv, env, cwd)
        self._jobs.add(job)
        if background and not self._awake.is_set():
            self._suspend(job, True)
        try:
            await job.ended()
        finally:
            await asyncio.shield(self._keep(self._finish(job)))
        return job.result()

    def quiet(self, on: bool) -> None:
        """Suspend the background commands, or let them go on. New ones start suspended."""
        if on == (not self._awake.is_set()):
            return
        (self._awake.clear if on else self._awake.set)()
        for job in self._jobs:
            if job.background:
                self._suspend(job, on)

    async def close(self) -> None:
        """End every command."""
        self._closed = True
        self._awake.set()
        for job in self._jobs:
            job.kill()
        await asyncio.gather(*(job.gone.wait() for job in self._jobs), *self._tasks)

    def _suspend(self, job: "_Job", on: bool) -> None:
        job.suspend(on)
        self._keep(self._suspend_rest(job))

    async def _suspend_rest(self, job: "_Job") -> None:
        # Those that left the group. One after the other, each as it should be by then: the last one is right.
        async with self._signalling:
            signum = signal.SIGCONT if self._awake.is_set() else signal.SIGSTOP
            await asyncio.to_thread(trees.signal_tree, job.root, job.mark, signum)

    async def _finish(self, job: "_Job") -> None:
        await job.finish()
        self._jobs.discard(job)
        job.gone.set()

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Job:
    """One command: its process, its output so far, and what is left of its time while it is not suspended."""

    def __init__(self, timeout_s: float, background: bool, limit: int) -> None:
        self.background = background
        self.mark = f"{trees.MARK}={os.urandom(8).hex()}"
        self._left_s, self._limit = timeout_s, limit
        self._output, self._truncated, self._timed_out = bytearray(), False, False
        self.gone = asyncio.Event()
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        read, write = os.pipe()
        name, _, value = self.mark.partition("=")
        ticks = trees.ticks_now()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write,
                stderr=write,
                env={**env, name: value},
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException as err:
            os.close(read)
            if not isinstance(err, OSError | ValueError):
                raise
            raise TargetUnusable(f"cannot start {one_line(argv[0])}: {one_line(str(err))}") from err
        finally:
            os.close(write)
        pid = self._process.pid
        self.root = trees.root_of(pid, ticks)
        self._exited = asyncio.create_task(self._wait())
        self._reader = asyncio.create_task(self._read(read))
        self._resume_clock()

    async def ended(self) -> None:
        """Wait until the command has ended by itself or its time is over."""
        await self._over.wait()

    async def finish(self) -> None:
        """Kill what is left of the command and read the rest of its output."""
        self._stop_clock()
        await asyncio.to_thread(trees.kill_tree, self.root, self.mark)
        await asyncio.wait({self._exited, self._reader}, timeout=_DRAIN_LIMIT_S)
        for task in (self._exited, self._reader):  # what cannot be killed may still hold the pipe
            task.cancel()
        await asyncio.gather(self._exited, self._reader, return_exceptions=True)

    def result(self) -> CommandResult:
        truncated = self._truncated or len(self._output) > self._limit
        return CommandResult(
            exit_code=self._process.returncode,
            output=bytes(self._output[max(0, len(self._output) - self._limit) :]),
            timed_out=self._timed_out,
            truncated=truncated,
        )

    def suspend(self, on: bool) -> None:
        self._signal(signal.SIGSTOP if on else signal.SIGCONT)
        if on:
            self._stop_clock()
        else:
            self._resume_clock()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, signum: int) -> None:
        if self._process.returncode is None:  # until then the pid, and so the group, is ours
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signum)

    def _resume_clock(self) -> None:
        if self._timer is None and not self._over.is_set():
            loop = asyncio.get_running_loop()
            self._since = loop.time()
            self._timer = loop.call_later(max(0.0, self._left_s), self._expire)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left_s -= asyncio.get_running_loop().time() - self._since

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()
        self._over.set()

    async def _wait(self) -> None:
        await self._process.wait()
        self._over.set()

    async def _read(self, fd: int) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        pipe = os.fdopen(fd, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            while chunk := await reader.read(_CHUNK):
                self._output += chunk
                if len(self._output) > 2 * self._limit + _CHUNK:
                    del self._output[: len(self._output) - self._limit]
                    self._truncated = True
        finally:
            transport.close()


def find_program(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> str:
    """The path of the program that argv starts. Raises TargetUnusable where there is none."""
    try:
        return places.find_program(argv, env, cwd)
    except places.Unfit as err:
        raise TargetUnusable(one_line(str(err)), one_line(err.hint, 400)) from err
