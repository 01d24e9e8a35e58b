"""The APIs of a server: what a request says, and where an event of its stream has text and usage. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.playbook.api import Api

Prompt = str | tuple[int, ...]
"""Text, or token ids where the API takes them."""

PATHS: Mapping[Api, str] = {
    "completions": "/v1/completions",
    "chat": "/v1/chat/completions",
    "generate": "/generate",
}

CUMULATIVE: frozenset[Api] = frozenset({"generate"})
"""APIs whose events have the whole text so far, so that only a change is a new chunk."""

_CHAT_TEXTS = ("content", "reasoning_content", "reasoning")
"""Where a chat server puts text; vLLM and SGLang have had both names of reasoning."""


def request_body(api: Api, model: str, prompt: Prompt, output_len: int) -> dict[str, Any]:
    """A greedy streamed generation of exactly `output_len` tokens; a chat takes text alone."""
    asked = list(prompt) if isinstance(prompt, tuple) else prompt
    if api == "generate":
        sampling = {"temperature": 0, "max_new_tokens": output_len, "ignore_eos": True}
        return {"input_ids" if isinstance(asked, list) else "text": asked, "sampling_params": sampling, "stream": True}
    chat = api == "chat"
    return {
        "model": model,
        **({"messages": [{"role": "user", "content": asked}]} if chat else {"prompt": asked}),
        "max_tokens": output_len,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "ignore_eos": True,
    }


def text_of(api: Api, event: Mapping[str, Any]) -> str:
    """The text of an event, reasoning included; empty where it has none."""
    return _TEXT[api](event)


def usage_of(api: Api, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The usage that an event tells."""
    usage = event.get("meta_info" if api == "generate" else "usage")
    return usage if isinstance(usage, dict) else None


def count_of(usage: Mapping[str, Any] | None, key: str) -> int | None:
    """A count of a usage, None where there is none that makes sense."""
    value = None if usage is None else usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def cached_of(usage: Mapping[str, Any] | None) -> int | None:
    """The prompt tokens that were in the server's prefix cache, as OpenAI's usage or SGLang's `meta_info` has it."""
    details = None if usage is None else usage.get("prompt_tokens_details")
    return count_of(details if isinstance(details, dict) else usage, "cached_tokens")


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _chat_text(event: Mapping[str, Any]) -> str:
    delta = _choice(event).get("delta")
    if not isinstance(delta, dict):
        return ""
    return next((text for text in (_string(delta.get(name)) for name in _CHAT_TEXTS) if text), "")


_TEXT: Mapping[Api, Callable[[Mapping[str, Any]], str]] = {
    "completions": lambda event: _string(_choice(event).get("text")),
    "chat": _chat_text,
    "generate": lambda event: _string(event.get("text")),
}
