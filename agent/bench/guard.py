"""Puts the questions of the guard to a running server, and lets it score the baseline's answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, TypeVar

import httpx

from agent.bench.client import Server, first_model
from agent.bench.http import HttpError
from agent.bench.questions import PROBE, chat_text, completion_text, question_set, questions
from agent.core.guard import GuardResult, Question, Way, fault_of, is_right
from agent.ports import RoundError
from agent.text import clean, one_line

CONCURRENCY = 8
"""Requests at a time: the batches that a server makes of them are a little like those of real work."""

REQUEST_S = 120.0
"""How long one request may take."""

TOTAL_S = 900.0
"""How long all of it may take."""

MAX_TOKENS = 32
"""Tokens of an answer: far more than a right one needs, and enough to tell that one loops."""

_READ_CHARS = 2000  # of what a server sends whatever it was asked for
_ANSWER_CHARS = 80  # of an answer that are kept and scored
_FLOOR = -20.0
"""The least log-probability that counts for a token, in nats; what is no number counts as this.

Servers report what underflowed as null, -inf or -9999. It is as wrong as wrong can be, and must not make the mean
useless.
"""

_THINK_NOT = {"enable_thinking": False, "thinking": False}
"""Template variables by which Qwen, DeepSeek and Kimi models answer at once. Templates ignore what they do not know."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Refused(Exception):
    """The server answered a request with a status other than 200, or with a body of another form."""


class HttpGuard:
    """Asks over `/v1/chat/completions` or `/v1/completions`; scores over what the kind of server has for it.

    `redact` takes secrets out of answers and messages.
    """

    def __init__(self, http: httpx.AsyncClient, redact: Callable[[str], str] | None = None) -> None:
        self._http = http
        self._redact = redact or str

    async def examine(self, base_url: str, model: str | None, kind: str, baseline: GuardResult | None) -> GuardResult:
        """The answers of the server of this kind ("sglang", "vllm", "llamacpp"), and its score of the baseline's.

        Without a baseline the launch is one, and scores its own. The baseline's way of asking is kept; a baseline is
        asked over chat if it answers an easy question there, else over completions. About three short requests a
        question; they fill the prefix cache. Raises RoundError where the server cannot be asked, or the baseline was
        asked other questions.
        """
        if baseline is not None and baseline.question_set != question_set():
            raise RoundError("the baseline was asked the questions of another version of tunebot: measure it anew")
        try:
            async with asyncio.timeout(TOTAL_S):
                name = model or await first_model(Server(base_url))
                asked = await self._ask_all(base_url, name, baseline.asked_over if baseline else None)
                return await self._scored(base_url, name, kind, asked, (baseline or asked).answers)
        except TimeoutError as error:
            raise RoundError(f"the questions of the guard took longer than {TOTAL_S / 60:g} min") from error
        except (_Refused, HttpError) as error:
            raise RoundError(self._cleaned(f"the guard's questions: {error}")) from error

    async def _ask_all(self, base_url: str, model: str, way: Way | None) -> GuardResult:
        chosen = way or await self._way(base_url, model)
        replies = await _each(lambda q: self._ask(base_url, model, chosen, q), questions())
        texts = [text for text, _ in replies]
        return GuardResult(
            question_set=question_set(),
            asked_over=chosen,
            right="".join("1" if is_right(t, q) else "0" for t, q in zip(texts, questions(), strict=True)),
            faults="".join(fault_of(text, truncated) for text, truncated in replies),
            answers=tuple(self._cleaned(text)[:_ANSWER_CHARS].strip() for text in texts),
        )

    async def _way(self, base_url: str, model: str) -> Way:
        try:
            answer, _ = await self._ask(base_url, model, "chat", PROBE)
        except _Refused:  # no chat template, say
            return "completions"
        return "chat" if is_right(answer, PROBE) else "completions"

    async def _ask(self, base_url: str, model: str, way: Way, question: Question) -> tuple[str, bool]:
        """The text of an answer, and whether it was cut off."""
        ask: dict[str, Any] = {"model": model, "max_tokens": MAX_TOKENS, "temperature": 0}
        if way == "chat":
            messages = [{"role": "user", "content": chat_text(question)}]
            ask |= {"messages": messages, "chat_template_kwargs": _THINK_NOT}
            body = await self._post(f"{base_url}/v1/chat/completions", ask)
        else:
            body = await self._post(
                f"{base_url}/v1/completions", ask | {"prompt": completion_text(question), "stop": ["\n"]}
            )
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"] if way == "chat" else choice["text"]
            # null: a model that has only thought so far
            return ("" if text is None else str(text)[:_READ_CHARS]), choice["finish_reason"] == "length"
        except (LookupError, TypeError) as error:
            raise _Refused("the answer has no text") from error

    async def _scored(
        self, base_url: str, model: str, kind: str, asked: GuardResult, answers: Sequence[str]
    ) -> GuardResult:
        """`asked` with the score of `answers`, or with the reason why there is none."""
        if kind not in ("sglang", "vllm"):
            return _with_score(asked, None, 0, f"{kind} gives no log-probabilities of a given text")

        async def score(pair: tuple[Question, str]) -> list[float]:
            # The plain form for chat models too: of its tokens we know where the answer begins.
            prompt = completion_text(pair[0])
            before = await self._logprobs(base_url, model, kind, prompt)
            whole = await self._logprobs(base_url, model, kind, f"{prompt} {pair[1]}")
            return [max(value, _FLOOR) for value in whole[len(before) :]]

        try:
            pairs = [(q, a) for q, a in zip(questions(), answers, strict=True) if a]
            values = [value for found in await _each(score, pairs) for value in found]
        except _Refused as error:
            return _with_score(asked, None, 0, self._cleaned(f"{kind} did not score a given text: {error}"))
        if not values:
            return _with_score(asked, None, 0, "the baseline's answers have no words to score")
        return _with_score(asked, sum(values) / len(values), len(values), "")

    async def _logprobs(self, base_url: str, model: str, kind: str, text: str) -> list[float]:
        """Log-probability of each token of a text given those before it, in nats; -inf where there is none."""
        try:
            if kind == "sglang":
                # One token, not none: with a draft model SGLang has no request without a decode step.
                sampling = {"temperature": 0, "max_new_tokens": 1}
                ask = {"text": text, "sampling_params": sampling, "return_logprob": True, "logprob_start_len": 0}
                body = await self._post(f"{base_url}/generate", ask)
                found = [entry[0] for entry in body["meta_info"]["input_token_logprobs"]]
            else:
                ask = {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
                body = await self._post(f"{base_url}/v1/completions", ask)
                # {token id: {logprob, ...}}: with 0 alternatives the text's own token alone; null for the first.
                entries = [entry and next(iter(entry.values())) for entry in body["choices"][0]["prompt_logprobs"]]
                found = [entry and entry["logprob"] for entry in entries]
        except (LookupError, TypeError, AttributeError) as error:
            raise _Refused("its answer has no log-probabilities of the prompt") from error
        return [float(v) if isinstance(v, int | float) and isfinite(v) else -float("inf") for v in found]

    async def _post(self, url: str, body: dict[str, Any]) -> Any:
        """The JSON that a POST is answered with. Raises _Refused, or RoundError where there is no answer."""
        path = httpx.URL(url).path
        try:
            async with asyncio.timeout(REQUEST_S):
                try:
                    reply = await self._http.post(url, json=body, timeout=REQUEST_S)
                except httpx.TransportError:
                    # A server may close an idle connection at the very moment in which we send.
                    reply = await self._http.post(url, json=body, timeout=REQUEST_S)
        except TimeoutError as error:
            raise RoundError(f"the guard's questions: no answer to POST {path} within {REQUEST_S:g} s") from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise RoundError(self._cleaned(f"the guard's questions: POST {path}: {reason}")) from error
        if reply.status_code != 200:
            raise _Refused(f"POST {path}: HTTP {reply.status_code} {one_line(reply.text)}")
        try:
            return reply.json()
        except ValueError as error:
            raise _Refused(f"POST {path}: the answer is not JSON") from error

    def _cleaned(self, text: str) -> str:
        # Cleaned before it is redacted, lest an escape inside a secret hides it; cut last, lest half of one is left.
        return one_line(self._redact(clean(text)))


def _with_score(asked: GuardResult, mean: float | None, tokens: int, unscored: str) -> GuardResult:
    return replace(asked, mean_logprob=mean, scored_tokens=tokens, unscored=unscored)


async def _each(work: Callable[[Item], Awaitable[Result]], items: Sequence[Item]) -> list[Result]:
    """The work on each item, some at a time, in order. The first failure ends all and is raised."""
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(item: Item) -> Result:
        async with slots:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]
