"""What a recorded stream of events says, read after the request has ended. Pure."""

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from agent.bench.api import CUMULATIVE, count_of, text_of, usage_of
from agent.bench.shape import Shape, learnt
from agent.playbook.api import Api

_NONE = Shape.nothing()


@dataclass(slots=True)
class Stream:
    """A read stream. A token chunk is an event with text that is new.

    `ends` are the positions in the body where their lines end, `told` the completion tokens that each of them told.
    `usage` is the last that the server gave, `error` what an error event said, `done` whether `[DONE]` came. `shape` is
    that of its events, where one was learnt.
    """

    ends: list[int] = field(default_factory=list)
    told: list[int | None] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    done: bool = False
    shape: Shape = field(default=_NONE, compare=False)

    def arrivals(self, ends: list[int], stamps: list[float]) -> tuple[float, ...]:
        """When each token chunk had arrived, given the length of the body at each stamp."""
        return tuple(map(stamps.__getitem__, map(bisect_left, repeat(ends), self.ends)))

    def chunk_tokens(self) -> tuple[int, ...] | None:
        """The tokens that each token chunk brought; None where the server did not tell, or counted backwards."""
        before, deltas = 0, []
        for count in self.told:
            if count is None or count < before:
                return None
            deltas.append(count - before)
            before = count
        return tuple(deltas)


class _Reader:
    """Reads event by event, with the JSON of each."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.stream = Stream()
        self._text_before = ""

    def line(self, line: bytes, end: int) -> bool:
        """Read a line that ends at `end`. True where it was a token chunk."""
        if not line.startswith(b"data:"):
            return False
        data = line[5:].strip()
        if data == b"[DONE]":
            self.stream.done = True
            return False
        try:
            event = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            said = data[:200].decode("utf-8", "replace")
            self.stream.error = self.stream.error or f"not an event: {said}"
            return False
        if event.get("error") is not None:
            self.stream.error = self.stream.error or f"the stream says: {_error_text(event['error'])}"
        usage = usage_of(self.api, event)
        if usage is not None:
            self.stream.usage = usage
        text = text_of(self.api, event)
        if not text or text == self._text_before:
            return False
        if self.api in CUMULATIVE:
            self._text_before = text
        self.stream.ends.append(end)
        self.stream.told.append(count_of(usage, "completion_tokens"))
        return True


def read_plainly(api: Api, body: bytes) -> Stream:
    """Read every event of the body of a streamed response."""
    reader, at = _Reader(api), 0
    while at < len(body):
        end = body.find(b"\n", at) + 1 or len(body)
        reader.line(body[at:end], end)
        at = end
    return reader.stream


def read_stream(api: Api, body: bytes, like: Shape = _NONE) -> Stream:
    """What `read_plainly` reads, without the JSON of events that differ only in their text and their numbers.

    Most of a stream is such events. The shape of one is learnt, then one regular expression reads the others; what
    does not fit is read plainly, and learnt from. `like` is the shape of another stream of the same server.
    """
    if api in CUMULATIVE:  # whether the text is new takes the text
        return read_plainly(api, body)
    reader = _Reader(api)
    stream = reader.stream
    ended, told = stream.ends.append, stream.told.append
    shape, learnings, at = _NONE, 0, 0  # a shape's head is of one stream only
    fitted = -1  # where the last event that fitted began, if its usage is not read yet
    while at < len(body):
        head, first, gap, match = shape.head, len(shape.head), shape.gap, shape.rest.match
        while body.startswith(head, at) and (found := match(body, at + first)):
            fitted, at = at, found.end()
            ended(at - gap)
            told(int(number) if (number := found[1]) else None)
        if at >= len(body):
            break
        end = body.find(b"\n", at) + 1 or len(body)
        line = body[at:end]
        if line.startswith(b"data:"):
            _settle(stream, api, body, fitted)
            fitted = -1
        # Learning costs as much as ten events: a stream whose events have no shape is not learnt from for ever.
        if reader.line(line, end) and learnings <= len(stream.ends) // 16:
            known = like.of(body, at)
            if known is None:
                learnings += 1
                known = learnt(api, line, body[end : end + 2])
            shape = known or shape
            like = known or like
        at = end
    _settle(stream, api, body, fitted)
    stream.shape = like
    return stream


def _settle(stream: Stream, api: Api, body: bytes, at: int) -> None:
    """Read the usage of the event at `at`, which is the last one up to here."""
    if at >= 0:
        line = body[at + len(b"data:") : body.index(b"\n", at)]
        stream.usage = usage_of(api, json.loads(line.decode("utf-8", "replace"))) or stream.usage


def _error_text(error: object) -> str:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return str(error)
