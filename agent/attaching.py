"""A server that somebody else started: checked, measured, watched, never stopped."""

import asyncio
import time

from agent.core import events as ev
from agent.core.commands import AttachServer
from agent.core.model import Failure, Phase
from agent.core.state import LaunchStage
from agent.engine import Submit
from agent.ports import ServerKind, Target

POLL_S = 1.0
READY_LIMIT_S = 60.0


async def attach(target: Target, kind: ServerKind, command: AttachServer, submit: Submit) -> None:
    """Report the server at `args.port` as ready, then watch until nothing listens there any more.

    Ends in ServerFailed: where nothing answers, where no generation comes back within a minute, or when it is gone.
    """
    launch, config = command.launch, command.config
    stage = command.seen.stage if command.seen else LaunchStage.REQUESTED

    def fail(phase: Phase, reason: str) -> None:
        failure = Failure(phase=phase, reason=reason, category="attached")
        submit(ev.ServerFailed(at=time.time(), launch=launch, failure=failure))

    port = int(str(config.args["port"]))
    if not await target.port_answers(port):
        fail(Phase.LAUNCH, f"nothing listens on port {port}; start the server, or write baseline: true")
        return
    if stage is LaunchStage.REQUESTED:
        submit(ev.LaunchStarted(at=time.time(), launch=launch, pid=None, port=port, argv=()))
    url = await target.base_url(port)
    try:
        async with asyncio.timeout(READY_LIMIT_S):
            while not await kind.ready(url):
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        fail(Phase.WARMUP, f"the server at port {port} answers, but no generation came back")
        return
    if stage is not LaunchStage.READY:
        flags = await kind.effective_flags(url, config, "")
        submit(ev.ServerReady(at=time.time(), launch=launch, load_s=0.0, flags=flags))
    while await target.port_answers(port):
        await asyncio.sleep(POLL_S)
    fail(Phase.SERVING, f"nothing listens on port {port} any more")
