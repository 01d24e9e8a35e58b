"""The tools that look at the launches of this session: what they printed, and what a running one says of itself."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
from pydantic import Field

from agent.core.model import Quote
from agent.logscan import written
from agent.playbook.fields import Whole
from agent.playbook.model import Strict
from agent.redact import is_secret_name
from agent.research.common import Redact, ResearchError, numbered, quote_text
from agent.research.facts import LaunchFacts
from agent.research.tool import Reply, Scope, Tool, Word
from agent.servers.known_flags import known_flags
from agent.text import decode

_MOST_LINES = 400
_LONGEST_LINE = 1 << 20
_KEPT = 16 << 10
"""Bytes of a log line that are looked at; fewer are shown."""
_HEAD = 1000
"""Bytes of a log line that tell who wrote it."""
_LOG_LIMIT_S = 15.0
_HTTP_LIMIT_S = 15.0
_MAX_BODY = 2 << 20

_INFO = {"sglang": ("/server_info", "/get_server_info"), "vllm": ("/v1/models",), "llamacpp": ("/v1/models",)}
_PLAIN_NAMES = frozenset({"version", "id", "object", "owned_by", "root", "parent", "status"})
"""Beside the names of flags, those whose text is shown; numbers and switches always are."""

Which = Annotated[Word, Field(description="the id of a launch, or current, or last")]


class _Log(Strict):
    launch: Which = "last"
    from_line: Annotated[Whole | None, Field(ge=1, description="the first line to show; else the last ones are")] = None
    from_byte: Annotated[Whole | None, Field(ge=0, description="or: show from the line that this byte is in")] = None
    lines: Annotated[Whole, Field(ge=1, description=f"how many lines, at most {_MOST_LINES}")] = 60
    rank: Annotated[Whole | None, Field(ge=0, description="only what this rank wrote")] = None
    match: Annotated[Word | None, Field(description="only lines with this text, in either case")] = None


class _Info(Strict):
    launch: Which = "current"


class _Metrics(Strict):
    launch: Which = "current"
    match: Annotated[Word | None, Field(description="only lines with this text")] = None


async def _log(scope: Scope, given: _Log) -> Reply:
    launch = _launch(scope, given.launch)
    # Reading a long log takes seconds: not on the loop that answers keys.
    return await asyncio.to_thread(_read_log, launch, given, scope.sources.redact)


def _read_log(launch: LaunchFacts, given: _Log, redact: Redact) -> Reply:
    count = min(given.lines, _MOST_LINES)
    from_end = given.from_line is None and given.from_byte is None
    kept: deque[tuple[int, bytes]] = deque(maxlen=count)
    note = f"launch {launch.launch} of {launch.experiment} ({launch.stage})"
    began = time.monotonic()
    for number, row in _rows(launch.log, given):
        # Of a bar that redraws its line, the last state counts.
        kept.append((number, row.rpartition(b"\r")[2][:_KEPT]))
        if len(kept) == count and not from_end:
            break
        if time.monotonic() - began > _LOG_LIMIT_S:
            note += f"; the log is long: only what stands before line {number} was looked at"
            break
    path = f"log:{launch.launch}"
    return Reply(tuple(Quote(path=path, line=number, text=quote_text(row, redact)) for number, row in kept), note)


def _rows(log: Path, given: _Log) -> Iterator[tuple[int, bytes]]:
    """The lines that are wanted, from the first wanted one on, with their numbers in the file."""
    match = given.match.lower().encode() if given.match else b""
    writer: int | None = None
    offset = 0
    try:
        with log.open("rb") as file:
            for number, row in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                offset += len(row)
                row = row.rstrip(b"\r\n")
                if given.rank is not None:
                    found = written(decode(row[:_HEAD]))
                    writer = found.rank if found.prefixed else writer
                    if writer != given.rank:
                        continue
                reached = number >= (given.from_line or 1) and offset > (given.from_byte or 0)
                if reached and match in row.lower():
                    yield number, row
    except OSError as error:
        raise ResearchError(f"there is no log to read: {error.strerror}") from error


async def _info(scope: Scope, given: _Info) -> Reply:
    launch = _launch(scope, given.launch)
    kind = scope.config.kind
    for path in _INFO[kind]:
        status, body = await _get(scope, launch, path)
        if status == 200:
            break
    else:
        raise ResearchError(f"the server answers {status} for {' and '.join(_INFO[kind])}")
    try:
        told = json.loads(body)
    except ValueError as error:
        raise ResearchError("what the server says of itself is no JSON") from error
    names = {flag.replace("-", "_") for group in known_flags(kind) for flag in group} | _PLAIN_NAMES
    rows = json.dumps(_shown(told, "", names), indent=1, ensure_ascii=False).split("\n")
    return Reply(scope.quotes(f"server-info:{launch.launch}", rows))


async def _metrics(scope: Scope, given: _Metrics) -> Reply:
    launch = _launch(scope, given.launch)
    status, body = await _get(scope, launch, "/metrics")
    if status != 200:
        raise ResearchError(f"the server answers {status} for /metrics (SGLang has it with --enable-metrics)")
    match = (given.match or "").encode("utf-8", "replace")
    rows = [
        row for row in body.split(b"\n") if row and not row.startswith(b"#") and b"_bucket{" not in row and match in row
    ]
    return Reply(numbered(f"metrics:{launch.launch}", rows, scope.sources.redact))


def _launch(scope: Scope, wanted: str) -> LaunchFacts:
    launches = scope.facts().launches
    match wanted:
        case "last":
            found = launches[-1:]
        case "current":
            found = tuple(launch for launch in launches if launch.is_up)[-1:]
        case _:
            found = tuple(launch for launch in launches if launch.launch == wanted)
    if not found:
        known = ", ".join(f"{launch.launch} ({launch.experiment})" for launch in launches) or "none yet"
        raise ResearchError(f"there is no launch {wanted}; there are: {known}")
    return found[0]


async def _get(scope: Scope, launch: LaunchFacts, path: str) -> tuple[int, bytes]:
    """Status and body of a fixed path of our own server. Raises ResearchError where it gives no answer."""
    if launch.port is None:
        raise ResearchError(f"launch {launch.launch} is {launch.stage}: no server of ours answers")
    if scope.facts().measuring:
        raise ResearchError("a round is measured now, so the server is left alone; its log can be read")
    body = bytearray()
    try:
        url = await scope.sources.target.base_url(launch.port)
        async with (
            asyncio.timeout(_HTTP_LIMIT_S),
            httpx.AsyncClient(trust_env=False) as http,
            http.stream("GET", f"{url}{path}") as reply,
        ):
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BODY:
                    raise ResearchError(f"{path} is longer than {_MAX_BODY >> 20} MiB")
            return reply.status_code, bytes(body)
    except TimeoutError as error:
        raise ResearchError(f"the server did not answer within {_HTTP_LIMIT_S:.0f} s", "timeout") from error
    except httpx.HTTPError as error:
        raise ResearchError(f"the server did not answer: {type(error).__name__}") from error


def _shown(value: Any, name: str, names: set[str]) -> Any:
    """A value without the texts of fields that are not known to be harmless: a server tells its keys, too."""
    if isinstance(value, dict):
        return {key: _shown(item, str(key), names) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item, name, names) for item in value]
    harmless = value is None or isinstance(value, bool)
    if not harmless and (is_secret_name(name) or (isinstance(value, str) and name not in names)):
        return "‹not shown›"
    return value


TOOLS = (
    Tool("launch_log", "Lines of what a launch of this session printed.", _Log, _log),
    Tool("server_info", "What our running server says of its own arguments (SGLang) or models (vLLM).", _Info, _info),
    Tool("metrics", "Counters and gauges of our running server, as Prometheus lines.", _Metrics, _metrics),
)
