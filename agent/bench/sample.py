"""One measured request: what every metric is computed from. Pure."""

from dataclasses import dataclass

ALLOWED_FAILURES = 0.01
"""The largest fraction of failed requests with which a round still counts: fast failures would pass for speed."""


def too_many_failed(failed: int, requests: int) -> bool:
    """Whether a round of `requests` cannot count any more."""
    return failed > ALLOWED_FAILURES * requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request. Times are readings of `time.perf_counter` in seconds; None is what a failed request does not have.

    `scheduled_s` is when it should have been sent: in an open loop its planned time, in a closed one when its lane was
    free. `chunk_s` are the arrivals of the chunks with text, `chunks` is their number, `first_s` and `last_s` are the
    first and the last of them. `chunk_tokens` are the tokens that each of these brought, where usage came with every
    chunk. `counted` says that the server told no usage, so that `output_tokens` is the number of chunks with text.
    """

    error: str | None = None
    scheduled_s: float | None = None
    sent_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    chunks: int = 0
    chunk_s: tuple[float, ...] = ()
    chunk_tokens: tuple[int, ...] | None = None
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


def _ms(start_s: float | None, end_s: float | None) -> float | None:
    return None if start_s is None or end_s is None else (end_s - start_s) * 1000
