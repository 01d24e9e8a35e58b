"""A server that streams tokens as fast as one core can send them, to compare benchmark clients on.

    python server.py --port 8500 [--step-ms 3.2]      # with uvloop where it is installed

OpenAI completions and chat, streamed: one token a server-sent event, one event an HTTP chunk, one write a token and
step; then the usage where `include_usage` asks for it, and `[DONE]`. `continuous_usage_stats` puts usage into every
chunk, as vLLM does. As in a real engine a step gives every running request its next token. Without --step-ms a step
begins when the last one ends. A client that reads too slowly is waited for. GET /meter tells the tokens sent and the
CPU seconds used so far.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from functools import lru_cache
from time import process_time
from typing import cast

MODEL = "tiny-llama"
WORD = " a"
PLAIN = {
    "/health": b"",
    "/metrics": b"",
    "/server_info": json.dumps({"model_path": MODEL, "tp_size": 1, "max_running_requests": 4096}).encode(),
    "/v1/models": json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode(),
}


def event(data: str) -> bytes:
    """A server-sent event as one HTTP chunk."""
    line = f"data: {data}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(line), line)


def chunk(chat: bool, text: str | None, usage: dict[str, int] | None) -> bytes:
    """One event of a stream: a token, or with no text the usage at its end."""
    head = {"id": "cmpl-0123456789abcdef", "created": 1700000000, "model": MODEL}
    if chat:
        choice: dict[str, object] = {"index": 0, "delta": {"role": "assistant", "content": text}}
    else:
        choice = {"index": 0, "text": text}
    choice |= {"logprobs": None, "finish_reason": None}
    kind = "chat.completion.chunk" if chat else "text_completion"
    body = head | {"object": kind, "choices": [] if text is None else [choice]}
    return event(json.dumps(body | ({"usage": usage} if usage else {}), separators=(",", ":")))


@lru_cache(maxsize=256)
def stream(chat: bool, prompt_tokens: int, tokens: int, include: bool, continuous: bool) -> tuple[bytes, ...]:
    """All writes of one response after its head."""

    def usage(done: int) -> dict[str, int]:
        return {"prompt_tokens": prompt_tokens, "completion_tokens": done, "total_tokens": prompt_tokens + done}

    if continuous:
        parts = [chunk(chat, WORD, usage(done)) for done in range(1, tokens + 1)]
    else:
        parts = [chunk(chat, WORD, None)] * tokens
    last = chunk(chat, None, usage(tokens)) if include else b""
    return (*parts, last + event("[DONE]") + b"0\r\n\r\n")


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Engine:
    """The running requests, and the steps that give each its next token."""

    def __init__(self, step_s: float) -> None:
        self.running: set[Connection] = set()
        self.tokens = 0
        self._step_s = step_s
        self._stepping = False

    def add(self, connection: "Connection") -> None:
        """Let a connection's request in with the next step."""
        self.running.add(connection)
        if not self._stepping:
            self._stepping = True
            self._next(asyncio.get_running_loop().time() + self._step_s)

    def _next(self, at_s: float) -> None:
        loop = asyncio.get_running_loop()
        if self._step_s:
            loop.call_at(at_s, self._step, at_s)
        else:
            loop.call_soon(self._step, at_s)

    def _step(self, at_s: float) -> None:
        for connection in tuple(self.running):
            connection.step()
        self._stepping = bool(self.running)
        if self._stepping:
            self._next(at_s + self._step_s)


class Connection(asyncio.Protocol):
    """One client's connection: requests one after the other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = b""
        self._left: Iterator[bytes] = iter(())
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget its request."""
        self._engine.running.discard(self)

    def pause_writing(self) -> None:
        """The client reads too slowly: its request waits."""
        self._engine.running.discard(self)

    def resume_writing(self) -> None:
        """It caught up."""
        self._engine.add(self)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines[1:])}
            size = int(headers.get("content-length", 0))
            if len(rest) < size:
                return
            self._buffer = rest[size:]
            method, path = lines[0].split(" ")[:2]
            self._answer(method, path.partition("?")[0], rest[:size])

    def _answer(self, method: str, path: str, body: bytes) -> None:
        if method == "POST" and path in ("/v1/completions", "/v1/chat/completions"):
            self._begin(path == "/v1/chat/completions", json.loads(body))
            return
        if path == "/meter":
            content: bytes | None = json.dumps({"tokens": self._engine.tokens, "cpu_s": process_time()}).encode()
        else:
            content = PLAIN.get(path)
        status = b"404 Not Found" if content is None else b"200 OK"
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, len(content or b"")) + (content or b""))

    def _begin(self, chat: bool, asked: dict[str, object]) -> None:
        prompt = asked["messages"] if chat else asked["prompt"]
        prompt_tokens = len(prompt) if isinstance(prompt, list) and not chat else max(1, len(str(prompt)) // 4)
        tokens = asked.get("max_completion_tokens") or asked.get("max_tokens") or 16
        options = asked.get("stream_options") or {}
        assert isinstance(tokens, int) and isinstance(options, dict)
        wanted = (bool(options.get(name)) for name in ("include_usage", "continuous_usage_stats"))
        self._left = iter(stream(chat, prompt_tokens, tokens, *wanted))
        self._engine.tokens += tokens
        self._transport.write(STREAM_HEAD)
        self._engine.add(self)

    def step(self) -> None:
        """Send the next token, if there is one."""
        part = next(self._left, None)
        if part is None:
            self._engine.running.discard(self)
        else:
            self._transport.write(part)


async def serve(port: int, step_s: float) -> None:
    """Listen on the loopback interface until the process is ended."""
    engine = Engine(step_s)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(engine), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="A server that streams tokens as fast as one core can.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--step-ms", type=float, default=0.0)
    options = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        print("without uvloop: slower", file=sys.stderr)
    else:
        uvloop.install()
    asyncio.run(serve(options.port, options.step_ms / 1000))


if __name__ == "__main__":
    main()
