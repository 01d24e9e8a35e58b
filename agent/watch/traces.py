"""Finds what may be the cause in log lines: exceptions with the frames above them, and telling lines of native code."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agent.watch.lines import Line, origin


@dataclass(slots=True, kw_only=True)
class Suspect:
    """A line that may name the cause.

    `text` is without prefix, `frames` are the `file:line function` of its traceback, `source` the source line above.
    `native` lines come from C++, the launcher or argparse rather than from a Python exception.
    """

    line: Line
    text: str
    rank: int | None
    frames: tuple[str, ...] = ()
    source: Line | None = None
    below: list[Line] = field(default_factory=list)
    native: bool = False


@dataclass(slots=True)
class _Open:
    """The traceback that a writer is in the middle of."""

    rank: int | None
    frames: list[str] = field(default_factory=list)
    source: Line | None = None


_HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r'\s*File "([^"]*)", line (\d+), in (\S+)')
_CARETS = re.compile(r"[\s^~]*$")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|Exit|Interrupt|Failed|OutOfResources|NotFound)\b(?=:|$)"
)
_ANY_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?=: |:?$)")
_NATIVE = re.compile(
    r"[\w.]+: error: "
    r"|\[Errno 98\]"
    r"|Fatal Python error: |Caught signal \d|\*\*\* SIG[A-Z]+ received|Segmentation fault"
    r"|terminate called after throwing|what\(\): "
    r"|NCCL WARN .*(?:no algorithm|/dev/shm|[Oo]ut of memory|failed|unhandled)|creating shared memory segment"
    r"|Watchdog caught collective operation timeout|client socket has timed out"
    r"|CUDA Error: |cudaMalloc failed|ggml_abort|Assertion `.*failed"
    r"|\bXid\b|Failed to get device capability: |[Ww]atchdog timeout \(self\."
)
_BELOW_KEPT = 4


def suspects(lines: Iterable[Line]) -> Iterator[Suspect]:
    """Every line that may name the cause, in the order of the log.

    The lines of a traceback carry no prefix (SGLang) or each the same (vLLM): an unprefixed line belongs to whoever
    wrote the last prefixed one.
    """
    tracebacks: dict[str, _Open] = {}
    writer = ""
    rank: int | None = None
    last: Suspect | None = None
    for line in lines:
        from_ = origin(line.text)
        if from_.prefixed:
            if from_.writer != writer or not _continues(from_.message):
                last = None
            writer, rank = from_.writer, from_.rank
        text = from_.message
        if _HEAD in text:
            tracebacks[writer] = _Open(rank)
            last = None
            continue
        current = tracebacks.get(writer)
        if current is not None and text[:1].isspace():
            _inside(current, text, line)
            continue
        found = _suspect(text, line, rank, current)
        if found is not None:
            tracebacks.pop(writer, None)
            last = found
            yield found
        elif last is not None and text and len(last.below) < _BELOW_KEPT:
            last.below.append(line._replace(text=text))


def _continues(text: str) -> bool:
    """vLLM prefixes each line of a text of several lines; a new message starts with a capital or a bracket."""
    return text[:1].isspace() or text[:1].islower()


def _inside(current: _Open, text: str, line: Line) -> None:
    if frame := _FRAME.match(text):
        current.frames.append(f"{frame[1]}:{frame[2]} {frame[3]}")
    elif not _CARETS.match(text):
        current.source = line


def _suspect(text: str, line: Line, rank: int | None, current: _Open | None) -> Suspect | None:
    name = _EXCEPTION.match(text) or (_ANY_NAME.match(text) if current is not None and current.frames else None)
    if name is not None and current is not None:
        return Suspect(line=line, text=text, rank=rank, frames=tuple(current.frames), source=current.source)
    if name is not None:  # the traceback above it was cut off
        return Suspect(line=line, text=text, rank=rank)
    if _NATIVE.search(text):
        return Suspect(line=line, text=text, rank=rank, native=True)
    return None
