"""HTTP/1.1 as a load generator needs it: every received piece is stamped, and nothing is read while it arrives."""

import asyncio
import os
from itertools import repeat
from time import perf_counter
from typing import cast

from httptools import HttpParserError, HttpResponseParser

from agent.bench.pause import Pause

CONNECT_S = 10.0
"""Seconds after which a connection that was not made counts as refused."""

BODY_LIMIT = 256 << 20
"""Bytes of one response beyond which it is given up."""

_EVENT_END = b"\n\n\r\n"
"""How a chunk with a whole event ends. A chunked body ends with CR LF CR LF or a part of it, so never like this."""

_HOLD = 64
"""Pieces that are read together: less work than one by one, and no longer than the stamps of others may wait."""


class HttpError(Exception):
    """No whole response came back. The message says why."""


class ClosedBeforeResponse(HttpError):
    """The connection ended before the first byte of a response."""


class Response:
    """One response: what it says, and when each piece of it came.

    `sent_s` and `stamps` are readings of `time.perf_counter`, `size` counts the bytes that were read. Once it is
    complete, `parts` are its body without its framing, none of them of two pieces, and `parts_s` says when each came.
    """

    def __init__(self, sent_s: float) -> None:
        self.sent_s = sent_s
        self.stamps: list[float] = []
        self.status = 0
        self.size = 0
        self.complete = False
        self.keep_alive = False
        self.parts: list[bytes] = []
        self.parts_s: list[float] = []
        self._held: list[bytes] = []
        self._hold = 0
        self._until_close = True
        self._interim = False
        self.on_body = self.parts.append  # called by the parser, once a piece of a chunk
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts)

    def feed(self, data: bytes, now_s: float) -> bool:
        """Take bytes of the connection; whether the response is complete. Raises HttpError for what is not HTTP."""
        self.stamps.append(now_s)
        self._held.append(data)
        if len(self._held) < self._hold and data.endswith(_EVENT_END):
            return False
        self._read()
        return self.complete

    def end(self) -> None:
        """The connection ended. Raises HttpError unless that is how the response says that it ends."""
        self._read()
        if self.complete:
            return
        self._parser = None
        if not self.size:
            raise ClosedBeforeResponse("the server closed the connection without an answer")
        if not self.status or not self._until_close:
            raise HttpError(f"the server closed the connection in the middle of its answer ({self.size} bytes)")
        self.complete = True

    def _read(self) -> None:
        held, self._held = self._held, []
        if self._parser is None:  # nobody asked for more: the connection is not to be trusted
            self.keep_alive = self.keep_alive and not held
            return
        self.size += sum(map(len, held))
        feed, parts, parts_s = self._parser.feed_data, self.parts, self.parts_s
        try:
            for data, now_s in zip(held, self.stamps[-len(held) :], strict=False):  # none of no pieces
                feed(data)
                while len(parts_s) < len(parts):
                    parts_s.append(now_s)
        except HttpParserError as error:
            if not self.complete:
                raise HttpError(f"not an HTTP answer: {error}") from error
            self.keep_alive = False
            parts_s.extend(repeat(now_s, len(parts) - len(parts_s)))
        if self.complete:
            self._parser, self._hold = None, 0  # it and this object hold each other
        elif self.size > BODY_LIMIT:
            raise HttpError(f"the response is longer than {BODY_LIMIT >> 20} MiB")

    def on_message_begin(self) -> None:
        """Called by the parser. Ends the reading of a second answer, which nobody asked for."""
        if self.complete:
            raise ValueError("a second answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._until_close = False
        if name == b"transfer-encoding":
            self._hold = _HOLD

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        parser = self._parser
        assert parser is not None
        status = parser.get_status_code()
        self._interim = 100 <= status < 200  # the real answer follows
        if not self._interim:
            self.status = status
            self.keep_alive = parser.should_keep_alive()

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if not self._interim:
            self.complete = True


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time.

    It is a Protocol rather than a pair of streams: the stamp is taken in the callback of the event loop itself, and
    the task that waits is woken once a request, not once a token.
    """

    def __init__(self, pause: Pause | None = None) -> None:
        self.usable = False
        self.used = False
        self.response: Response | None = None
        self._pause = pause
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, host: str, port: int, pause: Pause | None = None) -> "Connection":
        """Connect within CONNECT_S seconds. Raises HttpError."""
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(lambda: cls(pause), host, port)
        except TimeoutError as error:
            raise HttpError(f"no connection to {host}:{port} within {CONNECT_S:g} s") from error
        except OSError as error:
            raise HttpError(f"no connection to {host}:{port}: {error.strerror or error}") from error
        return connection

    async def exchange(self, request: bytes) -> Response:
        """Send a whole request and wait for the end of its response. Raises HttpError.

        A connection whose exchange was cancelled or failed is not usable again.
        """
        if self._transport is None or not self.usable:
            raise ClosedBeforeResponse("the connection is closed")
        self.usable = False
        self._waiter = asyncio.get_running_loop().create_future()
        response = self.response = Response(perf_counter())
        if unsent := request[self._send_now(request) :]:
            self._transport.write(unsent)
        try:
            await self._waiter
        finally:
            self.response = None
        self.used = True
        self.usable = response.keep_alive and not self._lost.done()
        return response

    def _send_now(self, request: bytes) -> int:
        """How many bytes the socket took at once; the loop itself would write when all that is due has run."""
        assert self._transport is not None
        try:
            return os.write(self._transport.get_extra_info("socket").fileno(), request)
        except OSError:  # full, or broken; in both cases the transport knows what to do
            return 0

    async def close(self) -> None:
        """Drop the connection; afterwards its socket is closed."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()
            await asyncio.wait((self._lost,))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        now_s = perf_counter()
        if self._pause is not None and not self._pause.due:
            self._pause.came(now_s)
        response = self.response
        if response is None:  # nobody asked: a 408 before it closes, for instance
            self.usable = False
            return
        try:
            if response.feed(data, now_s):
                self._finish(None)
        except HttpError as error:
            self._finish(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.usable = False
        self._lost.set_result(None)
        if self.response is not None:
            try:
                self.response.end()
            except HttpError as error:
                self._finish(error)
            else:
                self._finish(None)

    def _finish(self, error: HttpError | None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)
