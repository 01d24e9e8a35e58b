"""Generation over HTTP in three formats: OpenAI completions, OpenAI chat, and the native /generate."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from agent.sim import quiz, text
from agent.sim.plan import Setting
from agent.sim.procs import append
from agent.sim.web import Reply, json_reply

if TYPE_CHECKING:
    from agent.sim.endpoints import Service

PROMPT_MARK = 16
"""Characters of a prompt that the ledger keeps: enough to tell which round asked."""


class Format:
    """A request and how its answer is written. The base class is the OpenAI completion.

    `salt` names the launch: what differs between launches of the same flags follows from it.
    """

    object_name = "text_completion"
    chunk_name = "text_completion"

    def __init__(self, setting: Setting, data: dict[str, Any], salt: str) -> None:
        self.data = data
        self.setting = setting
        self.salt = salt
        self.prompt = self.read_prompt()
        self.tokens = text.tokenize(self.prompt)
        self.id = uuid.uuid4().hex
        self.created = int(time.time())
        options = data.get("stream_options") or {}
        self.include_usage = bool(options.get("include_usage"))
        self.running_usage = bool(options.get("continuous_usage_stats"))
        self.garble = setting.outcome.garble
        self.limit = max(1, self.read_count())
        self.words = self.generate()
        self.count = len(self.words)
        self.end = "length" if self.count == self.limit else "stop"

    def read_prompt(self) -> Any:
        """The prompt: text, or token ids."""
        prompt = self.data.get("prompt", "")
        return prompt[0] if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list) else prompt

    def read_count(self) -> int:
        """How many tokens to generate."""
        return int(self.data.get("max_tokens") or 16)

    def temperature(self) -> Any:
        """Sampling temperature, or None if the request does not say."""
        return self.data.get("temperature")

    def generate(self) -> list[str]:
        """All tokens of the answer: a question of the guard's is answered and no more, other text runs to the limit."""
        salt = "" if self.temperature() == 0 else str(self.data.get("seed", self.id))
        plain = self.prompt if isinstance(self.prompt, str) else ""
        if self.garble:
            return text.generate([*self.tokens, self.id], "", self.limit, "garbled")
        known = None if self.data.get("ignore_eos") else quiz.reply(plain, self.setting, self.salt)
        if known is not None:
            return [f" {word}" for word in known.split()][: self.limit]
        return text.generate(self.tokens, text.answer(plain, self.setting.world.answers), self.limit, salt)

    def usage(self, done: int, cached: int) -> dict[str, Any]:
        """Token counts so far."""
        prompt = len(self.tokens)
        details = {"cached_tokens": cached}
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + done,
            "completion_tokens": done,
            "prompt_tokens_details": details,
        }

    def head(self, name: str) -> dict[str, Any]:
        """Fields that every answer and chunk has."""
        return {"id": self.id, "object": name, "created": self.created, "model": self.setting.args["served_model_name"]}

    def logprobs(self, words: list[str]) -> dict[str, Any] | None:
        """Log probabilities of the tokens, if they were asked for."""
        if not self.data.get("logprobs"):
            return None
        value = quiz.GARBLED_LOGPROB if self.garble else quiz.LOGPROB
        top = [{word: value} for word in words]
        return {"tokens": words, "token_logprobs": [value] * len(words), "top_logprobs": top, "text_offset": []}

    def choice(self, words: list[str], finish: str | None, chunk: bool, first: bool) -> dict[str, Any]:
        """The choice of an answer or of a chunk."""
        body = {"index": 0, "text": "".join(words), "logprobs": self.logprobs(words)}
        return {**body, "finish_reason": finish, "matched_stop": None}

    def chunk(self, words: list[str], finish: str | None, first: bool, usage: dict[str, Any]) -> bytes:
        """One event of a stream."""
        part = {**self.head(self.chunk_name), "choices": [self.choice(words, finish, True, first)]}
        return event({**part, "usage": usage if self.running_usage else None})

    def last(self, usage: dict[str, Any]) -> bytes:
        """The end of a stream: usage, if it was asked for, and the mark."""
        final = event({**self.head(self.chunk_name), "choices": [], "usage": usage}) if self.include_usage else b""
        return final + b"data: [DONE]\n\n"

    def whole(self, words: list[str], usage: dict[str, Any], seconds: float) -> dict[str, Any]:
        """An answer that is not streamed."""
        choices = [self.choice(words, self.end, False, True)]
        return {
            **self.head(self.object_name),
            "choices": choices,
            "usage": usage,
            "metadata": {"weight_version": "default"},
        }


class Completion(Format):
    """POST /v1/completions."""


class Chat(Format):
    """POST /v1/chat/completions."""

    object_name = "chat.completion"
    chunk_name = "chat.completion.chunk"

    def read_prompt(self) -> Any:
        """The messages, one after the other."""
        messages = self.data.get("messages") or []
        return "".join(f"<|{m.get('role')}|>{_plain(m.get('content'))}" for m in messages) + "<|assistant|>"

    def read_count(self) -> int:
        """How many tokens to generate."""
        return int(self.data.get("max_completion_tokens") or self.data.get("max_tokens") or 64)

    def choice(self, words: list[str], finish: str | None, chunk: bool, first: bool) -> dict[str, Any]:
        """The choice of an answer or of a chunk."""
        content: dict[str, Any] = {"role": "assistant"} if first else {}
        content |= {"content": "".join(words)}
        found = self.logprobs(words)
        pairs = [] if found is None else zip(found["tokens"], found["token_logprobs"], strict=True)
        logprobs = (
            None if found is None else {"content": [{"token": t, "logprob": v, "top_logprobs": []} for t, v in pairs]}
        )
        name = "delta" if chunk else "message"
        return {"index": 0, name: content, "logprobs": logprobs, "finish_reason": finish, "matched_stop": None}


class Native(Format):
    """POST /generate. A chunk of this format repeats the text so far."""

    said = ""

    def read_prompt(self) -> Any:
        """Text or token ids."""
        return self.data.get("input_ids") or self.data.get("text") or ""

    def read_count(self) -> int:
        """How many tokens to generate."""
        count = (self.data.get("sampling_params") or {}).get("max_new_tokens")
        return 128 if count is None else int(count)

    def temperature(self) -> Any:
        """Sampling temperature, or None if the request does not say."""
        return (self.data.get("sampling_params") or {}).get("temperature")

    def chunk(self, words: list[str], finish: str | None, first: bool, usage: dict[str, Any]) -> bytes:
        """One event of a stream."""
        self.said += "".join(words)
        return event({"text": self.said, "meta_info": self.meta(usage, finish)})

    def last(self, usage: dict[str, Any]) -> bytes:
        """The end of a stream."""
        return b"data: [DONE]\n\n"

    def whole(self, words: list[str], usage: dict[str, Any], seconds: float) -> dict[str, Any]:
        """An answer that is not streamed."""
        return {"text": "".join(words), "meta_info": {**self.meta(usage, self.end), "e2e_latency": seconds}}

    def meta(self, usage: dict[str, Any], finish: str | None) -> dict[str, Any]:
        """Counts in the words of this format."""
        reason: dict[str, Any] | None = None
        if finish is not None:
            reason = {"type": finish, "length": self.count} if finish == "length" else {"type": finish, "matched": 1}
        counts = {key: usage[key] for key in ("prompt_tokens", "completion_tokens")}
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return {"id": self.id, "finish_reason": reason, **counts, "cached_tokens": cached, **self.token_logprobs()}

    def token_logprobs(self) -> dict[str, Any]:
        """Log-probabilities of the prompt's tokens from `logprob_start_len` (-1: the last) and of the answer's."""
        if not self.data.get("return_logprob"):
            return {}
        asked = int(self.data.get("logprob_start_len", -1))
        start = len(self.tokens) - 1 if asked < 0 else asked
        value = quiz.GARBLED_LOGPROB if self.garble else quiz.LOGPROB
        return {
            "input_token_logprobs": quiz.input_logprobs(self.tokens, start, self.setting, self.salt),
            "output_token_logprobs": [[value, quiz.token_id(word), None] for word in self.words],
        }

    @property
    def scores(self) -> bool:
        """Whether it is a given text that is asked about, not a continuation."""
        return bool(self.data.get("return_logprob")) and self.limit == 1


def event(data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


async def answer(service: Service, form: Format) -> Reply:
    """Start the generation that a request asks for."""
    if isinstance(form, Native) and form.scores:  # a prefill, whose time is not simulated
        return json_reply(form.whole(form.words, form.usage(1, 0), 0.0))
    run = Run(service, form)
    if form.data.get("stream"):
        return Reply(200, kind="text/event-stream; charset=utf-8", stream=run.stream())
    began = time.monotonic()
    async for _ in run.parts():
        pass
    return json_reply(form.whole(form.words, form.usage(run.done, run.cached), time.monotonic() - began))


class Run:
    """One generation: what it has produced, and its place in the ledger."""

    def __init__(self, service: Service, form: Format) -> None:
        self.service = service
        self.form = form
        self.done = 0
        disabled = service.setting.args["disable_radix_cache"]
        self.cached = 0 if disabled else service.cache.add(form.tokens)

    async def parts(self) -> AsyncGenerator[list[str], None]:
        """The tokens as they come, with the scheduler's log lines."""
        service, form, first = self.service, self.form, None
        began, ok = time.time(), False
        new = len(form.tokens) - self.cached
        service.busy(1)
        service.children.log(service.prefill_line(new, self.cached))
        source = service.decoder.generate(new, form.count)
        mark, mark_done, steps = time.monotonic(), 0, 0
        try:
            async for size in source:
                first = first or time.time()
                self.done += size
                steps += 1
                yield form.words[self.done - size : self.done]
                if steps % int(service.setting.args["decode_log_interval"]) == 0:
                    now = time.monotonic()
                    service.children.log(service.decode_line(self.done - mark_done, 40, now - mark))
                    mark, mark_done = now, self.done
            ok = True
        finally:
            await source.aclose()
            service.busy(-1)
            counts = {"prompt_tokens": len(form.tokens), "completion_tokens": self.done, "cached_tokens": self.cached}
            told = {"prompt": str(form.prompt)[:PROMPT_MARK], "start": began, "first": first, "end": time.time()}
            append(service.ledger, "request", ok=ok, **told, **counts)

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The generation as server-sent events."""
        form, first = self.form, True
        parts = self.parts()
        try:
            async for words in parts:
                usage = form.usage(self.done, self.cached)
                yield form.chunk(words, form.end if self.done == form.count else None, first, usage)
                first = False
            yield form.last(form.usage(self.done, self.cached))
        finally:
            await parts.aclose()


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content or "")
