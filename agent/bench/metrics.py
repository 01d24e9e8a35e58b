"""From recorded requests to the numbers of a round. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from agent.bench.client import Exchange
from agent.bench.http import Response
from agent.bench.sse import Stream, read_stream
from agent.core.model import RoundMetrics

ALLOWED_FAILURES = 0.01
"""The largest fraction of failed requests with which a round still counts: fast failures would pass for speed."""


class NotMeasurable(Exception):
    """These requests make no round. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request. Times are readings of `time.perf_counter`; None is what a failed request does not have.

    `counted` says that the server told no usage, so that `output_tokens` is the number of token chunks.
    """

    error: str | None = None
    sent_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    chunks: int = 0
    output_tokens: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    counted: bool = False
    retries: int = 0

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.error is None

    @property
    def ttft_ms(self) -> float | None:
        """Time to first token: the first chunk with text, minus the send (as sglang.bench_serving has it)."""
        return _ms(self.sent_s, self.first_s)

    @property
    def e2e_ms(self) -> float | None:
        """The last chunk with text, minus the send (as `vllm bench serve` has it)."""
        return _ms(self.sent_s, self.last_s)

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token: (last - first token chunk) / (tokens - 1), as sglang, vllm and AIPerf have it.

        None where everything came at once (one chunk, or a proxy that holds the stream back): 0 ms would be a lie.
        """
        span_ms = _ms(self.first_s, self.last_s)
        if not span_ms or self.output_tokens < 2:
            return None
        return span_ms / (self.output_tokens - 1)


def sample(exchange: Exchange) -> Sample:
    """Read one request. It succeeded if HTTP 200, `[DONE]`, and usage or a token chunk came, and no error event."""
    response = exchange.response
    if response is None:
        return Sample(error=exchange.error or "no answer", retries=exchange.retries)
    stream = read_stream(response) if response.status == 200 else Stream()
    usage = stream.usage or {}
    tokens = _count(usage, "completion_tokens")
    details = usage.get("prompt_tokens_details")
    return Sample(
        error=_failure(response, stream, tokens),
        sent_s=response.sent_s,
        first_s=stream.first_s,
        last_s=stream.last_s,
        chunks=stream.chunks,
        output_tokens=stream.chunks if tokens is None else tokens,
        prompt_tokens=_count(usage, "prompt_tokens"),
        cached_tokens=_count(details, "cached_tokens") if isinstance(details, dict) else None,
        counted=tokens is None,
        retries=exchange.retries,
    )


def _failure(response: Response, stream: Stream, tokens: int | None) -> str | None:
    if response.status != 200:
        return f"HTTP {response.status}: {response.body[:2000].decode('utf-8', 'replace')}"
    if stream.error is not None:
        return stream.error
    if not stream.done:
        return f"the stream ended without [DONE], after {stream.chunks} token chunks"
    if tokens is None and stream.chunks == 0:
        return "the stream had no token and no usage"
    return None


def too_many_failed(failed: int, requests: int) -> bool:
    """Whether a round of `requests` cannot count any more."""
    return failed > ALLOWED_FAILURES * requests


def round_metrics(samples: Sequence[Sample]) -> RoundMetrics:
    """The numbers of one round. Raises NotMeasurable.

    Tokens, throughputs and times are of the successful requests only. The duration runs from their first send to
    their last token, and both throughputs are over it (sglang and vllm: sum of tokens / duration). Times are medians
    over requests in ms; `tokens_per_chunk` is all tokens over all token chunks, 1 without speculation.
    """
    good = [s for s in samples if s.ok]
    if too_many_failed(len(samples) - len(good), len(samples)) or not good:
        first = next((s.error for s in samples if not s.ok), "there were none")
        raise NotMeasurable(f"{len(samples) - len(good)} of {len(samples)} requests failed: {first}")
    sends = [s.sent_s for s in good if s.sent_s is not None]
    lasts = [s.last_s for s in good if s.last_s is not None]
    ttfts = [s.ttft_ms for s in good if s.ttft_ms is not None]
    tpots = [s.tpot_ms for s in good if s.tpot_ms is not None]
    if not ttfts:
        raise NotMeasurable("no request brought any text")
    if not tpots:
        raise NotMeasurable("the whole text of each request came at once, so there is no time between tokens")
    duration_s = max(lasts) - min(sends)
    output_tokens = sum(s.output_tokens for s in good)
    return RoundMetrics(
        requests=len(samples),
        failed=len(samples) - len(good),
        duration_s=duration_s,
        prompt_tokens=sum(s.prompt_tokens or 0 for s in good),
        output_tokens=output_tokens,
        cached_tokens=sum(s.cached_tokens or 0 for s in good),
        output_throughput=output_tokens / duration_s,
        request_throughput=len(good) / duration_s,
        ttft_ms=median(ttfts),
        tpot_ms=median(tpots),
        tokens_per_chunk=output_tokens / sum(s.chunks for s in good),
    )


def _ms(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else (end_s - start_s) * 1000


def _count(usage: Mapping[str, object], key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
