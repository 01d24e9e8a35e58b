"""A small real HTTP server whose answers a test sets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

Answer = Callable[[str, str, bytes], tuple[int, str] | None]


class Fake:
    """Answers `METHOD path` by a table of (status, body); `None` never answers. `asked` are the requests seen."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, str] | None] = {}
        self.asked: list[tuple[str, bytes]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path = head.split()[:2]
        lengths = [int(row.split(":")[1]) for row in head.splitlines() if row.lower().startswith("content-length")]
        self.asked.append((f"{method} {path}", await reader.readexactly(lengths[0] if lengths else 0)))
        answer = self.answers.get(f"{method} {path}", (404, '{"detail":"Not Found"}'))
        if answer is not None:
            status, body = answer
            size = len(body.encode())
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}".encode())
            await writer.drain()
            writer.close()


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    """The server, on a loopback port."""
    it = Fake()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield it
    server.close()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """The client that the kinds use."""
    async with httpx.AsyncClient() as client:
        yield client


def completion(**changes: Any) -> dict[str, Any]:
    """The answer of a server that generated one token."""
    return {
        "choices": [{"index": 0, "text": " a", "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        **changes,
    }
