"""The guard against scripted servers on real sockets: how it asks, what it scores, what it makes of failures."""

import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agent.bench import guard
from agent.bench.guard import HttpGuard
from agent.bench.questions import LEAD, PROBE, questions
from agent.core.guard import GuardResult, is_right, normal
from agent.ports import RoundError
from tests.bench.conftest import Answer, Handler, Request, Scripted

Serve = Callable[[Handler], Awaitable[Scripted]]
FEW = questions()[30:60]
KNOWN = {q.text: q.accepted[0] for q in (PROBE, *questions())}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the questions, for the sake of time."""
    monkeypatch.setattr(guard, "questions", lambda: FEW)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as client:
        yield client


def asked(request: Request) -> str:
    """The question of a request, whichever way it came."""
    prompt = request.body["messages"][0]["content"] if "messages" in request.body else request.body["prompt"]
    return str(prompt).rpartition(LEAD)[2].partition("\n")[0]


async def reply(answer: Answer, value: Any, status: str = "200 OK") -> None:
    await answer.plain(status, json.dumps(value).encode())


def chat(text: str | None, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}]}


def plain(text: str, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def server(
    say: Callable[[Request, str], Any] = lambda request, text: (
        chat(text) if "messages" in request.body else plain(text)
    ),
    value: Callable[[str], Any] = lambda token: -0.5,
) -> Handler:
    """Answers every question rightly in the form that `say` makes of it; a token is a word, and its score `value`."""

    async def handle(request: Request, answer: Answer) -> None:
        body = request.body
        if request.path == "/v1/models":
            await reply(answer, {"data": [{"id": "m"}]})
        elif request.path == "/generate":
            tokens = body["text"].split()
            found = [[None if place == 0 else value(t), 7, None] for place, t in enumerate(tokens)]
            await reply(answer, {"text": " x", "meta_info": {"input_token_logprobs": found}})
        elif "prompt_logprobs" in body:
            tokens = body["prompt"].split()
            entries = [{"7": {"logprob": value(t), "rank": 1, "decoded_token": t}} for t in tokens[1:]]
            await reply(answer, {"choices": [{"text": "x", "prompt_logprobs": [None, *entries]}]})
        else:
            made = say(request, KNOWN[asked(request)])
            await (
                reply(answer, {"error": {"message": made}}, "400 Bad Request")
                if made is str(made)
                else reply(answer, made)
            )

    return handle


def test_the_questions_are_sound() -> None:
    assert len(questions()) >= 120 and len({q.text for q in questions()}) == len(questions())
    for q in questions():
        assert all(normal(a) and is_right(f" {a}.", q) for a in q.accepted), q
        assert len(q.text) < 120 and "\n" not in q.text
        assert not re.search(r"\b(current|latest|newest|nowadays|population|president|this year)\b", q.text), q
    assert PROBE.text not in {q.text for q in questions()}


async def test_a_chat_server(serve: Serve, http: httpx.AsyncClient) -> None:
    scripted = await serve(server(value=lambda token: -0.25 if token in "2 Paris" else -0.75))
    found = await HttpGuard(http).examine(scripted.url, None, "sglang", None)
    assert found.asked_over == "chat" and set(found.right) == {"1"} and set(found.faults) == {"-"}
    assert found.answers == tuple(KNOWN[q.text] for q in FEW) and not found.unscored
    words = [word for text in found.answers for word in text.split()]
    assert found.scored_tokens == len(words), "the prompt's tokens do not count"
    assert found.mean_logprob == pytest.approx(sum(-0.25 if w in "2 Paris" else -0.75 for w in words) / len(words))
    asks = [r.body for r in scripted.requests if r.path == "/v1/chat/completions"]
    assert all(b["temperature"] == 0 and b["model"] == "m" and b["max_tokens"] == guard.MAX_TOKENS for b in asks)
    assert len(asks) == len(FEW) + 1 and asks[0]["chat_template_kwargs"]["enable_thinking"] is False
    scores = [r.body for r in scripted.requests if r.path == "/generate"]
    assert len(scores) == 2 * len(FEW)
    assert {"Paris", "Oslo"} < {b["text"].rpartition("\nAnswer: ")[2] for b in scores}
    assert all(b["return_logprob"] and b["logprob_start_len"] == 0 for b in scores)
    assert 1 < scripted.connections <= guard.CONCURRENCY + 1


@pytest.mark.parametrize(
    "over_chat",
    ["no chat template", chat(None, "length"), chat("", "length"), chat("Let me think about"), {"choices": []}],
    ids=["refused", "only thought", "empty", "wrong", "malformed"],
)
async def test_without_an_answer_over_chat_it_asks_for_completions(
    serve: Serve, http: httpx.AsyncClient, over_chat: Any
) -> None:
    scripted = await serve(server(lambda request, text: over_chat if "messages" in request.body else plain(f" {text}")))
    found = await HttpGuard(http).examine(scripted.url, "m", "llamacpp", None)
    assert found.asked_over == "completions" and set(found.right) == {"1"}
    assert found.mean_logprob is None and found.unscored == "llamacpp gives no log-probabilities of a given text"
    last = scripted.requests[-1].body
    assert last["stop"] == ["\n"] and last["prompt"].endswith("\nAnswer:") and "messages" not in last


async def test_a_candidate_is_asked_as_its_baseline_was(serve: Serve, http: httpx.AsyncClient) -> None:
    """And scores the baseline's answers, not its own."""
    good = await serve(server(value=lambda token: -0.5))
    baseline = await HttpGuard(http).examine(good.url, "m", "vllm", None)
    bad = await serve(server(lambda request, text: chat(None, "length"), value=lambda token: -1.5))
    found = await HttpGuard(http).examine(bad.url, "m", "vllm", baseline)
    assert found.asked_over == "chat" and found.empty == len(FEW) and "1" not in found.right
    assert (found.mean_logprob, baseline.mean_logprob) == (-1.5, -0.5)
    assert found.scored_tokens == baseline.scored_tokens == len(FEW)


@pytest.mark.parametrize("value", [None, -9999.0, "NaN", float("nan"), float("-inf")])
async def test_a_probability_that_is_none_counts_as_the_least(
    serve: Serve, http: httpx.AsyncClient, value: Any
) -> None:
    scripted = await serve(server(value=lambda token: value if token == "Oslo" else -0.5))
    found = await HttpGuard(http).examine(scripted.url, "m", "sglang", None)
    assert found.mean_logprob is not None
    assert found.mean_logprob * found.scored_tokens == pytest.approx(-0.5 * (found.scored_tokens - 1) - 20)


@pytest.mark.parametrize(
    ("kind", "status", "body", "said"),
    [
        ("sglang", "400 Bad Request", b"no logprobs with this", "POST /generate: HTTP 400 no logprobs with this"),
        ("sglang", "200 OK", b'{"text": "x"}', "its answer has no log-probabilities of the prompt"),
        ("sglang", "200 OK", b"[]", "its answer has no log-probabilities of the prompt"),
        ("vllm", "200 OK", b'{"choices": [{"prompt_logprobs": null}]}', "has no log-probabilities of the prompt"),
        ("vllm", "200 OK", b"oops", "POST /v1/completions: the answer is not JSON"),
    ],
)
async def test_a_server_that_does_not_score(
    serve: Serve, http: httpx.AsyncClient, kind: str, status: str, body: bytes, said: str
) -> None:
    normally = server()

    async def handle(request: Request, answer: Answer) -> None:
        scoring = request.path == "/generate" or "prompt_logprobs" in request.body
        await (answer.plain(status, body) if scoring else normally(request, answer))

    scripted = await serve(handle)
    found = await HttpGuard(http).examine(scripted.url, "m", kind, None)
    assert set(found.right) == {"1"} and found.mean_logprob is None
    assert found.unscored.startswith(f"{kind} did not score a given text") and said in found.unscored


async def test_answers_are_cut_cleaned_and_redacted(serve: Serve, http: httpx.AsyncClient) -> None:
    scripted = await serve(
        server(lambda request, text: plain(f"\x1b[31mhunter2 {text}\u202e " + "word " * 90, "length"))
    )
    redact = HttpGuard(http, lambda text: text.replace("hunter2", "‹redacted›"))
    found = await redact.examine(scripted.url, "m", "llamacpp", None)
    assert found.answers[0].startswith("‹redacted› 14⟨U+202E⟩ word") and len(found.answers[0]) <= 80
    assert found.looping == len(FEW)


async def test_a_failing_server_is_no_crash(serve: Serve, http: httpx.AsyncClient) -> None:
    async def fails(request: Request, answer: Answer) -> None:
        await answer.plain("500 Internal Server Error", b"CUDA error: \x1b[31mhunter2")

    scripted = await serve(fails)
    redact = HttpGuard(http, lambda text: text.replace("hunter2", "***"))
    with pytest.raises(RoundError, match=r"the guard's questions: POST /v1/completions: HTTP 500 CUDA error: \*\*\*$"):
        await redact.examine(scripted.url, "m", "vllm", None)
    assert len(scripted.requests) < 30, "the first failure ends it"
    with pytest.raises(RoundError, match="GET /v1/models: HTTP 500"):
        await redact.examine(scripted.url, None, "vllm", None)


async def test_nobody_there(http: httpx.AsyncClient) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        with pytest.raises(RoundError, match="the guard's questions: POST /v1/chat/completions: "):
            await HttpGuard(http).examine(url, "m", "sglang", None)


async def test_a_server_that_hangs(serve: Serve, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(request: Request, answer: Answer) -> None:
        if request.body["max_tokens"] == guard.MAX_TOKENS:
            return  # and the connection stays open

    scripted = await serve(hangs)
    monkeypatch.setattr(guard, "REQUEST_S", 0.05)
    with pytest.raises(RoundError, match=r"no answer to POST /v1/chat/completions within 0\.05 s"):
        await HttpGuard(http).examine(scripted.url, "m", "sglang", None)
    monkeypatch.setattr(guard, "REQUEST_S", 60)
    monkeypatch.setattr(guard, "TOTAL_S", 0.06)
    with pytest.raises(RoundError, match=r"took longer than 0\.001 min"):
        await HttpGuard(http).examine(scripted.url, "m", "sglang", None)
    await http.aclose()


async def test_a_connection_that_the_server_closes_is_opened_again(serve: Serve, http: httpx.AsyncClient) -> None:
    normally = server()

    async def leaves(request: Request, answer: Answer) -> None:
        if request.nth == 2 and request.connection == 1:
            answer.writer.close()
        else:
            await normally(request, answer)

    scripted = await serve(leaves)
    found = await HttpGuard(http).examine(scripted.url, "m", "llamacpp", None)
    assert set(found.right) == {"1"} and len(scripted.requests) == len(FEW) + 2


async def test_a_baseline_of_other_questions(serve: Serve, http: httpx.AsyncClient) -> None:
    scripted = await serve(server())
    baseline: GuardResult = await HttpGuard(http).examine(scripted.url, "m", "llamacpp", None)
    with pytest.raises(RoundError, match="questions of another version of tunebot"):
        await HttpGuard(http).examine(scripted.url, "m", "llamacpp", replace(baseline, question_set="0"))
