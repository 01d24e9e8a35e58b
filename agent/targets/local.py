"""The machine that tunebot itself runs on, or a simulated host on it: another home and another PATH."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.core.model import Gpu, Host
from agent.ports import (
    CommandResult,
    LaunchSpec,
    LaunchStatus,
    PortOwners,
    Process,
    StopReport,
    TargetBusy,
    TargetUnusable,
)
from agent.targets import wrapper
from agent.targets.commands import Commands, find_program
from agent.text import decode, one_line

_SMI_LIMIT_S = 10.0
_START_LIMIT_S = 60.0
_CONNECT_LIMIT_S = 2.0
_PORT_TRIES = 1000
# tunebot's own keys to an LLM are nothing for servers and probes.
_OUR_SECRETS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"})
_NO_GPUS = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
_SMI = (
    "nvidia-smi",
    "--query-gpu=index,name,compute_cap,memory.total,driver_version",
    "--format=csv,noheader,nounits",
)
_HINTS = {
    "exists": "a launch id is used once; ask for its status",
    "locked": "wait until that server is stopped, or stop it where it was started",
    "alive": "stop that launch first",
    "program": "is it installed, and in the PATH of the playbook's environment?",
}
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
        simulated: bool = False,
    ) -> None:
        """`workdir` (made with mode 0700) keeps launches and the lock on the GPUs; nothing is touched before use.

        A simulated host has its own `home` and a `path_prefix` that goes before PATH.
        """
        self.name = name
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
            find_program(_SMI, self._env, self._home)
        except TargetUnusable:
            return ()
        result = await self.run(_SMI, timeout_s=_SMI_LIMIT_S)
        text = decode(result.output, 1 << 16)
        if result.timed_out:
            hint = "a GPU or its driver hangs; look at dmesg, a reboot may be needed"
            raise TargetUnusable(f"nvidia-smi gave no answer in {_SMI_LIMIT_S:.0f} s", hint)
        if "No devices were found" in text:
            return ()
        if result.exit_code != 0:
            raise TargetUnusable(f"nvidia-smi failed: {one_line(text)}", "repair the driver of the GPUs")
        return tuple(_gpu(line) for line in text.splitlines() if line.strip())

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
            env={**self._env, **changes, **(_NO_GPUS if hide_gpus else {})},
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
            return await asyncio.to_thread(_read, self._path(path), offset, limit)
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
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    async def base_url(self, port: int) -> str:
        """The URL of the port."""
        return f"http://127.0.0.1:{port}"

    async def launch(self, spec: LaunchSpec) -> Process:
        """Start a server, detached from us. Raises TargetUnusable with the reason if none was started.

        Where the wrapper itself gave no answer the reason says so, and `launch_status` tells what became of it.
        """
        order = {
            "launch": spec.launch,
            "owner": spec.owner,
            "runs": str(self._workdir / "runs"),
            "lock": str(self._workdir / "gpu.lock"),
            "argv": list(spec.argv),
            "env": dict(spec.env),
            "unset": list(spec.unset),
        }
        answer = await self._verb(_START_LIMIT_S, "start", order=order)
        if "error" in answer:
            unusable = TargetBusy if answer["error"] in ("locked", "alive") else TargetUnusable
            raise unusable(one_line(str(answer["message"]), 400), _HINTS.get(answer["error"], ""))
        return Process(pid=answer["pid"], start_ticks=answer["start_ticks"])

    async def launch_status(self, launch: str) -> LaunchStatus:
        """What the host knows of a launch; `processes` are those that live."""
        try:
            answer = await asyncio.to_thread(wrapper.status, self._run_dir(launch))
        except OSError:
            return LaunchStatus(state="unknown", leader_exit_code=None, processes=())
        return LaunchStatus(
            state=answer["state"],
            leader_exit_code=answer["leader_exit_code"],
            processes=_processes(answer["processes"]),
        )

    async def read_log(self, launch: str, offset: int, limit: int = 1 << 20) -> bytes:
        """Bytes of the launch's output from `offset`; none where there is no output yet."""
        try:
            return await asyncio.to_thread(_read, self._run_dir(launch) / "server.log", offset, limit)
        except FileNotFoundError:
            return b""
        except OSError as err:
            raise TargetUnusable(f"cannot read the log of launch {launch}: {err.strerror}") from err

    async def port_owners(self, launch: str, port: int) -> PortOwners:
        """Whose sockets listen on the port."""
        answer = await asyncio.to_thread(wrapper.owners, self._run_dir(launch), port)
        return PortOwners(ours=tuple(answer["ours"]), others=answer["others"])

    async def stop(self, launch: str, grace_s: float) -> StopReport:
        """As ports.Target; takes at most `grace_s` and 20 s more. A launch that never started then never will."""
        limit_s = grace_s + wrapper.KILL_LIMIT_S + _START_LIMIT_S
        answer = await self._verb(limit_s, "stop", str(self._run_dir(launch)), str(grace_s))
        if "error" in answer:
            raise TargetUnusable(f"cannot stop launch {launch}: {one_line(str(answer['message']))}")
        return StopReport(exit_code=answer["exit_code"], left=_processes(answer["left"]))

    async def close(self) -> None:
        """End the commands that still run. Servers go on."""
        await self._commands.close()

    async def _verb(self, limit_s: float, *words: str, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run a verb of the wrapper and return its answer."""
        script = await asyncio.to_thread(_install_wrapper, self._workdir)
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


def _gpu(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    try:
        major, _, minor = fields[-3].partition(".")
        memory = int(fields[-2]) if fields[-2].isdigit() else 0  # "[N/A]" where the GPU shares the host's memory
        return Gpu(
            index=int(fields[0]),
            name=", ".join(fields[1:-3]),
            sm_major=int(major),
            sm_minor=int(minor),
            memory_mib=memory,
            driver=fields[-1],
        )
    except (ValueError, IndexError) as err:
        raise TargetUnusable(f"nvidia-smi says {one_line(line)}", "a driver that knows compute_cap is needed") from err


def _processes(items: Sequence[Mapping[str, int]]) -> tuple[Process, ...]:
    return tuple(Process(pid=item["pid"], start_ticks=item["start_ticks"]) for item in items)


def _read(path: Path, offset: int, limit: int) -> bytes:
    # Without O_NONBLOCK opening a fifo would wait for its writer.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        data = bytearray()
        while len(data) < limit and (chunk := os.pread(fd, limit - len(data), offset + len(data))):
            data += chunk
        return bytes(data)
    finally:
        os.close(fd)


def _install_wrapper(workdir: Path) -> Path:
    """The wrapper's path in the work folder, which is made, or checked: whoever can write there could be us."""
    source = Path(wrapper.__file__).read_bytes()
    try:
        workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = workdir.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            hint = f"it must be a folder of yours that nobody else can write: chmod 700 {workdir}"
            raise TargetUnusable(f"{workdir} is a link, or others can write there", hint)
        workdir.chmod(0o700)
        script = workdir / f"wrapper-{hashlib.sha256(source).hexdigest()[:8]}.py"
        if not script.exists() or script.read_bytes() != source:
            temporary = script.with_name(f"{script.name}.{os.urandom(4).hex()}.tmp")
            temporary.touch(mode=0o600)
            temporary.write_bytes(source)
            temporary.replace(script)
    except OSError as err:
        raise TargetUnusable(f"cannot use {workdir}: {err.strerror}", "choose another work folder") from err
    return script
