"""A scripted Messages API on a real socket: each request gets the next answer of the script."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

DROP = "drop"
"""In a script of events: the connection breaks here."""
STALL = "stall"
"""In a script of events: nothing more comes."""


@dataclass
class FakeLlm:
    """What it will answer, and the bodies of the requests that came."""

    script: list[list[Any] | tuple[int, dict[str, Any]]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    piece: int = 1 << 16
    """Bytes that are sent at a time."""
    when: Callable[[], bool] = lambda: True
    """Nothing is answered before this is true."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client closes a connection on which nothing more comes."""

    @property
    def told(self) -> list[dict[str, Any]]:
        """The results of tools in the last request, in order."""
        blocks = [
            block
            for message in self.requests[-1]["messages"]
            if message["role"] == "user" and isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [block for block in blocks if block["type"] == "tool_result"]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._handle(reader, writer)
        writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.headers.append(head)
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        self.requests.append(json.loads(await reader.readexactly(length)))
        while not self.when():
            await asyncio.sleep(0.02)
        if not self.script:
            return  # more was asked than the test expects: the connection ends
        answer = self.script.pop(0)
        if isinstance(answer, tuple):
            body = json.dumps(answer[1]).encode()
            writer.write(b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\nconnection: close\r\n" % answer[0])
            writer.write(b"retry-after-ms: 1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in answer:
            if event == DROP:
                await writer.drain()
                writer.transport.abort()
                return
            if event == STALL:
                await asyncio.wait_for(reader.read(), 60)
                self.left.set()
                return
            data = (
                event
                if isinstance(event, bytes)
                else b"event: %s\ndata: %s\n\n"
                % (
                    event["type"].encode(),
                    json.dumps(event).encode(),
                )
            )
            for start in range(0, len(data), self.piece):
                part = data[start : start + self.piece]
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                if len(data) > self.piece:
                    await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@contextlib.asynccontextmanager
async def serve(*script: list[Any] | tuple[int, dict[str, Any]]) -> AsyncIterator[FakeLlm]:
    """A fake that answers with the script, until the block ends."""
    fake = FakeLlm(list(script))
    handlers: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.create_task(fake.handle(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


def begin(tokens: int = 1, cached: int = 0) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "stop_reason": None,
    }
    usage = {"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": cached}
    return {"type": "message_start", "message": {**message, "usage": usage}}


def end(reason: str | None, tokens: int = 2) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens}}, {"type": "message_stop"}]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(words: str, index: int = 0) -> list[dict[str, Any]]:
    halves = (words[: len(words) // 2], words[len(words) // 2 :])
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": half} for half in halves))


def says(words: str, reason: str | None = "end_turn") -> list[Any]:
    """A turn of text."""
    return [begin(), *text(words), *end(reason)]


def uses(*calls: tuple[str, Any], tokens: int = 1) -> list[Any]:
    """A turn that calls tools; `tokens` went in."""
    blocks: list[Any] = []
    for index, (name, given) in enumerate(calls):
        start = {"type": "tool_use", "id": f"call_{index}", "name": name, "input": {}}
        blocks += block(index, start, {"type": "input_json_delta", "partial_json": json.dumps(given)})
    return [begin(tokens), *blocks, *end("tool_use")]


def answers(text: str, **more: Any) -> list[Any]:
    """A turn that answers."""
    return uses(("answer", {"text": text, "confidence": "medium", **more}))


def claim(path: str, line: int, quote: str, text: str = "It is so.") -> dict[str, Any]:
    return {"text": text, "path": path, "line": line, "quote": quote}
