"""A command that is run at most once on a target, whatever becomes of us and of the link meanwhile."""

import asyncio

from agent.patience import patiently
from agent.ports import CommandResult, Started, Target

_POLL_S = 0.5
_OUTPUT_KEPT = 1 << 20


async def result_of(target: Target, job: str, started: Started, timeout_s: float) -> CommandResult:
    """The result of a job that was started, `timeout_s` after its start at the latest; nothing of it is left then.

    Where the target cannot be reached this waits, and the job's time goes on.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s - started.age_s
    while True:
        status = await target.launch_status(job)
        timed_out = False
        if status.state == "unknown":
            await target.reach.wait()
        elif status.state != "running" or status.leader_exit_code is not None:
            break
        elif loop.time() >= end:
            timed_out = True
            break
        await asyncio.sleep(_POLL_S)
    report = await patiently(target, lambda: target.stop(job, 0.0))
    size = (await patiently(target, lambda: target.read_log(job, 0, 0))).size
    offset = max(0, size - _OUTPUT_KEPT)
    piece = await patiently(target, lambda: target.read_log(job, offset, _OUTPUT_KEPT))
    return CommandResult(exit_code=report.exit_code, output=piece.data, timed_out=timed_out, truncated=offset > 0)
