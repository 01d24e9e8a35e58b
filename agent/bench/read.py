"""From recorded exchanges to samples. Pure."""

from agent.bench.api import cached_of, count_of
from agent.bench.client import Exchange
from agent.bench.http import Response
from agent.bench.sample import Sample
from agent.bench.shape import Shape
from agent.bench.sse import Stream, read_stream
from agent.playbook.api import Api


class Reader:
    """Reads the requests to one server: what is learnt of the events of a stream serves the next."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._shape = Shape.nothing()

    def sample(self, exchange: Exchange, scheduled_s: float | None = None) -> Sample:
        """Read one. It succeeded if HTTP 200, `[DONE]`, and usage or a token chunk came, and no error event."""
        response = exchange.response
        if response is None:
            error = exchange.error or "no answer"
            return Sample(error=error, scheduled_s=scheduled_s, retries=exchange.retries)
        stream = Stream()
        if response.status == 200:
            stream = read_stream(self._api, response.parts, self._shape)
            self._shape = stream.shape
        chunk_s = stream.arrivals(response.parts_s)
        tokens = count_of(stream.usage, "completion_tokens")
        return Sample(
            error=_failure(response, stream, tokens),
            scheduled_s=scheduled_s,
            sent_s=response.sent_s,
            first_s=chunk_s[0] if chunk_s else None,
            last_s=chunk_s[-1] if chunk_s else None,
            chunks=len(chunk_s),
            chunk_s=chunk_s,
            chunk_tokens=stream.chunk_tokens(),
            output_tokens=len(chunk_s) if tokens is None else tokens,
            prompt_tokens=count_of(stream.usage, "prompt_tokens"),
            cached_tokens=cached_of(stream.usage),
            counted=tokens is None,
            retries=exchange.retries,
        )


def _failure(response: Response, stream: Stream, tokens: int | None) -> str | None:
    if response.status != 200:
        return f"HTTP {response.status}: {response.body[:2000].decode('utf-8', 'replace')}"
    if stream.error is not None:
        return stream.error
    if not stream.done:
        return f"the stream ended without [DONE], after {len(stream.places)} token chunks"
    if tokens is None and not stream.places:
        return "the stream had no token and no usage"
    return None
