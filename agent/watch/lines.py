"""Log bytes as they arrive, cut into cleaned lines: any chunking gives the same lines, in constant memory."""

import re
from typing import NamedTuple

from agent.text import decode

LINE_KEPT = 16 * 1024
"""Bytes of one line that are kept; the rest is counted."""

# A bar redrawn without a line end runs into the next log line: `0/8 [00:00<?, ?it/s][2026-11-29 23:26:21 TP1] Load ...`
_GLUED = re.compile(rb"(?<=[^\r\n])(?=\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)")


class Line(NamedTuple):
    """One segment of a log: `number` is its line in the file (counted by newlines), `text` is cleaned.

    `redraw` marks a progress bar that takes the place of the line before it.
    """

    number: int
    text: str
    redraw: bool = False


class LineSplitter:
    """Cuts a byte stream at newlines, carriage returns and glued time stamps. Empty segments are dropped."""

    def __init__(self) -> None:
        self._number = 1
        self._held = b""
        self._more = 0
        self._after_return = False

    def feed(self, data: bytes) -> list[Line]:
        """The lines that these bytes complete."""
        out: list[Line] = []
        rows = data.split(b"\n")
        last = len(rows) - 1
        for index, row in enumerate(rows):
            if b"\r" in row:
                *redrawn, row = row.split(b"\r")
                for segment in redrawn:
                    if self._complete(segment, out):
                        self._after_return = True
            if index < last:
                self._complete(row, out)
                self._number += 1
                self._after_return = False
            else:
                self._hold(row)
        return out

    def end(self) -> list[Line]:
        """The unfinished last line, at the end of the log."""
        out: list[Line] = []
        self._complete(b"", out)
        return out

    def peek(self) -> str:
        """The text of the unfinished last line: since SGLang 0.5.10 a bar ends only when the next one is drawn."""
        return decode(self._held, LINE_KEPT) if self._held else ""

    def _hold(self, segment: bytes) -> None:
        room = LINE_KEPT - len(self._held)
        self._held += segment[:room]
        self._more += max(0, len(segment) - room)

    def _complete(self, segment: bytes, out: list[Line]) -> bool:
        if self._held or len(segment) > LINE_KEPT:
            self._hold(segment)
            segment, more = self._held, self._more
            self._held, self._more = b"", 0
        else:
            more = 0
        if not segment:
            return False
        pieces = _GLUED.split(segment) if segment.find(b"[20", 1) != -1 else [segment]
        for index, piece in enumerate(pieces):
            text = decode(piece, LINE_KEPT)
            if more and index == len(pieces) - 1:
                text += f"… ({more} more bytes)"
            if text:
                out.append(Line(self._number, text, self._after_return and index == 0))
        return True


class Origin(NamedTuple):
    """Who wrote a line: `writer` is empty for the parent process, `rank` its rank where the prefix tells."""

    writer: str
    rank: int | None
    message: str
    prefixed: bool


_SGLANG = re.compile(r"\[(?:20\d\d-\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d+)?((?: [A-Z_]+\d+)*)\] ?")
_VLLM = re.compile(r"\((\w*Worker\w*|EngineCore\w*|APIServer\w*)([^)]*)\) ?")
_LEVEL = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w.]+:\d+\] ?")
_TORCH = re.compile(r"\[rank(\d+)\]: ?")
_NCCL = re.compile(r"([\w.-]+:\d+):\d+ \[(\d+)\] (?=.*\bNCCL )")
_GPU_ID = re.compile(r"\[gpu_id=(\d+)\] ?")
_TAGS = re.compile(
    r"(?:> )+|\S{3} \S{3} +\d+ \d\d:\d\d:\d\d \d{4}\[\d+,\d+\]<std\w+>:|(?:ERROR|INFO|WARNING) 20\d\d-\S+Z "
)
_RANK = re.compile(r"\bTP(\d+)|_TP(\d+)|rank=(\d+)")


def origin(text: str) -> Origin:
    """The prefix of a log line, taken apart."""
    first = text[:1]
    if first in "> TMWFSEI" and (tag := _TAGS.match(text)):  # quoting and launchers put their own marks in front
        text = text[tag.end() :]
        first = text[:1]
    if first == "[":
        if match := _SGLANG.match(text):
            return _origin(match[1].strip(), match[1], text[match.end() :])
        if match := _TORCH.match(text) or _GPU_ID.match(text):
            return Origin(f"rank{match[1]}", int(match[1]), text[match.end() :], True)
    elif first == "(":
        if match := _VLLM.match(text):
            rest = text[match.end() :]
            level = _LEVEL.match(rest)
            return _origin(match[1] + match[2], match[1] + match[2], rest[level.end() :] if level else rest)
    elif match := _LEVEL.match(text):
        return Origin("", None, text[match.end() :], True)
    elif match := _NCCL.match(text):
        return Origin(match[1], int(match[2]), text[match.end() :], True)
    return Origin("", None, text, False)


def _origin(writer: str, prefix: str, message: str) -> Origin:
    rank = _RANK.search(prefix)
    return Origin(writer, int(rank[1] or rank[2] or rank[3]) if rank else None, message, True)
