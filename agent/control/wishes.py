"""What a person hands in from an attached screen, as a line; and what of it a session takes."""

import json
from typing import Any

from agent.core import events as ev
from agent.journal.codec import UnknownEvent, decode, encode
from agent.playbook.model import AskEntry, Experiment, GrepEntry
from agent.text import clean, one_line

LONGEST_LINE = 256 * 1024
"""Bytes of a line that a session reads."""

_TAKEN = (ev.Wish, ev.ExperimentCompleted, ev.InterruptRequested)
_TYPED = frozenset({"id", "based_on", "args", "env", "why"})


class Refused(Exception):
    """The line changes nothing. The message says why."""


def write_wish(event: ev.Event) -> bytes:
    """The line for an event."""
    return json.dumps(encode(event)).encode() + b"\n"


def read_wish(line: bytes, now: float) -> ev.Event:
    """The event in a line, as of `now` (seconds since the epoch). Raises Refused for what no screen hands in."""
    try:
        record = json.loads(line)
        clean_throughout = _is_clean(record)
    except (ValueError, RecursionError) as error:
        raise Refused("not a line of JSON") from error
    name, data = (record.get("event"), record.get("data")) if isinstance(record, dict) else (None, None)
    kind = ev.Event.kinds.get(name) if isinstance(name, str) else None
    if kind is None or kind is ev.Wish or not issubclass(kind, _TAKEN) or not isinstance(data, dict):
        raise Refused(f"{one_line(str(name), 80)} is nothing that a person hands in")
    if not clean_throughout:
        raise Refused("a text in it is too long, or holds control or invisible characters")
    try:
        event = decode({"event": name, "data": {**data, "at": now}})
    except UnknownEvent as error:
        raise Refused(one_line(str(error))) from error
    if isinstance(event, ev.ExperimentAdded) and not _is_typed(event.spec):
        raise Refused("a new experiment has flags, variables, a parent and a reason, and nothing else")
    if isinstance(event, ev.ResearchAdded) and not isinstance(event.entry, AskEntry | GrepEntry):
        raise Refused("only questions and searches can be added")
    return event


def _is_typed(spec: Experiment) -> bool:
    """Whether a person could have typed it on the screen: it runs nothing but the server."""
    return spec.based_on is not None and spec.model_dump(exclude_defaults=True).keys() <= _TYPED


def _is_clean(value: Any) -> bool:
    if isinstance(value, str):
        return clean(value) == value
    if isinstance(value, dict):
        return all(_is_clean(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(_is_clean, value))
