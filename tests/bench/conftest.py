"""A scripted completions server on a real socket, and what its answers are made of."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agent.playbook.model import Workload


@dataclass
class Request:
    """One request that arrived: the connection it came over, and which one of that connection it was."""

    method: str
    path: str
    body: dict
    connection: int
    nth: int


@dataclass
class Answer:
    """Writes a response in the transfer encoding that the test wants."""

    writer: asyncio.StreamWriter
    framing: str = "chunked"
    torn: int = 0

    async def head(self, status: str = "200 OK", headers: str = "") -> None:
        framing = {"chunked": "Transfer-Encoding: chunked\r\n", "close": "Connection: close\r\n"}[self.framing]
        await self._write(f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\n{framing}{headers}\r\n".encode())

    async def send(self, data: bytes) -> None:
        await self._write(b"%x\r\n%s\r\n" % (len(data), data) if self.framing == "chunked" else data)

    async def event(self, value: object) -> None:
        await self.send(b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n")

    async def token(self, text: str, tokens: int | None = None) -> None:
        usage = {} if tokens is None else {"usage": {"prompt_tokens": 7, "completion_tokens": tokens}}
        await self.event({"choices": [{"index": 0, "text": text}]} | usage)

    async def finish(self, tokens: int | None, cached: int | None = None) -> None:
        if tokens is not None:
            details = {"prompt_tokens_details": None if cached is None else {"cached_tokens": cached}}
            await self.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": tokens} | details})
        await self.send(b"data: [DONE]\n\n")
        await self.end()

    async def end(self) -> None:
        if self.framing == "chunked":
            await self._write(b"0\r\n\r\n")
        else:
            self.writer.close()

    async def plain(self, status: str, body: bytes, headers: str = "") -> None:
        self.writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        await self.writer.drain()

    async def _write(self, data: bytes) -> None:
        if not self.torn:
            self.writer.write(data)
            await self.writer.drain()
            return
        for at in range(0, len(data), self.torn):
            self.writer.write(data[at : at + self.torn])
            await self.writer.drain()
            await asyncio.sleep(0)


Handler = Callable[[Request, Answer], Awaitable[None]]


@dataclass
class Scripted:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[Scripted]]]:
    """`await serve(handler)` starts a server; at the end of the test no connection to it may be open any more."""
    started: list[tuple[asyncio.Server, Scripted]] = []

    async def start(handler: Handler) -> Scripted:
        scripted = Scripted()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            scripted.connections += 1
            scripted.open += 1
            number, nth = scripted.connections, 0
            try:
                while not writer.is_closing():
                    request = await _read(reader, number, nth)
                    nth += 1
                    scripted.requests.append(request)
                    await handler(request, Answer(writer))
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                scripted.open -= 1
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        scripted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.append((server, scripted))
        return scripted

    before = asyncio.all_tasks()
    yield start
    for server, scripted in started:
        server.close()
        await server.wait_closed()
        async with asyncio.timeout(2):
            while scripted.open or len(asyncio.all_tasks()) > len(before):
                await asyncio.sleep(0.005)


async def _read(reader: asyncio.StreamReader, connection: int, nth: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, path, _ = head.split("\r\n")[0].split(" ")
    length = next((int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length")), 0)
    body = json.loads(await reader.readexactly(length)) if length else {}
    return Request(method, path, body, connection, nth)


@pytest.fixture
def workload() -> Workload:
    return Workload(name="w", concurrency=1, input_len=32, output_len=8, requests=4)
