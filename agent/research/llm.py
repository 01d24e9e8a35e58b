"""One dialogue with an LLM over the Messages API: every way in which a turn can fail ends as a ResearchError."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.research.budget import Usage
from agent.research.common import ResearchError
from agent.text import one_line

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import MessageParam

DEFAULT_MODEL = "claude-sonnet-5-5"
"""Which model answers where nobody says."""

MAX_TOKENS = 16_000
"""Tokens of one turn of the LLM, what it thinks included."""

_READ_TIMEOUT_S = 60.0
_RETRIES = 2
_CHARS_PER_TOKEN = 3
"""Rather too few: what is not said yet is counted before it is paid."""


class OutOfTime(Exception):
    """The LLM may not be waited for any longer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the LLM said in one turn: its content blocks as in the API's JSON, why it stopped, and what it took."""

    blocks: tuple[dict[str, Any], ...]
    stop_reason: str | None
    usage: Usage
    seconds: float

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(str(block.get("text", "")) for block in self.blocks if block.get("type") == "text")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tools that it wants used."""
        return [block for block in self.blocks if block.get("type") == "tool_use"]


@dataclass(frozen=True, slots=True)
class Model:
    """Which model answers, and where. `effort` and `base_url` may be empty: then the model and the SDK decide.

    `keyless`: the server at `base_url` is on this machine and wants no key.
    """

    name: str
    effort: str = ""
    base_url: str = ""
    keyless: bool = False


class Dialogue:
    """A dialogue and its history."""

    def __init__(self, client: "anthropic.AsyncAnthropic", model: Model, system: str, tools: Sequence[Any]) -> None:
        self._client = client
        self._model = model
        self._system = system
        self._tools = tools
        self._history: list[MessageParam] = []
        self._held = 0
        self._unheard = len(system) + len(json.dumps(tools))

    def say(self, content: list[dict[str, Any]]) -> None:
        """Add what the user's side says: texts, and the results of tools."""
        said: Any = {"role": "user", "content": content}
        self._history.append(said)
        self._unheard += len(json.dumps(content))

    @property
    def next_usage(self) -> Usage:
        """What another turn takes at most, as far as that can be told: nothing from the cache, and a long answer."""
        return Usage(input=self._held + self._unheard // _CHARS_PER_TOKEN, output=MAX_TOKENS)

    async def listen(self, seconds: float) -> Turn:
        """The LLM's next turn, added to the history. Raises ResearchError, and OutOfTime after so many seconds."""
        try:
            async with asyncio.timeout(seconds) as limit:
                turn = await self._turn()
        except _failures() as error:
            if limit.expired():
                raise OutOfTime from error
            raise ResearchError(_reason(error)) from error
        self._held, self._unheard = turn.usage.all_input + turn.usage.output, 0
        if turn.blocks:
            said: Any = {"role": "assistant", "content": list(turn.blocks)}
            self._history.append(said)
        return turn

    async def _turn(self) -> Turn:
        began = time.monotonic()
        effort: Any = {"output_config": {"effort": self._model.effort}} if self._model.effort else {}
        async with self._client.messages.stream(
            model=self._model.name,
            max_tokens=MAX_TOKENS,
            system=self._system,
            messages=self._history,
            tools=self._tools,
            cache_control={"type": "ephemeral"},
            **effort,
        ) as stream:
            message = await stream.get_final_message()
        # As plain values: of what the SDK did not expect, its own objects would warn on our terminal.
        blocks = [dict(block.to_dict(mode="json", warnings=False)) for block in message.content]
        for block in blocks:
            if not isinstance(block.get("input", {}), dict):
                block["input"] = {}  # the API takes no other back
        return Turn(tuple(blocks), message.stop_reason, _usage(message.usage), time.monotonic() - began)


def _usage(told: object) -> Usage:
    def count(name: str) -> int:
        value = getattr(told, name, None)
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        input=count("input_tokens"),
        to_cache=count("cache_creation_input_tokens"),
        from_cache=count("cache_read_input_tokens"),
        output=count("output_tokens"),
    )


async def connect(model: Model) -> "anthropic.AsyncAnthropic":
    """A client with the key of the environment. Raises ResearchError where the SDK refuses to make one."""
    # The import takes seconds and reads certificates: not on the loop that answers keys.
    return await asyncio.to_thread(_client, model)


def _client(model: Model) -> "anthropic.AsyncAnthropic":
    import anthropic

    keyless: Any = {}
    if model.keyless:  # nor does the way to this machine lead over a proxy
        keyless = {"api_key": "none", "http_client": anthropic.DefaultAsyncHttpxClient(trust_env=False)}
    try:
        return anthropic.AsyncAnthropic(
            base_url=model.base_url or None, timeout=_READ_TIMEOUT_S, max_retries=_RETRIES, **keyless
        )
    except _failures() as error:
        raise ResearchError(_reason(error)) from error


def _failures() -> tuple[type[Exception], ...]:
    import anthropic
    import httpx2

    # The SDK builds a message from a stream without checking it: what a confused server sends ends in any of these.
    confused = (ValueError, TypeError, RuntimeError, AssertionError, LookupError, AttributeError)
    return (anthropic.AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, OSError, *confused)


def _reason(error: Exception) -> str:
    import anthropic
    import httpx2

    kind = getattr(error, "type", None)
    if isinstance(error, anthropic.OverloadedError) or kind == "overloaded_error":
        return "the LLM is overloaded; try again later"
    if isinstance(error, anthropic.RateLimitError) or kind == "rate_limit_error":
        return "the LLM's rate limit is reached; try again later"
    if isinstance(error, anthropic.AuthenticationError | anthropic.PermissionDeniedError):
        return "the LLM refused the key"
    if isinstance(error, anthropic.CredentialsError):
        return f"no usable key: {one_line(str(error))}"
    if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException):
        return f"the LLM said nothing for {_READ_TIMEOUT_S:.0f} s"
    if isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError | OSError):
        return f"the connection to the LLM failed: {one_line(str(error.__cause__ or error)) or type(error).__name__}"
    if isinstance(error, anthropic.APIStatusError):
        return f"the LLM answered with an error ({error.status_code}): {one_line(error.message)}"
    return f"the LLM's answer could not be understood: {type(error).__name__}"
