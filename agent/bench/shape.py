"""The shape of an event: what all events of a stream have in common but their text and their numbers. Pure.

A line of JSON whose text is exchanged for another valid string, and whose numbers for other numbers, is JSON of the
same structure. So where a line has the bytes of a learnt one up to the text, and a regular expression fits the rest,
the line need not be decoded to know that it has text, no error, and which number its completion tokens are.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.bench.api import count_of, text_of, usage_of
from agent.playbook.api import Api

_PLAIN, _ESCAPE = rb"[^\"\\\x00-\x1f]", rb"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})"
_CHARS = _PLAIN + b"*+(?:" + _ESCAPE + _PLAIN + b"*+)*+"
_TEXT = rb"(?!\")" + _CHARS
_STRING = b'"' + _CHARS + b'"'
_NUMBER = rb"-?(?:0|[1-9][0-9]{0,17}+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_COUNT = rb"[1-9][0-9]{0,17}+"  # what most numbers are; it fits in a third of the time
_TOKEN = re.compile(b"(" + _STRING + rb")(\s*:)?|" + _NUMBER)

_LONG_NUMBER = re.compile(rb"[0-9]{19}")

_MARK = "a text that no server sends"
_FIRST_NUMBER = 918_273_645_001


@dataclass(frozen=True, slots=True)
class Shape:
    """Fits an event where the line begins with `head` and `rest` matches behind it.

    `rest` takes the text, which is not empty, the rest of the line, and the empty line after it if there is one. Its
    group 1 is the number of completion tokens if it `counts` them. `heads` matches the heads of other streams of the
    server, which differ in their strings and numbers: an id, a time.
    """

    head: bytes
    rest: re.Pattern[bytes]
    counts: bool
    heads: re.Pattern[bytes]

    @classmethod
    def nothing(cls) -> "Shape":
        """Fits no event."""
        never = re.compile(rb"(?!)()")
        return cls(b"", never, False, never)

    def of(self, line: bytes) -> "Shape | None":
        """This shape for the stream whose `line` differs in strings and numbers only; None where more does."""
        found = self.heads.match(line)
        if found is None or self.rest.fullmatch(line, found.end()) is None:
            return None
        return replace(self, head=found[0])


def learnt(api: Api, line: bytes) -> Shape | None:
    """The shape of a line with text; None where it cannot be told.

    It is found by experiment: another text, and other numbers behind it, are put in, and must turn up in the event.
    """
    tokens = list(_TOKEN.finditer(line, len(b"data:")))
    try:
        event = json.loads(line[5:])
        text = text_of(api, event)
        if event.get("error") is not None or _LONG_NUMBER.search(line) or not line.endswith(b"\n"):
            return None
        texts = [x for x in tokens if x[1] and not x[2] and json.loads(x[1]) == text]
    except (ValueError, RecursionError):
        return None
    for token in texts:
        behind = [x for x in tokens if x.start() >= token.end()]
        shape = _tried(api, line, token.start() + 1, token.end() - 1, behind)
        if shape is not None and shape.of(line):
            return shape
    return None


def _tried(api: Api, line: bytes, start: int, end: int, behind: list[re.Match[bytes]]) -> Shape | None:
    changed, at = line[5:start] + _MARK.encode(), end
    numbers = [x for x in behind if not x[1]]
    for index, number in enumerate(numbers):
        changed += line[at : number.start()] + b"%d" % (_FIRST_NUMBER + index)
        at = number.end()
    event: dict[str, Any] = json.loads(changed + line[at:])
    if text_of(api, event) != _MARK:
        return None
    told = count_of(usage_of(api, event), "completion_tokens")
    which = None if told is None else told - _FIRST_NUMBER
    counted = None
    if which is not None:
        if not 0 <= which < len(numbers) or not re.fullmatch(_COUNT, numbers[which][0]):
            return None  # it stands before the text, or is 0
        counted = numbers[which]
    rest = _TEXT + _values(line, end, len(line), behind, counted) + rb"(?:\r?\n)?" + (b"" if counted else b"()")
    before = [x for x in _TOKEN.finditer(line, len(b"data:")) if x.end() < start]
    return Shape(line[:start], re.compile(rest), counted is not None, re.compile(_values(line, 0, start, before, None)))


def _values(
    line: bytes, start: int, end: int, tokens: Sequence[re.Match[bytes]], counted: re.Match[bytes] | None
) -> bytes:
    """A pattern of that part of a line: values may differ, keys may not. The value `counted` is a group."""
    pattern, at = b"", start
    for token in tokens:
        if token[2]:
            continue
        pattern += re.escape(line[at : token.start()])
        value = _STRING if token[1] else _COUNT if re.fullmatch(_COUNT, token[0]) else _NUMBER
        pattern += b"(" + value + b")" if token is counted else value
        at = token.end()
    return pattern + re.escape(line[at:end])
