"""What is measured: requests of one shape, and how they arrive."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from agent.playbook.api import Api
from agent.playbook.fields import Name, Text, Whole
from agent.playbook.strict import Strict
from agent.playbook.units import Seconds

MOST_IN_FLIGHT = 4096

ToolName = Literal["sglang-bench", "vllm-bench", "command"]

_Above = Annotated[float, Field(gt=0, le=1e9, strict=True)]


class DataFile(Strict):
    """Prompts of a JSONL file, each line with `prompt`, `messages` or `conversations`, and perhaps `output_len`.

    A relative path counts from the playbook. With `sha256` only a file with these bytes is taken; a session keeps the
    digest of the file that it began with.
    """

    file: str = Field(min_length=1)
    """Its path."""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """The digest of the file, in hex."""


def _data_form(value: Any) -> str:
    return "file" if isinstance(value, Mapping | DataFile) else "made"


Data = Annotated[
    Annotated[Literal["mixed-text", "random-tokens", "shared-prefix"], Tag("made")] | Annotated[DataFile, Tag("file")],
    Discriminator(_data_form),
]


class Slo(Strict):
    """What a request must keep to count as good, in ms; what is left out does not matter."""

    ttft_ms: _Above | None = None
    """Time to the first token."""
    tpot_ms: _Above | None = None
    """Time for each token after the first."""
    e2e_ms: _Above | None = None
    """Time of the whole request."""

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.ttft_ms is self.tpot_ms is self.e2e_ms is None:
            raise ValueError("needs at least one of ttft_ms, tpot_ms, e2e_ms")
        return self


class Workload(Strict):
    """Requests of one shape. Lengths are in tokens; `rounds` repeats them with other prompts.

    Without `rate` it is a closed loop: `concurrency` clients, each sends when its last request has ended. With `rate`
    (requests per second) it is an open loop: requests are sent when they are due, whatever is in flight, though never
    more than `concurrency` at once (all, where it is left out); the rate grows from 0 during `ramp`.

    With `tool` another benchmark client measures it on the target, with random prompts of its own, and its result is
    imported. `run` is how that is called there, for example [~/venv/bin/vllm, bench, serve]; for a `command` it is the
    whole command, in which {url}, {result}, {seed}, {requests}, {concurrency}, {input_len} and {output_len} are filled
    in, and which writes a file that `tunebot import` reads to {result}.
    """

    name: Name
    """A name that no other workload has."""
    data: Data = "mixed-text"
    """What the prompts are: English and code, random token ids, text with a common beginning, or a file's."""
    api: Api = "completions"
    """The endpoint: /v1/completions, /v1/chat/completions, or SGLang's own /generate."""
    concurrency: Whole = Field(default=1, ge=1, le=MOST_IN_FLIGHT)
    """Clients of a closed loop; in an open one the most requests in flight."""
    rate: _Above | None = None
    """Requests a second of an open loop."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Of an open loop: at random times, or evenly."""
    ramp: Seconds | None = None
    """How long an open loop takes to come to its rate."""
    input_len: Whole = Field(default=512, ge=1, le=10_000_000)
    """Tokens of a prompt."""
    shared_prefix_len: Whole | None = Field(default=None, ge=1, le=10_000_000)
    """How many of them `shared-prefix` shares."""
    output_len: Whole = Field(default=128, ge=2, le=1_000_000)
    """Tokens of an answer, asked for with ignore_eos."""
    requests: Whole = Field(default=16, ge=1, le=1_000_000)
    """Of one round."""
    rounds: Whole = Field(default=3, ge=1, le=100)
    """Of one launch, each with prompts of its own."""
    slo: Slo | None = None
    """Limits; the requests that keep all of them are the goodput."""
    tool: ToolName | None = None
    """Another client that measures instead of tunebot."""
    run: tuple[Text, ...] = ()
    """How that client is called."""

    @model_validator(mode="before")
    @classmethod
    def _lets_all_in(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("rate") is None or "concurrency" in value:
            return value
        requests = value.get("requests", cls.model_fields["requests"].default)
        return {**value, "concurrency": max(1, min(requests, MOST_IN_FLIGHT))} if isinstance(requests, int) else value
