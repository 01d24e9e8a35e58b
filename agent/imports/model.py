"""What an imported result is: numbers that keep their tool's definition. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Tool = Literal["sglang.bench_serving", "vllm bench serve", "GuideLLM", "AIPerf", "tunebot bench"]


class Unreadable(Exception):
    """The text is no result that can be read. The second argument is a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a number is: the field's word for it, and how it is computed. Two numbers compare only if theirs is one."""

    word: str
    means: str


DEFINITIONS: Mapping[str, Definition] = {
    "ttft_text": Definition(word="TTFT", means="first chunk with text - send"),
    "ttft_any_chunk": Definition(word="TTFT", means="first chunk with choices, even without text - send"),
    "ttft_reported": Definition(word="TTFT", means="first token - start; a request without one enters as 0 ms"),
    "ttft_due": Definition(word="TTFT", means="first chunk with text - the time when the request was due"),
    "ttfo": Definition(word="TTFO", means="first chunk that is no reasoning - send"),
    "tpot_excl_first": Definition(word="TPOT", means="(last token - first token) / (tokens - 1), one value a request"),
    "tpot_excl_first_done": Definition(
        word="TPOT", means="(last chunk, [DONE] among them - first token) / (tokens - 1), one value a request"
    ),
    "tpot_excl_first_weighted": Definition(
        word="TPOT", means="(last token - first token) / (tokens - 1), each request weighted by its tokens"
    ),
    "tpot_incl_first": Definition(
        word="TPOT+TTFT", means="(last token - start) / tokens, TTFT included, weighted by tokens"
    ),
    "gap_chunk": Definition(
        word="chunk gap",
        means="time between chunks, all pooled; not per token where a chunk holds several (speculation)",
    ),
    "gap_token": Definition(word="ITL", means="time between chunks, spread over the tokens of each, all pooled"),
    "e2e_done": Definition(word="E2E", means="last chunk, [DONE] among them - send"),
    "e2e_token": Definition(word="E2E", means="last token chunk - send"),
    "e2e_end": Definition(word="E2E", means="end of the response - start"),
    "e2e_due": Definition(word="E2E", means="last token chunk - the time when the request was due"),
    "throughput_total": Definition(word="throughput", means="all output tokens / duration"),
    "throughput_all_tokens": Definition(word="total throughput", means="input and output tokens / duration"),
    "throughput_client_tokens": Definition(
        word="throughput", means="all output tokens, as the client's tokenizer counts them / duration"
    ),
    "throughput_over_time": Definition(
        word="throughput", means="tokens/s, a distribution over the time without warm-up and cool-down"
    ),
    "user_throughput": Definition(word="tok/s per user", means="1 / TPOT, one value a request"),
    "requests_per_s": Definition(word="requests/s", means="completed requests / duration"),
    "requests_over_time": Definition(
        word="requests/s", means="a distribution over the time without warm-up and cool-down"
    ),
    "goodput": Definition(word="goodput", means="requests that meet every SLO / duration"),
    "accept_length_server": Definition(
        word="accept length", means="the server's own average since its start, not of this run"
    ),
    "accept_length_run": Definition(word="accept length", means="1 + accepted / drafts, from the counters of this run"),
    "tokens_per_chunk": Definition(word="tokens a chunk", means="all output tokens / all chunks with text"),
    "cache_hit_rate": Definition(word="cache hits", means="cached / prompt tokens"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of a result.

    `key` is the tool's own name of it, `definition` a key of DEFINITIONS. `stats` are finite numbers in `unit`:
    either `value` alone, or some of mean, std, min, max, p50, p90, p95, p99.
    """

    key: str
    definition: str
    unit: str
    stats: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One run of a benchmark client. Texts are as the file has them: clean them before they are shown.

    `failed` is None where the file does not say. `load` is what was asked of the client, `server` what the server
    said of itself. `notes` are doubts about this file.
    """

    tool: Tool
    label: str = ""
    completed: int | None
    failed: int | None
    duration_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    load: Mapping[str, str]
    server: Mapping[str, str]
    metrics: tuple[Metric, ...]
    notes: tuple[str, ...] = ()
