"""A server that keeps its own ledger: when each request had arrived, and when each token was sent.

    python truth_server.py        # prints its port; GET /ledger gives {number: [arrived, sent, sent, ...]}

Times are readings of CLOCK_MONOTONIC in seconds, which is one clock for all processes of a host. A prompt is the number
of the request, and the pauses in seconds before the first token and after each: `17 0.05 0.02`. The number comes back
as the usage's prompt tokens, so that it tells the samples apart.
"""

import asyncio
import json
import sys
from time import perf_counter
from typing import cast

LEDGER: dict[str, list[float]] = {}


class Connection(asyncio.Protocol):
    """One connection: requests one after the other. The transport of asyncio sends at once, so stamps are true."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self.received = b""

    def data_received(self, data: bytes) -> None:
        """Stamp, and answer later: other requests may have arrived meanwhile."""
        arrived_s = perf_counter()
        self.received += data
        head, gap, body = self.received.partition(b"\r\n\r\n")
        length = int((head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) or 0)
        if gap and len(body) == length:
            self.received = b""
            asyncio.get_running_loop().call_soon(self.answer, body, arrived_s)

    def answer(self, body: bytes, arrived_s: float) -> None:
        """The ledger, or a stream."""
        if not body:
            ledger = json.dumps(LEDGER).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(ledger), ledger))
            return
        asked = json.loads(body)
        number, first_s, step_s = asked["prompt"].split()
        stamps = LEDGER[number] = [arrived_s]
        self.transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        self.later(float(first_s), int(number), float(step_s), asked["max_tokens"], stamps)

    def later(self, pause_s: float, number: int, step_s: float, left: int, stamps: list[float]) -> None:
        """The next token after a pause."""
        asyncio.get_running_loop().call_later(pause_s, self.token, number, step_s, left, stamps)

    def token(self, number: int, step_s: float, left: int, stamps: list[float]) -> None:
        """Send a token, or the end."""
        if not left:
            self.transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            return
        usage = {"prompt_tokens": number, "completion_tokens": len(stamps)}
        event = {"id": "cmpl-1", "object": "text_completion", "choices": [{"index": 0, "text": " a"}], "usage": usage}
        line = b"data: %s\n\n" % json.dumps(event).encode()
        stamps.append(perf_counter())
        self.transport.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.later(step_s, number, step_s, left - 1, stamps)


async def main() -> None:
    """Serve until stdin ends."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
