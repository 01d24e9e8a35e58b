"""The least that a client in Python can do: it stamps what arrives and keeps it, and reads nothing of it.

    python bare.py URL REQUESTS CONCURRENCY OUTPUT_LEN

What it takes of the CPU is the floor for all others: the reads, the event loop, the wake-ups. It only knows server.py.
Prints `{"completed", "duration"}`, the latter in seconds.
"""

import asyncio
import gc
import json
import sys
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import uvloop

END = b"0\r\n\r\n"
"""How the last piece of a streamed response ends."""


class Lane(asyncio.Protocol):
    """A connection that sends a request again and again, while `left` says that some are to be sent."""

    def __init__(self, request: bytes, left: list[int]) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._left = request, left
        self._stamps: list[float] = []
        self._pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._stamps.append(perf_counter())
        self._pieces.append(data)
        if data.endswith(END):
            self._send()

    def _send(self) -> None:
        if self._left[0]:
            self._left[0] -= 1
            self._transport.write(self._request)
        else:
            self.done.set_result(None)


async def load(url: str, requests: int, concurrency: int, output_len: int) -> float:
    """The whole load; the seconds that it took."""
    asked = {"model": "tiny-llama", "prompt": "a b c", "max_tokens": output_len, "stream": True}
    body = json.dumps(asked | {"stream_options": {"include_usage": True}}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    place, left, loop = urlsplit(url), [requests], asyncio.get_running_loop()
    began_s = perf_counter()
    made = [
        await loop.create_connection(lambda: Lane(f"{head}\r\n\r\n".encode() + body, left), place.hostname, place.port)
        for _ in range(concurrency)
    ]
    for _, lane in made:
        await lane.done
    return perf_counter() - began_s


def main(url: str, *amounts: str) -> None:
    """Do it, and print."""
    requests, concurrency, output_len = map(int, amounts)
    gc.disable()
    duration_s = uvloop.run(load(url, requests, concurrency, output_len))
    print(json.dumps({"completed": requests, "duration": duration_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
