"""A small HTTP/1.1 server: keep-alive, JSON bodies, streams by chunked transfer. It binds 127.0.0.1 only."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from agent.sim.procs import stamp


@dataclass(frozen=True)
class Request:
    """One request. `data` is the parsed JSON body, or None."""

    method: str
    path: str
    data: Any
    bad_json: bool


@dataclass(frozen=True)
class Reply:
    """One answer: a body, or a stream of server-sent events."""

    status: int
    body: bytes = b""
    kind: str = "application/json"
    stream: AsyncGenerator[bytes, None] | None = None


Handler = Callable[[Request], Awaitable[Reply]]


def json_reply(data: Any, status: int = 200) -> Reply:
    """An answer with a JSON body."""
    return Reply(status, json.dumps(data).encode())


def text_reply(text: str, status: int = 200) -> Reply:
    """An answer in plain text."""
    return Reply(status, text.encode(), "text/plain; charset=utf-8")


async def bind(handler: Handler, port: int) -> asyncio.Server:
    """Listen on the port. Raises OSError if it is taken."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _exchange(handler, reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connected, "127.0.0.1", port)


async def _exchange(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:])}
    body = await _read_body(reader, headers)
    request = _parse(method, urlsplit(target).path, body)
    reply = await handler(request)
    peer = writer.get_extra_info("peername")
    phrase = HTTPStatus(reply.status).phrase
    line = f'{stamp()} INFO:     {peer[0]}:{peer[1]} - "{method} {target} HTTP/1.1" {reply.status} {phrase}\n'
    sys.stdout.write(line)
    sys.stdout.flush()
    keep = headers.get("connection", "").lower() != "close"
    top = f"HTTP/1.1 {reply.status} {phrase}\r\ncontent-type: {reply.kind}\r\n"
    top += "" if keep else "connection: close\r\n"
    if reply.stream is None:
        writer.write(f"{top}content-length: {len(reply.body)}\r\n\r\n".encode() + reply.body)
        await writer.drain()
    else:
        writer.write(f"{top}transfer-encoding: chunked\r\n\r\n".encode())
        await _send_stream(reply.stream, reader, writer)
    return keep


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


def _parse(method: str, path: str, body: bytes) -> Request:
    try:
        return Request(method, path, json.loads(body) if body else None, False)
    except ValueError:
        return Request(method, path, None, True)


async def _send_stream(
    stream: AsyncGenerator[bytes, None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    transport = writer.transport
    try:
        async for part in stream:
            if transport.is_closing() or reader.at_eof():
                raise ConnectionResetError
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    finally:
        await stream.aclose()
