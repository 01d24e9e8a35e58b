"""One SSH connection and the helper at its other end: requests out, answers in, until it breaks."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import asyncssh

from agent.ports import TargetUnreachable, TargetUnusable
from agent.targets.bundle import MODULES, modules_of, program, read_modules
from agent.text import decode, one_line

# Data never becomes part of a shell's words: this is all that the login shell sees, and bash, zsh, fish and tcsh
# read it alike. What python3 runs comes through stdin.
COMMAND = "exec python3 -I -S -X utf8 -c 'import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))'"
_STAGE = b"""
import json, sys, types
order = json.loads(sys.stdin.buffer.readline().decode())
if sys.version_info < (3, 8):
    answer = {"id": 0, "size": 0, "error": "python", "message": "python3 is " + sys.version.split()[0]}
    print(order["nonce"] + " " + json.dumps(answer))
    sys.exit()
for name, text in order.pop("modules"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules["agent.targets.helper"].serve(order)
"""
_MODULES = (*MODULES, "places", "environment", "trees", "jobs", "survey", "helper")
_HELLO_LIMIT_S = 30.0
_MISSES = 3
_CHUNK = 1 << 16
_NOISE_KEPT = 4096


class Broken(Exception):
    """The connection broke before the answer came: whether the request was carried out is not known."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a JSON object and bytes."""

    head: Mapping[str, Any]
    body: bytes


class Wire:
    """A helper that answered. Requests run side by side; when the connection breaks, all of them raise Broken."""

    def __init__(self, connection: asyncssh.SSHClientConnection, ping_s: float) -> None:
        self.connection = connection
        self.hello: Mapping[str, Any] = {}
        self.broken = asyncio.Event()
        self.why = ""
        self._ping_s = ping_s
        self._nonce = secrets.token_hex(16).encode()
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._next = 0
        self._noise = b""
        self._heard = 0
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(
        cls, connection: asyncssh.SSHClientConnection, settings: Mapping[str, Any], shown: str, ping_s: float
    ) -> "Wire":
        """Start the helper with `settings` over a connection. Raises TargetUnreachable, TargetUnusable."""
        wire = cls(connection, ping_s)
        try:
            await wire._start(settings, shown)
        except BaseException:
            await wire.close()
            raise
        return wire

    async def call(self, verb: str, **order: Any) -> Reply:
        """Ask and wait for the answer. Raises Broken."""
        return await self.send(verb, **order)[1]

    def send(self, verb: str, **order: Any) -> tuple[int, "asyncio.Future[Reply]"]:
        """Ask; the number of the request, and its answer to come."""
        self._next += 1
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if self.broken.is_set():
            answer.set_exception(Broken(self.why))
            return self._next, answer
        self._answers[self._next] = answer
        self.tell(verb, id=self._next, **order)
        return self._next, answer

    def tell(self, verb: str, **order: Any) -> None:
        """Say something that has no answer."""
        if self.broken.is_set():
            return
        line = json.dumps({"id": 0, "verb": verb, **order}).encode() + b"\n"
        with contextlib.suppress(OSError):  # the reader finds out why
            self._process.stdin.write(line)

    async def close(self) -> None:
        """End the connection, and with it the helper and its commands."""
        for task in self._tasks:
            task.cancel()
        self._break("closed")
        self.connection.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.connection.wait_closed()

    async def _start(self, settings: Mapping[str, Any], shown: str) -> None:
        modules = modules_of(await asyncio.to_thread(read_modules, _MODULES))
        wrapper = await asyncio.to_thread(program)
        order = {**settings, "nonce": self._nonce.decode(), "wrapper": wrapper, "modules": modules}
        hello: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._answers[0] = hello
        try:
            async with asyncio.timeout(_HELLO_LIMIT_S):
                self._process = await self.connection.create_process(
                    COMMAND, encoding=None, request_pty=False, stderr=asyncssh.STDOUT
                )
                self._process.stdin.write(b"%d\n" % len(_STAGE) + _STAGE + json.dumps(order).encode() + b"\n")
                self._tasks = [asyncio.create_task(self._read(), name=f"ssh {shown}")]
                self.hello = (await hello).head
        except TimeoutError as error:
            said = self._said()
            raise TargetUnreachable(f"python3 on {shown} gave no answer in {_HELLO_LIMIT_S:.0f} s{said}") from error
        except (Broken, asyncssh.Error, OSError) as error:
            code = self._process.exit_status if hasattr(self, "_process") else None
            if code is None:
                raise TargetUnreachable(f"the connection to {shown} broke: {one_line(str(error))}") from error
            hint = "python3 (3.8 or later) must be in the PATH of commands that run over SSH"
            raise TargetUnusable(f"python3 cannot be started on {shown} (exit {code}){self._said()}", hint) from error
        if "error" in self.hello:
            hint = one_line(str(self.hello.get("hint") or "tunebot needs Python 3.8 or later there"))
            raise TargetUnusable(f"on {shown}: {one_line(str(self.hello['message']), 400)}", hint)
        self._tasks.append(asyncio.create_task(self._ping(), name=f"ping {shown}"))

    def _said(self) -> str:
        said = one_line(decode(self._noise[-300:]))
        return f": {said}" if said else ""

    async def _read(self) -> None:
        try:
            while line := await self._process.stdout.readline():
                self._heard += 1
                noise, mark, rest = line.partition(self._nonce + b" ")
                if not mark:
                    self._noise = (self._noise + noise)[-_NOISE_KEPT:]
                    continue
                head = json.loads(rest)
                body = await self._body(head["size"])
                answer = self._answers.pop(head["id"], None)
                if answer and not answer.done():
                    answer.set_result(Reply(head, body))
            # An exit code tells a helper that could not start from a link that broke; it comes after the output.
            await self._process.wait_closed()
            self._break("the connection was lost")
        except (asyncssh.Error, OSError, ValueError) as error:
            self._break(one_line(str(error)) or type(error).__name__)

    async def _body(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size:
            chunk = await self._process.stdout.read(min(_CHUNK, size - len(body)))
            if not chunk:
                raise ConnectionError("the connection was lost")
            self._heard += 1
            body += chunk
        return bytes(body)

    async def _ping(self) -> None:
        """Tell the helper that we are here, and notice when nothing comes back.

        Counted in pings, not in seconds: after a sleep of this machine the clock has leapt, and the link may be fine.
        """
        missed, heard = 0, self._heard
        while missed < _MISSES:
            self.send("ping")
            await asyncio.sleep(self._ping_s)
            missed, heard = (missed + 1 if heard == self._heard else 0), self._heard
        self._break("the connection does not answer")
        self.connection.abort()

    def _break(self, why: str) -> None:
        if self.broken.is_set():
            return
        self.why = why
        self.broken.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Broken(why))
                answer.exception()  # nobody may wait for a ping's
        self._answers.clear()
