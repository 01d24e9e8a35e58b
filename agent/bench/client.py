"""Generations of a server, streamed over one keep-alive connection a lane."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agent.bench.api import PATHS, Prompt, request_body
from agent.bench.http import ClosedBeforeResponse, Connection, HttpError, Response
from agent.bench.pause import Pause
from agent.playbook.api import Api

_OPTIONAL = ("ignore_eos", "continuous_usage_stats", "stream_options")
"""Extensions that a strict server refuses by name (`transformers serve` answers 422 to any it does not know)."""

_BASE_S = 300.0
_PER_TOKEN_S = 0.5


def deadline_s(output_len: int) -> float:
    """Seconds that one request may take in all: five minutes to be let in, then two tokens a second at least."""
    return _BASE_S + _PER_TOKEN_S * output_len


@dataclass(slots=True)
class Server:
    """A server as its requests need it. `refused` are the request fields that it was found not to take."""

    base_url: str
    refused: set[str] = field(default_factory=set)

    def address(self) -> tuple[str, int]:
        """Host and port. Raises HttpError for what is not a plain HTTP URL."""
        parts = urlsplit(self.base_url)
        if parts.scheme != "http" or parts.hostname is None:
            raise HttpError(f"not an http:// address: {self.base_url}")
        return parts.hostname, parts.port or 80

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The bytes of a whole request."""
        parts = urlsplit(self.base_url)
        head = (
            f"{method} {parts.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept-Encoding: identity\r\n"
        )
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    def generation(self, api: Api, model: str, prompt: Prompt, output_len: int) -> bytes:
        """The bytes of a request for a generation, without what the server was found not to take."""
        body = _without(request_body(api, model, prompt, output_len), self.refused)
        return self.request("POST", PATHS[api], json.dumps(body).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What became of one request: a response of whatever status, or the reason why there is none.

    `retries` counts idle connections found closed, after which the request was sent again.
    """

    response: Response | None
    error: str | None
    retries: int


class Lane:
    """One of the concurrent clients: it sends its requests one after the other, over one connection."""

    def __init__(self, server: Server, pause: Pause | None = None) -> None:
        self._server = server
        self._pause = pause
        self._connection: Connection | None = None
        self._retries = 0
        self._pieces = 0

    @property
    def pieces(self) -> int:
        """Pieces received so far, by all requests."""
        response = None if self._connection is None else self._connection.response
        return self._pieces + (0 if response is None else len(response.stamps))

    async def complete(self, api: Api, model: str, prompt: Prompt, output_len: int, within_s: float) -> Exchange:
        """One generation. What goes wrong is in the result; only cancellation is raised."""
        self._retries = 0
        response, error = None, None
        try:
            async with asyncio.timeout(within_s):
                response = await self._complete(api, model, prompt, output_len)
        except TimeoutError:
            error = f"no complete answer within {within_s:g} s"
        except HttpError as failure:
            error = str(failure)
        return Exchange(response=response, error=error, retries=self._retries)

    async def get(self, path: str, within_s: float) -> Response:
        """The response to a GET. Raises HttpError."""
        try:
            async with asyncio.timeout(within_s):
                return await self._exchange(self._server.request("GET", path))
        except TimeoutError as error:
            raise HttpError(f"no answer to GET {path} within {within_s:g} s") from error

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _complete(self, api: Api, model: str, prompt: Prompt, output_len: int) -> Response:
        while True:
            left_out = frozenset(self._server.refused)
            response = await self._exchange(self._server.generation(api, model, prompt, output_len))
            refused = _refused_fields(response) - left_out
            if not refused:
                return response
            self._server.refused |= refused

    async def _exchange(self, request: bytes) -> Response:
        connection = await self._open()
        try:
            response = await connection.exchange(request)
        except ClosedBeforeResponse:
            # A server may close an idle connection at the very moment in which we send; llama-server keeps one for 5 s.
            if not connection.used:
                raise
            self._retries += 1
            response = await (await self._open()).exchange(request)
        self._pieces += len(response.stamps)
        return response

    async def _open(self) -> Connection:
        if self._connection is None or not self._connection.usable:
            await self.close()
            self._connection = await Connection.open(*self._server.address(), self._pause)
        return self._connection


def _without(fields: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    kept = {key: value for key, value in fields.items() if key not in refused}
    return {key: _without(value, refused) if isinstance(value, dict) else value for key, value in kept.items()}


def _refused_fields(response: Response) -> frozenset[str]:
    """The fields to leave out, where the server refused the request and named one of them."""
    if response.status not in (400, 422):
        return frozenset()
    body = response.body.decode("utf-8", "replace")
    named = frozenset(name for name in _OPTIONAL if name in body)
    # The message about an option inside stream_options names that field as well.
    return named - {"stream_options"} or named


async def first_model(server: Server, within_s: float = 30.0) -> str:
    """The name of the first model that `/v1/models` lists. Raises HttpError."""
    lane = Lane(server)
    try:
        response = await lane.get("/v1/models", within_s)
    finally:
        await lane.close()
    if response.status != 200:
        raise HttpError(f"GET /v1/models: HTTP {response.status}")
    try:
        name = json.loads(response.body)["data"][0]["id"]
    except (ValueError, LookupError, TypeError) as error:
        raise HttpError("GET /v1/models names no model") from error
    if not isinstance(name, str):
        raise HttpError("GET /v1/models names no model")
    return name
