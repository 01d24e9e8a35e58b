"""What a recorded stream of completion events says, read after the request has ended."""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.bench.http import Response


@dataclass(slots=True)
class Stream:
    """A read stream. Times are readings of `time.perf_counter`; a token chunk is one whose text is not empty.

    `usage` is the last that the server gave, `error` what an error event said, `done` whether `[DONE]` came.
    """

    chunks: int = 0
    first_s: float | None = None
    last_s: float | None = None
    usage: Mapping[str, object] | None = None
    error: str | None = None
    done: bool = False


def read_stream(response: Response) -> Stream:
    """Read every event of a response to a streamed `/v1/completions`."""
    stream = Stream()
    for data, stamp_s in _events(response):
        if data == b"[DONE]":
            stream.done = True
            continue
        try:
            event = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            stream.error = stream.error or f"not an event: {data[:200].decode('utf-8', 'replace')}"
            continue
        if event.get("error") is not None:
            stream.error = stream.error or f"the stream says: {_error_text(event['error'])}"
        if isinstance(event.get("usage"), dict):
            stream.usage = event["usage"]
        if _has_text(event):
            stream.chunks += 1
            stream.last_s = stamp_s
            if stream.first_s is None:
                stream.first_s = stamp_s
    return stream


def _events(response: Response) -> Iterator[tuple[bytes, float]]:
    """The payload of each `data:` line, and when the end of that line arrived."""
    end = -1
    for line in bytes(response.body).split(b"\n"):
        end += len(line) + 1  # the position of the line feed, or the length of the body after the last line
        if line.startswith(b"data:"):
            piece = bisect_left(response.ends, min(end + 1, len(response.body)))
            yield line[5:].strip(), response.stamps[piece]


def _has_text(event: Mapping[str, object]) -> bool:
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    text = choices[0].get("text")
    return isinstance(text, str) and text != ""


def _error_text(error: object) -> str:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return str(error)
