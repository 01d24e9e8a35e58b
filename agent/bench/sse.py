"""What a recorded stream of events says, read after the request has ended. Pure.

The body of a stream comes in parts. Nearly always each is one event, which is read fastest; nothing relies on it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat, takewhile
from typing import Any

from agent.bench.api import CUMULATIVE, count_of, text_of, usage_of
from agent.bench.shape import Shape, learnt
from agent.playbook.api import Api

_NONE = Shape.nothing()

_WINDOW = 256
"""Parts that are tried together: what has to be tried again behind an event that does not fit."""


@dataclass(slots=True)
class Stream:
    """A read stream. A token chunk is an event with text that is new.

    `places` are the numbers of the parts in which their lines end, `told` the completion tokens that each of them told.
    `usage` is the last that the server gave, `error` what an error event said, `done` whether `[DONE]` came. `shape` is
    that of its events, where one was learnt.
    """

    places: list[int] = field(default_factory=list)
    told: list[int | None] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    done: bool = False
    shape: Shape = field(default=_NONE, compare=False)

    def arrivals(self, parts_s: Sequence[float]) -> tuple[float, ...]:
        """When each token chunk had arrived, given when each part had."""
        return tuple(map(parts_s.__getitem__, self.places))

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

    def read(self, parts: Sequence[bytes]) -> Stream:
        """Read the whole body."""
        at, torn = 0, list[bytes]()
        while at < len(parts):
            if not torn and (fitting := self.fitting(parts, at)):
                at += fitting
                continue
            *lines, rest = parts[at].split(b"\n")
            for line in lines:
                self.line(b"".join((*torn, line, b"\n")), at)
                torn.clear()
            if rest:
                torn.append(rest)
            at += 1
        if torn:
            self.line(b"".join(torn), len(parts) - 1)
        return self.stream

    def fitting(self, parts: Sequence[bytes], at: int) -> int:
        """How many parts from `at` on were read in a faster way."""
        return 0

    def line(self, line: bytes, place: int) -> bool:
        """Read a line that ends in the part `place`. True where it was a token chunk."""
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
        self.stream.places.append(place)
        self.stream.told.append(count_of(usage, "completion_tokens"))
        return True


class _ShortReader(_Reader):
    """Reads most events by the shape of one, which it learns unless it is that of another stream, `like`."""

    def __init__(self, api: Api, like: Shape) -> None:
        super().__init__(api)
        self.stream.shape = like
        self._shape = _NONE  # its head is of one stream only
        self._learnings = 0
        self._unread = b""  # the last event that fitted, while no later usage is read

    def read(self, parts: Sequence[bytes]) -> Stream:
        """Read the whole body."""
        super().read(parts)
        self._settle()
        return self.stream

    def fitting(self, parts: Sequence[bytes], at: int) -> int:
        """How many parts from `at` on are events that fit; they are read."""
        head, first, match = self._shape.head, len(self._shape.head), self._shape.rest.fullmatch
        if match(parts[at], first) is None:
            return 0
        window = parts[at : at + _WINDOW]
        counts = [found[1] for found in takewhile(bool, map(match, window, repeat(first))) if found]
        run = window[: len(counts)]
        if not (min(run).startswith(head) and max(run).startswith(head)):  # then one between them may not, either
            del counts[next(i for i, part in enumerate(run) if not part.startswith(head)) :]
        self._took(counts, range(at, at + len(counts)))
        if counts:
            self._unread = run[len(counts) - 1]
        return len(counts)

    def line(self, line: bytes, place: int) -> bool:
        """Read a line that ends in the part `place`. True where it was a token chunk."""
        shape = self._shape
        if line.startswith(shape.head) and (found := shape.rest.fullmatch(line, len(shape.head))):
            self._took([found[1]], [place])
            self._unread = line
            return True
        usage = self.stream.usage
        token = super().line(line, place)
        if self.stream.usage is not usage:  # told later than that of an event before it
            self._unread = b""
        # Learning costs as much as ten events: a stream whose events have no shape is not learnt from for ever.
        if token and self._learnings <= len(self.stream.places) // 16:
            known = self.stream.shape.of(line)
            if known is None:
                self._learnings += 1
                known = learnt(self.api, line)
            if known is not None:
                self._settle()  # events of another shape may tell none
                self._shape = self.stream.shape = known
        return token

    def _took(self, counts: Sequence[bytes], places: Sequence[int]) -> None:
        self.stream.places.extend(places)
        self.stream.told.extend(map(int, counts) if self._shape.counts else repeat(None, len(counts)))

    def _settle(self) -> None:
        """Read the usage of the last event, if it fitted."""
        if self._unread:
            usage = usage_of(self.api, json.loads(self._unread[5:].decode("utf-8", "replace")))
            self.stream.usage = self.stream.usage if usage is None else usage
            self._unread = b""


def read_plainly(api: Api, parts: Sequence[bytes]) -> Stream:
    """Read every event of the body of a streamed response."""
    return _Reader(api).read(parts)


def read_stream(api: Api, parts: Sequence[bytes], like: Shape = _NONE) -> Stream:
    """What `read_plainly` reads, without the JSON of events that differ only in their text and their numbers.

    Most of a stream is such events. The shape of one is learnt, then a regular expression reads the others; what does
    not fit is read plainly, and learnt from. `like` is the shape of another stream of the same server.
    """
    if api in CUMULATIVE:  # whether the text is new takes the text
        return read_plainly(api, parts)
    return _ShortReader(api, like).read(parts)


def _error_text(error: object) -> str:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return str(error)
