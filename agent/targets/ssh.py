"""A host reached over SSH. What runs there goes on while the host cannot be reached."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.model import Gpu, Host
from agent.ports import (
    CommandResult,
    LaunchSpec,
    LaunchStatus,
    LogPiece,
    PortOwners,
    Started,
    StopReport,
    TargetUnreachable,
    TargetUnusable,
)
from agent.reach import Reach
from agent.targets.answers import job_order, order_of, outcome_of, owners_of, started, status_of, stopped
from agent.targets.dial import Dialling
from agent.targets.forward import Forwards
from agent.targets.gpus import NO_GPUS, SMI, gpus_of
from agent.targets.link import Link
from agent.targets.once import result_of
from agent.targets.wire import Broken, Reply, Wire
from agent.text import one_line

_SMI_LIMIT_S = 10.0
_STOP_PATIENCE_S = 60.0
_CLOSE_LIMIT_S = 15.0
_NOT_FOUND = 2
_UNKNOWN_END = CommandResult(exit_code=None, output=b"")


class SshTarget:
    """Implements ports.Target with processes of another machine."""

    def __init__(
        self,
        name: str,
        to: Dialling,
        *,
        workdir: str = "~/.tunebot",
        env: Mapping[str, str] | None = None,
        path: Sequence[str] = (),
        venv: str | None = None,
        conda: str | None = None,
        container: Mapping[str, Any] | None = None,
        trees: Mapping[str, str] | None = None,
        gpus: int | None = None,
    ) -> None:
        """`workdir` keeps launches and the lock on the GPUs; `env`, `path` (folders that go before PATH), `venv` and
        `conda` are set for everything that runs there. With a `container` (see containers.py) launches run in one.
        With `gpus`, only so many may be used.
        """
        self.name = name
        self.reach = Reach()
        self.trees = trees or {}
        self.image = container["run"][-1] if container else ""
        self._to, self._gpus, self._container = to, gpus, container
        settings: dict[str, Any] = {"workdir": workdir, "quiet": False}
        settings |= {"env": dict(env or {}), "path": list(path), "venv": venv, "conda": conda}
        self._link = Link(to, settings, self.reach)
        self._forwards = Forwards(self._link)
        self._env: dict[str, str] = {}
        self._awake = asyncio.Event()
        self._awake.set()
        self._closed = False

    async def host(self) -> Host:
        """Facts about the machine. Without nvidia-smi it has no GPUs. Raises TargetUnusable where that fails."""
        hello = (await self._link.wire()).hello
        gpus = await self._found_gpus()
        if self._gpus is not None and len(gpus) < self._gpus:
            hint = "correct `gpus`, or is a GPU lost? nvidia-smi on the host tells"
            raise TargetUnusable(f"{self.name} should have {self._gpus} GPUs and has {len(gpus)}", hint)
        if self._gpus is not None and len(gpus) > self._gpus:
            gpus = gpus[: self._gpus]
            self._env = {"CUDA_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in gpus)}
        return Host(name=one_line(str(hello["hostname"])), simulated=bool(hello["simulated"]), gpus=gpus)

    async def _found_gpus(self) -> tuple[Gpu, ...]:
        try:
            result = await self.run(SMI, timeout_s=_SMI_LIMIT_S)
        except TargetUnreachable:
            raise
        except TargetUnusable:  # there is no such program
            return ()
        return gpus_of(result, _SMI_LIMIT_S)

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        background: bool = False,
        hide_gpus: bool = False,
        max_output_bytes: int = 1 << 20,
    ) -> CommandResult:
        """As ports.Target. Whatever the command leaves running, detached or not, is killed when it ends.

        Where the connection breaks, so does the command, and its end is unknown.
        """
        order = {
            "argv": list(argv),
            "env": {**self._env, **(env or {}), **(NO_GPUS if hide_gpus else {})},
            "cwd": cwd or "~/",
            "timeout_s": timeout_s,
            "background": background,
            "limit": max_output_bytes,
        }
        if background:
            await self._awake.wait()
        if self._closed:
            raise TargetUnusable("the target is closed")
        try:
            reply = await _finished(await self._link.wire(), order)
        except Broken:
            return _UNKNOWN_END
        head = _checked(reply)
        return CommandResult(
            exit_code=head["exit_code"],
            output=reply.body,
            timed_out=head["timed_out"],
            truncated=head["truncated"],
        )

    def quiet(self, on: bool) -> None:
        """Suspend (or let go on) every background command."""
        if on == (not self._awake.is_set()):
            return
        (self._awake.clear if on else self._awake.set)()
        self._link.set(quiet=on)
        if self.reach.up and (wire := self._link.now()):
            wire.tell("quiet", on=on)

    async def read_file(self, path: str, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """At most `limit` bytes of a regular file. Raises TargetUnusable where it is none or cannot be read."""
        reply = await self._link.call("read", path=path, offset=offset, limit=limit)
        if "error" in reply.head:
            raise TargetUnusable(f"cannot read {one_line(path)}: {one_line(str(reply.head['message']))}")
        return reply.body

    async def exists(self, path: str) -> bool:
        """Whether a file or folder of that name exists."""
        return bool(_checked(await self._link.call("exists", path=path))["exists"])

    async def free_port(self) -> int:
        """A port of the target's loopback interface on which nothing listens."""
        return int(_checked(await self._link.call("free_port"))["port"])

    async def port_answers(self, port: int) -> bool:
        """Whether anything there accepts connections on the port. A full backlog counts: something listens."""
        return bool(_checked(await self._link.call("answers", port=port))["answers"])

    async def base_url(self, port: int) -> str:
        """The URL of a port of ours that leads to that port of the target."""
        return f"http://127.0.0.1:{await self._forwards.port(port)}"

    async def launch(self, spec: LaunchSpec) -> Started:
        """As ports.Target. Where the link breaks it is asked again: that starts nothing if the first asking did."""
        return await self._start(order_of(spec, self._container))

    async def outcome(self, launch: str) -> Started | None:
        """What became of an earlier start; None where there was none. Waits while the host cannot be reached."""
        return outcome_of((await self._link.call("outcome", launch=launch)).head)

    async def run_once(
        self, job: str, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """As ports.Target."""
        return await result_of(self, job, await self._start(job_order(job, argv, env or {})), timeout_s)

    async def _start(self, order: Mapping[str, Any]) -> Started:
        ours = {**order, "env": {**self._env, **order["env"]}}
        return started((await self._link.call("start", **ours)).head)

    async def launch_status(self, launch: str) -> LaunchStatus:
        """What the host knows of a launch; `unknown` while it cannot be reached."""
        try:
            wire = await self._link.now_or_unreachable()
            return status_of(_checked(await wire.call("status", launch=launch)))
        except (TargetUnreachable, Broken):
            return LaunchStatus(state="unknown", leader_exit_code=None, processes=())

    async def read_log(self, launch: str, offset: int, limit: int = 1 << 20) -> LogPiece:
        """Bytes of the launch's output, and which file they are from."""
        wire = await self._link.now_or_unreachable()
        try:
            reply = await wire.call("log", launch=launch, offset=offset, limit=limit)
        except Broken as broken:
            raise TargetUnreachable(f"{self.name} cannot be reached: {broken}") from broken
        if reply.head.get("errno") == _NOT_FOUND:
            return LogPiece(data=b"", inode=0, size=0)
        if "error" in reply.head:
            raise TargetUnusable(f"cannot read the log of launch {launch}: {one_line(str(reply.head['message']))}")
        return LogPiece(data=reply.body, inode=reply.head["inode"], size=reply.head["length"])

    async def port_owners(self, launch: str, port: int) -> PortOwners:
        """Whose sockets listen on the port."""
        return owners_of(_checked(await self._link.call("owners", launch=launch, port=port)))

    async def stop(self, launch: str, grace_s: float) -> StopReport:
        """As ports.Target. The host carries it out even where the link breaks meanwhile."""
        while True:
            try:
                async with asyncio.timeout(_STOP_PATIENCE_S):
                    wire = await self._link.wire()
            except TimeoutError as error:
                message = f"{self.name} cannot be reached ({self.reach.why}): launch {launch} may still run there"
                raise TargetUnreachable(message) from error
            try:
                return stopped(launch, (await wire.call("stop", launch=launch, grace_s=grace_s)).head)
            except Broken:
                continue

    async def survey(self) -> Mapping[str, Any]:
        """What `tunebot doctor` wants to know of the machine, and whether its ports can be reached."""
        found = dict(_checked(await self._link.call("survey")))
        found["forwards"] = await self._forwards.allowed(await self.free_port())
        return found

    async def close(self) -> None:
        """End the commands that still run, and the connection. Servers go on."""
        self._closed = True
        self._awake.set()
        await self._forwards.close()
        try:
            if self.reach.up and (wire := self._link.now()):
                async with asyncio.timeout(_CLOSE_LIMIT_S):
                    await wire.call("close")
                await asyncio.sleep(0)  # those who ran them get their answers first
        except (TargetUnusable, TimeoutError, Broken):
            pass  # closed before, or broken: the helper ends its commands itself
        finally:
            await self._link.close()


async def _finished(wire: Wire, order: Mapping[str, Any]) -> Reply:
    """The answer to a command. Where our caller gives it up, it is killed before that goes on."""
    number, answer = wire.send("run", **order)
    try:
        return await asyncio.shield(answer)
    finally:
        if not answer.done():
            wire.tell("cancel", job=number)
            await asyncio.wait({answer}, timeout=_CLOSE_LIMIT_S)


def _checked(reply: Reply) -> Mapping[str, Any]:
    if "error" in reply.head:
        raise TargetUnusable(one_line(str(reply.head["message"]), 400), one_line(str(reply.head.get("hint", "")), 400))
    return reply.head
