"""HTTP/1.1 as a load generator needs it: every received piece is stamped, and nothing else is done while it arrives."""

import asyncio
from array import array
from time import perf_counter

CONNECT_S = 10.0
"""Seconds after which a connection that was not made counts as refused."""

BODY_LIMIT = 256 << 20
"""Bytes of one response beyond which it is given up."""

_LINE_LIMIT = 64 << 10


class HttpError(Exception):
    """No whole response came back. The message says why."""


class ClosedBeforeResponse(HttpError):
    """The connection ended before the first byte of a response."""


class Response:
    """One response while it arrives: the body without its framing, and when each piece of it came.

    `sent_s` and `stamps` are readings of `time.perf_counter`. `ends[i]` is the length of the body after the piece
    stamped `stamps[i]`.
    """

    def __init__(self, sent_s: float) -> None:
        self.sent_s = sent_s
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.ends: array[int] = array("Q")
        self.stamps: array[float] = array("d")
        self.started = False
        self.complete = False
        self.keep_alive = False
        self._held = b""
        self._chunked = False
        self._left: int | None = 0  # bytes of the chunk or body to come; None: until the connection ends
        self._in_trailer = False

    def feed(self, data: bytes, now_s: float) -> None:
        """Take bytes of the connection. Raises HttpError for what is not HTTP."""
        self.started = True
        if self._held:
            data, self._held = self._held + data, b""
        if not self.status:
            data = self._take_head(data)
            if not self.status:
                return
        if self._chunked:
            self._take_chunks(data)
        else:
            self._take_plain(data)
        size = len(self.body)
        if size > (self.ends[-1] if self.ends else 0):
            self.ends.append(size)
            self.stamps.append(now_s)
            if size > BODY_LIMIT:
                raise HttpError(f"the response is longer than {BODY_LIMIT >> 20} MiB")

    def end(self) -> None:
        """The connection ended. Raises HttpError unless that is how the response says that it ends."""
        if self.complete:
            return
        if not self.started:
            raise ClosedBeforeResponse("the server closed the connection without an answer")
        if self._left is not None or not self.status:
            raise HttpError(f"the server closed the connection in the middle of its answer ({len(self.body)} bytes)")
        self.complete = True

    def _take_head(self, data: bytes) -> bytes:
        while not self.status:
            head, gap, rest = data.partition(b"\r\n\r\n")
            if not gap:
                if len(data) > _LINE_LIMIT:
                    raise HttpError("the head of the answer does not end")
                self._held = data
                return b""
            data = rest
            self._read_head(head.decode("latin-1"))
        return data

    def _read_head(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/1.") or not (code.isascii() and code.isdigit()):
            raise HttpError(f"not an HTTP answer: {first[:80]}")
        if code[0] == "1":  # an interim answer such as 100: the real one follows
            return
        self.status = int(code)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
        persistent = version != "HTTP/1.0"
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length")
        if self._chunked:
            self._left = 0
        elif self.status in (204, 304):
            self._left, self.complete = 0, True
        elif length is None:  # the body lasts until the connection ends
            self._left, persistent = None, False
        elif length.isascii() and length.isdigit():
            self._left = int(length)
            self.complete = self._left == 0
        else:
            raise HttpError(f"not a content length: {length[:80]}")
        wish = self.headers.get("connection", "").lower()
        self.keep_alive = "close" not in wish and (persistent or (length is not None and "keep-alive" in wish))

    def _take_plain(self, data: bytes) -> None:
        if self._left is None:
            self.body += data
            return
        self.body += data[: self._left]
        if len(data) > self._left:  # bytes that nobody asked for: the connection is not to be trusted
            self.keep_alive = False
        self._left = max(0, self._left - len(data))
        self.complete = self._left == 0

    def _take_chunks(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self.complete:
                self.keep_alive = False
                return
            if self._left:
                piece = data[at : at + self._left]
                self.body += piece
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._held = data[at:]
                if len(self._held) > _LINE_LIMIT:
                    raise HttpError("a chunk of the answer has no size")
                return
            line = data[at:end].strip()
            at = end + 1
            if self._in_trailer:
                self.complete = not line
            elif line:  # an empty line is the end of the chunk before
                self._left = _chunk_size(line)
                self._in_trailer = self._left == 0


def _chunk_size(line: bytes) -> int:
    try:
        size = int(line.partition(b";")[0], 16)
    except ValueError:
        size = -1
    if size < 0:
        raise HttpError(f"not a chunk size: {line[:80].decode('latin-1')}")
    return size


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time.

    It is a Protocol rather than a pair of streams: the stamp is taken in the callback of the event loop itself, and
    the task that waits is woken once a request, not once a token.
    """

    def __init__(self) -> None:
        self.usable = False
        self.used = False
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, host: str, port: int) -> "Connection":
        """Connect within CONNECT_S seconds. Raises HttpError."""
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
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
        response = self._response = Response(perf_counter())
        self._transport.write(request)
        try:
            await self._waiter
        finally:
            self._response = None
        self.used = True
        self.usable = response.keep_alive and not self._lost.done()
        return response

    async def close(self) -> None:
        """Drop the connection; afterwards its socket is closed."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()
            await asyncio.wait((self._lost,))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.usable = True

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        now_s = perf_counter()
        response = self._response
        if response is None or response.complete:  # nobody asked: a 408 before it closes, for instance
            self.usable = False
            if response is not None:
                response.keep_alive = False
            return
        try:
            response.feed(data, now_s)
        except HttpError as error:
            self._finish(error)
        else:
            if response.complete:
                self._finish(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self.usable = False
        self._lost.set_result(None)
        if self._response is not None:
            try:
                self._response.end()
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
