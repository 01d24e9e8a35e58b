"""Every way in which a question ends without an answer: failures of the API, and budgets that are used up."""

import json
from typing import Any

import pytest

from agent.core.model import Answer, Finding, TaskStatus
from agent.research.ask import Asker
from agent.research.budget import SESSION, Amount
from agent.research.facts import SessionFacts
from agent.research.llm import Model

from .conftest import Bench, asker
from .fake_llm import DROP, STALL, answers, begin, end, says, serve, text, uses

READ = ("read", {"path": "sglang:srt/server_args.py", "lines": 9})


async def ask(bench: Bench, url: str, **limits: Any) -> tuple[TaskStatus, Finding]:
    bench.asker = asker(url, **limits)
    return await bench.run({"ask": "Can expert parallelism be combined with tp 8?"})


def error(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "no \x1b[2J way"}}


@pytest.mark.parametrize(
    ("script", "summary"),
    [
        ([says("", "refusal")], "the LLM declined to answer"),
        ([[begin(), *end("refusal")]], "the LLM declined to answer"),
        ([says("It goes on", "max_tokens")], "unusable answer: it was cut off before its end"),
        ([says("x", "model_context_window_exceeded")], "what was read does not fit into the LLM's context"),
        ([says("x", "some_new_reason")], "the LLM ended with some_new_reason"),
        ([[begin(), *text("half")]], "the LLM's answer broke off"),
        ([[begin(), *text("half"), error("overloaded_error")]], "the LLM is overloaded; try again later"),
        ([[begin(), error("api_error")]], "the LLM answered with an error (200): "),
        ([[begin(), *text("half"), DROP]], "the connection to the LLM failed: "),
        ([[DROP]], "the connection to the LLM failed: "),
        ([uses(READ), [begin(), DROP]], "the connection to the LLM failed: "),
        ([(529, error("overloaded_error"))] * 3, "the LLM is overloaded; try again later"),
        ([(429, error("rate_limit_error"))] * 3, "the LLM's rate limit is reached; try again later"),
        ([(500, error("api_error"))] * 3, "the LLM answered with an error (500): "),
        ([(401, error("authentication_error"))], "the LLM refused the key"),
        ([(400, error("invalid_request_error"))], "the LLM answered with an error (400): "),
        ([(413, error("request_too_large"))], "the LLM answered with an error (413): "),
        ([(307, {})], "the "),
        ([[]], "the LLM's answer could not be understood: "),
        ([[{"type": "message_stop"}]], "the LLM's answer could not be understood: "),
        ([[begin(), *text("x", index=7)]], "the LLM's answer could not be understood: "),
        ([[b"event: message_start\ndata: {nonsense\n\n"]], "the LLM's answer could not be understood: "),
        ([[b"event: message_start\ndata: []\n\n"]], "the LLM's answer could not be understood: "),
        ([uses(("read", {"path": "\ud800"}))], "the LLM's answer could not be understood: "),
    ],
)
async def test_every_failure_is_a_sentence(bench: Bench, script: list[Any], summary: str) -> None:
    async with serve(*script) as llm:
        status, finding = await ask(bench, llm.url)
    assert status == "failed"
    assert finding.summary.startswith(summary)
    assert "\x1b" not in finding.summary
    assert (finding.answer, finding.proposal) == (None, None)


async def test_a_transient_error_is_tried_again(bench: Bench) -> None:
    async with serve((529, error("overloaded_error")), answers("Yes.")) as llm:
        assert (await ask(bench, llm.url))[0] == "done"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://[", "nonsense"])
async def test_nobody_there(bench: Bench, url: str) -> None:
    status, finding = await ask(bench, url)
    assert status == "failed"
    assert finding.summary.startswith("the ")


async def test_without_credentials_after_all(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises a builtin TypeError with the first request then."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    async with serve(answers("Yes.")) as llm:
        status, finding = await ask(bench, llm.url)
    assert status == "failed" and not llm.requests
    assert finding.summary.startswith(("no usable key", "the LLM's answer could not be understood: TypeError"))


@pytest.mark.parametrize("script", [[[begin(), STALL]], [says("Half way. And more.", "pause_turn"), [begin(), STALL]]])
async def test_the_time_is_bounded(bench: Bench, script: list[Any]) -> None:
    async with serve(*script) as llm:
        status, finding = await ask(bench, llm.url, seconds=1.0)
    so_far = "Half way." if len(script) == 2 else "nothing"
    assert status == "timeout"
    assert finding.summary == f"stopped: the question's budget of 1 s is used up; what was found so far: {so_far}"
    assert finding.answer == (Answer(text="Half way. And more.") if len(script) == 2 else None)


async def test_the_turns_are_bounded(bench: Bench) -> None:
    async with serve(*[uses(READ)] * 24) as llm:
        status, finding = await ask(bench, llm.url)
    assert status == "done"
    assert finding.summary == (
        "stopped: it came to no answer in 24 turns; what was found so far: it looked at server_args.py"
    )
    assert "answer now" in json.dumps(llm.requests[-1]["messages"][-1])
    assert "answer now" not in json.dumps(llm.requests[-2]["messages"])


async def test_the_calls_are_bounded(bench: Bench) -> None:
    async with serve(uses(*[READ] * 9), answers("Enough.")) as llm:
        status, finding = await ask(bench, llm.url, calls=6)
    assert (status, finding.summary) == ("done", "Enough.")
    assert [block["is_error"] for block in llm.told] == [False] * 6 + [True] * 3
    assert [event.refused != "" for event in bench.used] == [False] * 6 + [True] * 3
    assert "answer now" in llm.told[-1]["content"]
    assert llm.requests[1]["messages"][-1]["content"][0]["text"].startswith("The reading budget is used up")


async def test_the_bytes_are_bounded(bench: Bench) -> None:
    (bench.tree / "big.py").write_text(("x " * 140 + "\n") * 1000)
    calls = [("read", {"path": "sglang:big.py", "start": 1 + 200 * n, "lines": 9999}) for n in range(5)]
    async with serve(uses(*calls), answers("Enough.")) as llm:
        await ask(bench, llm.url, read_bytes=100_000)
    sizes = [len(block["content"].encode()) for block in llm.told]
    assert sum(sizes) < 100_000 + 1000
    assert max(sizes) < (64 << 10) + 200
    assert "cut off before sglang:big.py:" in llm.told[0]["content"]


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"tokens": 45_000}, "45000 tokens"), ({"usd": 0.25}, "$0.25")],
)
async def test_tokens_and_money_are_counted_before_they_are_spent(
    bench: Bench, limits: dict[str, Any], words: str
) -> None:
    """A turn that might go beyond the budget does not begin; the one before it is told that it is the last."""
    async with serve(*[uses(READ, tokens=8000)] * 9) as llm:
        status, finding = await ask(bench, llm.url, **limits)
    assert status == "done"
    assert finding.summary.startswith(f"stopped: the question's budget of {words} is used up; what was found so far:")
    assert 1 < len(llm.requests) < 7
    assert "answer now" in json.dumps(llm.requests[-1]["messages"][-1])


async def test_what_the_session_has_used_counts(bench: Bench) -> None:
    bench.facts = SessionFacts(asked={"t1": SESSION, "t0": Amount(usd=0.5), "t9": Amount(usd=0.4)})
    async with serve(answers("Yes.")) as llm:
        bench.asker = Asker(
            Model("claude-sonnet-5-5", base_url=llm.url), session=Amount(tokens=10**6, usd=1, seconds=9)
        )
        status, finding = await bench.run({"ask": "One more?"})
        assert not llm.requests
        bench.facts = SessionFacts(asked={"t0": Amount(usd=0.5)})
        assert (await bench.run({"ask": "One more?"}))[1].summary == "Yes."
    assert (status, finding.summary) == (
        "done",
        "stopped: the session's budget of $1.00 is used up; what was found so far: nothing",
    )
