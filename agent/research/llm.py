"""One dialogue with an LLM over the Messages API: every way in which a turn can fail ends as a ResearchError."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.research.common import ResearchError
from agent.text import one_line

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import MessageParam

MAX_TOKENS = 4096
"""Tokens of one turn of the LLM."""

_READ_TIMEOUT_S = 60.0
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """What the LLM said in one turn: its content blocks as in the API's JSON, and why it stopped."""

    blocks: tuple[dict[str, Any], ...]
    stop_reason: str | None

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(str(block.get("text", "")) for block in self.blocks if block.get("type") == "text")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tools that it wants used."""
        return [block for block in self.blocks if block.get("type") == "tool_use"]


class Dialogue:
    """A dialogue and its history. `seconds` bounds the waiting for the LLM in all its turns together."""

    def __init__(self, client: "anthropic.AsyncAnthropic", model: str, system: str, seconds: float) -> None:
        self._client = client
        self._model = model
        self._system = system
        self._seconds = seconds
        self._spent = 0.0
        self._history: list[MessageParam] = []

    def say(self, content: str | list[Any]) -> None:
        """Add what the user's side says: a text, or the results of tools."""
        said: MessageParam = {"role": "user", "content": content}
        self._history.append(said)

    async def listen(self, tools: Sequence[Any], may_use_tools: bool) -> Turn:
        """The LLM's next turn, added to the history. Raises ResearchError."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds - self._spent):
                turn = await self._turn(tools, may_use_tools)
        except TimeoutError as error:
            raise ResearchError(f"the LLM did not answer within {self._seconds:g} s", "timeout") from error
        except _failures() as error:
            raise ResearchError(_reason(error)) from error
        self._spent += time.monotonic() - began
        if turn.blocks:
            said: Any = {"role": "assistant", "content": list(turn.blocks)}
            self._history.append(said)
        return turn

    async def _turn(self, tools: Sequence[Any], may_use_tools: bool) -> Turn:
        async with self._client.messages.stream(
            model=self._model,
            max_tokens=MAX_TOKENS,
            system=self._system,
            messages=self._history,
            tools=tools,
            tool_choice={"type": "auto"} if may_use_tools else {"type": "none"},
        ) as stream:
            message = await stream.get_final_message()
        # As plain values: of what the SDK did not expect, its own objects would warn on our terminal.
        blocks = [dict(block.to_dict(mode="json", warnings=False)) for block in message.content]
        for block in blocks:
            if not isinstance(block.get("input", {}), dict):
                block["input"] = {}  # the API takes no other back
        return Turn(tuple(blocks), message.stop_reason)


async def connect() -> "anthropic.AsyncAnthropic":
    """A client with the key of the environment. Raises ResearchError where the SDK refuses to make one."""
    # The import takes seconds and reads certificates: not on the loop that answers keys.
    return await asyncio.to_thread(_client)


def _client() -> "anthropic.AsyncAnthropic":
    import anthropic

    try:
        return anthropic.AsyncAnthropic(timeout=_READ_TIMEOUT_S, max_retries=_RETRIES)
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
