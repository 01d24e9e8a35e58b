"""What the kinds of servers share: writing flags, one generation over HTTP, comparing flags with what is in effect."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

import httpx

from agent.core.model import FlagCheck, FlagStatus, LaunchConfig
from agent.playbook.model import Args, ArgValue
from agent.ports import Speculation
from agent.redact import is_secret_name
from agent.text import one_line

TRY_TIMEOUT_S = 10.0
"""How long one request of ready(), effective_flags() or flush_cache() may take."""

_SPECULATED = re.compile(r"^\w+:spec_decode_num_(drafts|accepted_tokens)_total(?:\{[^}]*\})? (\S+)$", re.MULTILINE)

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def with_address(args: Args, port: int) -> Args:
    """The flags with a loopback address, unless the playbook gives its own."""
    return {**args, **{k: v for k, v in {"host": "127.0.0.1", "port": str(port)}.items() if args.get(k) is None}}


async def fetch_json(http: httpx.AsyncClient, url: str) -> Json:
    """The JSON of a GET, or None where there is none to be had."""
    try:
        reply = await http.get(url, timeout=TRY_TIMEOUT_S)
        body: Json = reply.json() if reply.status_code == 200 else None
    except (httpx.HTTPError, ValueError):
        return None
    return body


async def post_ok(http: httpx.AsyncClient, url: str) -> bool:
    """Whether a POST without a body is answered 200."""
    try:
        return (await http.post(url, timeout=TRY_TIMEOUT_S)).status_code == 200
    except httpx.HTTPError:
        return False


async def drafts_and_accepted(http: httpx.AsyncClient, base_url: str) -> Speculation | None:
    """Speculation by the counters of /metrics, which vLLM and llama.cpp name alike. None where there is no /metrics.

    Each draft is a pass that keeps the accepted tokens and one of its own.
    """
    try:
        reply = await http.get(f"{base_url}/metrics", timeout=TRY_TIMEOUT_S)
    except httpx.HTTPError:
        return None
    if reply.status_code != 200:
        return None
    sums = {"drafts": 0.0, "accepted_tokens": 0.0}
    for name, value in _SPECULATED.findall(reply.text):
        sums[name] += float(value)
    return Speculation(kept=sums["drafts"] + sums["accepted_tokens"], passes=sums["drafts"])


async def generates(http: httpx.AsyncClient, base_url: str) -> bool:
    """Whether a completion of one token comes back. A 200 without a generated token is none."""
    ask = {"prompt": "Hello", "max_tokens": 1, "temperature": 0}  # no model name: both servers then take their own
    try:
        reply = await http.post(f"{base_url}/v1/completions", json=ask, timeout=TRY_TIMEOUT_S)
        body: Json = reply.json() if reply.status_code == 200 else None
    except (httpx.HTTPError, ValueError):
        return False
    if not isinstance(body, dict):
        return False
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    usage = body.get("usage")
    made = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return made != 0 and choices[0].get("finish_reason") in ("length", "stop")


def check_flag(
    flag: str, requested: ArgValue, reported: Mapping[str, Json], field: str | None, rewritten: bool
) -> FlagCheck:
    """One requested flag against `reported[field]`; `rewritten` says that the server is known to adjust this field."""
    status: FlagStatus = "not-reported"
    effective: str | None = None
    if field is not None:
        value = reported[field]
        effective = one_line(value if isinstance(value, str) else json.dumps(value))
        if same(requested, value):
            status = "equal"
        else:
            status = "rewritten" if rewritten or requested == "auto" else "contradicted"
    if is_secret_name(flag):
        mark = "‹redacted›"
        return FlagCheck(flag=flag, requested=mark, effective=effective and mark, status=status)
    return FlagCheck(flag=flag, requested=requested, effective=effective, status=status)


def requested_flags(config: LaunchConfig) -> Iterator[tuple[str, str, ArgValue]]:
    """Every flag that was asked for: its name, the name of its field, its value."""
    for name, value in config.args.items():
        if value is not None:
            yield name, name.replace("-", "_"), value


def same(requested: ArgValue, effective: Json) -> bool:
    """Whether a flag's text and a server's value say the same: 8 and "8", 0.90 and 0.9, ~/m and /home/u/m."""
    if isinstance(requested, tuple):
        return isinstance(effective, list) and len(requested) == len(effective) and all(map(same, requested, effective))
    if isinstance(requested, bool):
        return bool(effective) is requested
    if requested is None or effective is None:
        return (requested is None and effective is None) or requested in ("None", "null")
    if isinstance(effective, bool):
        return requested.lower() == str(effective).lower()
    if isinstance(effective, int | float):
        return _number(requested) == _number(str(effective))
    if isinstance(effective, dict | list):
        return _parsed(requested) == effective
    return _same_text(requested, effective)


def _same_text(requested: str, effective: str) -> bool:
    if requested == effective:
        return True
    if requested.startswith("~/"):
        return effective.startswith("/") and effective.rstrip("/").endswith(requested[1:].rstrip("/"))
    if requested.startswith("/"):
        return requested.rstrip("/") == effective.rstrip("/")
    if requested[:1] in "{[" and (parsed := _parsed(requested)) is not None:
        return parsed == _parsed(effective)
    number = _number(requested)
    return number is not None and number == _number(effective)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value
