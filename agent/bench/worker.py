"""A load in a process of its own, where nothing else disturbs the stamps.

The parent writes a job to the child's stdin and keeps it open; the child writes messages to its stdout, the last of
which has the load. The child ends when its stdin does, so that it never outlives its parent. Both are the same
program, so pickles are safe between them. `python -m agent.bench.worker` is the child.
"""

import asyncio
import gc
import pickle
import sys
from collections.abc import Callable
from typing import BinaryIO, cast

import uvloop

from agent.bench.client import Server
from agent.bench.load import Load, Plan, Progress, run_load

_SIZE_BYTES = 8
_END_S = 2.0
"""How long the child may take to end. Killed while it does, it would be reaped behind asyncio's back."""


class WorkerFailed(Exception):
    """The process ended without a load. The message says why."""


# What is sent is of the modules that both import: the child's own classes would be those of `__main__`.
_Job = tuple[Server, Plan, bool]
"""What to do, and whether progress is to be told."""
_Done = tuple[Load, set[str]]
"""The load, and the request fields that the server does not take."""


async def run_apart(server: Server, plan: Plan, progress: Callable[[Progress], None] | None = None) -> Load:
    """As `run_load`, in a process of its own, which is gone when this returns or is cancelled. Raises WorkerFailed."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent.bench.worker"),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,  # Ctrl-C at the terminal is for the parent alone
        )
    except OSError as error:
        raise WorkerFailed(f"the load generator's process cannot be started: {error.strerror or error}") from error
    try:
        return await _talk(process, server, (server, plan, progress is not None), progress)
    finally:
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()  # it ends by itself then, unless it is deep in reading
    try:
        async with asyncio.timeout(_END_S):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()


async def _talk(
    process: asyncio.subprocess.Process, server: Server, job: _Job, progress: Callable[[Progress], None] | None
) -> Load:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        process.stdin.write(_framed(job))
        await process.stdin.drain()
        while True:
            size = int.from_bytes(await process.stdout.readexactly(_SIZE_BYTES), "big")
            message = pickle.loads(await process.stdout.readexactly(size))
            if not isinstance(message, Progress):
                load, refused = cast(_Done, message)
                server.refused |= refused
                return load
            if progress is not None:
                progress(message)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        said = (await process.stderr.read()).decode("utf-8", "replace").strip()
        reason = said.splitlines()[-1] if said else f"exit code {await process.wait()}"
        raise WorkerFailed(f"the load generator's process ended: {reason}") from error


def _framed(message: _Job | Progress | _Done) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(_SIZE_BYTES, "big") + data


async def _work(job: _Job, stdin: BinaryIO, stdout: BinaryIO) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_reader(stdin.fileno(), task.cancel)  # nothing comes after the job, so this is its end

    def tell(message: Progress | _Done) -> None:
        stdout.write(_framed(message))
        stdout.flush()

    server, plan, progress = job
    load = await run_load(server, plan, tell if progress else None)
    tell((load, server.refused))


def main() -> None:
    """Do the job on stdin."""
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    job = pickle.loads(stdin.read(int.from_bytes(stdin.read(_SIZE_BYTES), "big")))
    gc.freeze()
    gc.disable()  # a collection would stop the stamps; the process is short-lived
    try:
        uvloop.run(_work(job, stdin, stdout))
    except (asyncio.CancelledError, BrokenPipeError):
        sys.exit(1)  # nobody waits for it


if __name__ == "__main__":
    main()
