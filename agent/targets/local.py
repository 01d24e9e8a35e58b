"""The machine that tunebot itself runs on, or a simulated host on it: another home and another PATH."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
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
    TargetUnusable,
)
from agent.reach import Reach
from agent.targets import places, wrapper
from agent.targets.answers import job_order, order_of, outcome_of, owners_of, started, status_of, stopped
from agent.targets.bundle import program
from agent.targets.commands import Commands, find_program
from agent.targets.gpus import NO_GPUS, SMI, gpus_of
from agent.targets.once import result_of
from agent.targets.survey import survey
from agent.text import decode, one_line

_SMI_LIMIT_S = 10.0
_START_LIMIT_S = 60.0
_CONNECT_LIMIT_S = 2.0
_PORT_TRIES = 1000
# tunebot's own keys to an LLM are nothing for servers and probes.
_OUR_SECRETS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"})
_handed_out: set[int] = set()
"""Ports of all targets of this process: simulated hosts share one loopback."""


class LocalTarget:
    """Implements ports.Target with processes of this machine."""

    def __init__(
        self,
        name: str,
        *,
        workdir: Path,
        home: Path | None = None,
        path_prefix: str | None = None,
        extra_env: Mapping[str, str] | None = None,
        container: Mapping[str, Any] | None = None,
        trees: Mapping[str, str] | None = None,
        simulated: bool = False,
    ) -> None:
        """`workdir` (made with mode 0700) keeps launches and the lock on the GPUs; nothing is touched before use.

        A simulated host has its own `home` and a `path_prefix` that goes before PATH. With a `container` (see
        containers.py) launches run in one.
        """
        self.name = name
        self.reach = Reach()
        self.trees = trees or {}
        self.image = container["run"][-1] if container else ""
        self._container = container
        self._workdir, self._home, self._simulated = workdir.absolute(), (home or Path.home()).absolute(), simulated
        ours = {name: value for name, value in os.environ.items() if name not in _OUR_SECRETS}
        self._env = {**ours, "HOME": str(self._home), **(extra_env or {})}
        if path_prefix:
            self._env["PATH"] = f"{path_prefix}:{self._env.get('PATH', os.defpath)}"
        self._commands = Commands()

    async def host(self) -> Host:
        """Facts about the machine. Without nvidia-smi it has no GPUs. Raises TargetUnusable where that fails."""
        name = self.name if self._simulated else socket.gethostname()
        return Host(name=one_line(name), simulated=self._simulated, gpus=await self._gpus())

    async def _gpus(self) -> tuple[Gpu, ...]:
        try:
            find_program(SMI, self._env, self._home)
        except TargetUnusable:
            return ()
        result = await self.run(SMI, timeout_s=_SMI_LIMIT_S)
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

        A command that ran out of time has the exit code of its SIGKILL, -9, and `timed_out`.
        """
        changes = {name: self._expand(value) for name, value in (env or {}).items()}
        return await self._commands.run(
            [self._expand(word) for word in argv],
            env={**self._env, **changes, **(NO_GPUS if hide_gpus else {})},
            cwd=self._path(cwd or "~/"),
            timeout_s=timeout_s,
            background=background,
            max_output_bytes=max_output_bytes,
        )

    def quiet(self, on: bool) -> None:
        """Suspend (or let go on) every background command."""
        self._commands.quiet(on)

    async def read_file(self, path: str, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """At most `limit` bytes of a regular file. Raises TargetUnusable where it is none or cannot be read."""
        try:
            return await asyncio.to_thread(places.read_range, self._path(path), offset, limit)
        except (OSError, ValueError) as err:
            reason = getattr(err, "strerror", None) or str(err)
            raise TargetUnusable(f"cannot read {one_line(path)}: {one_line(reason)}") from err

    async def exists(self, path: str) -> bool:
        """Whether a file or folder of that name exists."""
        return await asyncio.to_thread(os.path.exists, self._path(path))

    async def free_port(self) -> int:
        """A port of 127.0.0.1 on which nothing listens, never the same twice."""
        for _ in range(_PORT_TRIES):
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                port: int = sock.getsockname()[1]
            if port not in _handed_out:
                _handed_out.add(port)
                return port
        raise TargetUnusable("no free TCP port", "too many connections are open")

    async def port_answers(self, port: int) -> bool:
        """Whether anything accepts connections on the port. A full backlog counts: something listens."""
        try:
            async with asyncio.timeout(_CONNECT_LIMIT_S):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
        except TimeoutError:
            return True
        except OSError:
            return False
        # A port that nobody listens on may happen to be connected to itself.
        answers: bool = writer.get_extra_info("sockname") != writer.get_extra_info("peername")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return answers

    async def base_url(self, port: int) -> str:
        """The URL of the port."""
        return f"http://127.0.0.1:{port}"

    async def launch(self, spec: LaunchSpec) -> Started:
        """As ports.Target. Where the wrapper gave no answer the reason says so; `outcome` tells what became of it."""
        return await self._start(order_of(spec, self._container))

    async def outcome(self, launch: str) -> Started | None:
        """What became of an earlier start; None where there was none."""
        return outcome_of(await self._verb(_START_LIMIT_S, "outcome", str(self._run_dir(launch))))

    async def run_once(
        self, job: str, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """As ports.Target."""
        return await result_of(self, job, await self._start(job_order(job, argv, env or {})), timeout_s)

    async def _start(self, order: dict[str, Any]) -> Started:
        folders = {"runs": str(self._workdir / "runs"), "lock": str(self._workdir / "gpu.lock")}
        return started(await self._verb(_START_LIMIT_S, "start", order={**order, **folders}))

    async def launch_status(self, launch: str) -> LaunchStatus:
        """What the host knows of a launch; `processes` are those that live."""
        try:
            answer = await asyncio.to_thread(wrapper.status, self._run_dir(launch))
        except OSError:
            return LaunchStatus(state="unknown", leader_exit_code=None, processes=())
        return status_of(answer)

    async def read_log(self, launch: str, offset: int, limit: int = 1 << 20) -> LogPiece:
        """Bytes of the launch's output, and which file they are from."""
        try:
            log = await asyncio.to_thread(wrapper.log_of, self._run_dir(launch))
            data, inode, size = await asyncio.to_thread(places.read_piece, log, offset, limit)
        except FileNotFoundError:
            return LogPiece(data=b"", inode=0, size=0)
        except (OSError, ValueError) as err:
            reason = getattr(err, "strerror", None) or str(err)
            raise TargetUnusable(f"cannot read the log of launch {launch}: {one_line(reason)}") from err
        return LogPiece(data=data, inode=inode, size=size)

    async def port_owners(self, launch: str, port: int) -> PortOwners:
        """Whose sockets listen on the port."""
        answer = await asyncio.to_thread(wrapper.owners, self._run_dir(launch), port)
        return owners_of(answer)

    async def stop(self, launch: str, grace_s: float) -> StopReport:
        """As ports.Target; takes at most `grace_s` and 20 s more. A launch that never started then never will."""
        limit_s = grace_s + wrapper.KILL_LIMIT_S + _START_LIMIT_S
        answer = await self._verb(limit_s, "stop", str(self._run_dir(launch)), str(grace_s))
        return stopped(launch, answer)

    async def survey(self) -> Mapping[str, Any]:
        """What `tunebot doctor` wants to know of the machine."""
        return await asyncio.to_thread(survey, self._workdir)

    async def close(self) -> None:
        """End the commands that still run. Servers go on."""
        await self._commands.close()

    async def _verb(self, limit_s: float, *words: str, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run a verb of the wrapper and return its answer."""
        try:
            source = await asyncio.to_thread(program)
            script = await asyncio.to_thread(places.install_wrapper, self._workdir, source.encode())
        except places.Unfit as err:
            raise TargetUnusable(one_line(str(err)), one_line(err.hint)) from err
        python = find_program(["python3"], self._env, self._home)
        process = await asyncio.create_subprocess_exec(
            *(python, "-I", "-S", str(script), *words),  # isolated: no site, no PYTHONPATH
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._env,
            start_new_session=True,
        )
        output = b""
        try:
            async with asyncio.timeout(limit_s):
                output, _ = await process.communicate(json.dumps(order).encode())
            answer = json.loads(output)
        except (TimeoutError, ValueError) as err:
            what = decode(output).strip() or "no answer in time"
            raise TargetUnusable(f"the wrapper's {words[0]} failed: {one_line(what[-200:])}") from err
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its own group, without holder and server
                await process.wait()
        if not isinstance(answer, dict):
            raise TargetUnusable(f"the wrapper's {words[0]} gave no object: {one_line(decode(output))}")
        return answer

    def _run_dir(self, launch: str) -> Path:
        return self._workdir / "runs" / launch

    def _expand(self, word: str) -> str:
        return f"{self._home}{word[1:]}" if word.startswith("~/") else word

    def _path(self, path: str) -> Path:
        return self._home / self._expand(path)
