"""Questions to a scripted Messages API over a real socket: the loop, what it journals, what an answer comes to."""

import asyncio
import json
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.model import Claim, Finding, Quote, Spent, TaskStatus
from agent.research.ask import NEEDS_KEY, Asker
from agent.research.llm import Model

from .conftest import Bench, alive, asker
from .fake_llm import STALL, FakeLlm, answers, begin, claim, end, says, serve, text, uses

ARGS = "sglang:srt/server_args.py"
READ = ("read", {"path": ARGS, "around": 'moe_a2a_backend == "flashinfer"', "lines": 9})
GREP = ("grep", {"pattern": "cutlass", "paths": ["sglang:srt", "sglang:gone"]})


async def ask(bench: Bench, llm: FakeLlm, asks: Asker | None = None) -> tuple[TaskStatus, Finding]:
    bench.asker = asks or asker(llm.url)
    return await bench.run({"ask": "Can expert parallelism be combined with tp 8?"})


async def test_the_loop(bench: Bench) -> None:
    bench.board = "RESULTS\n  baseline: 89.5 tok/s"
    claims = [
        claim("server_args.py", 16, "assert self.moe_runner_backend in [", "It wants another runner."),
        claim(ARGS, 14, "self.ep_size = self.tp_size + 1"),
        claim(ARGS, 14, "self.ep_size"),
    ]
    flags = [{"name": "--moe-runner-backend", "value": "flashinfer_cutlass"}, {"name": "tp", "value": 8}]
    answer = answers(
        "Yes, with another runner. It sets ep_size.\n\n- see there", claims=claims, flags=flags, risks=["OOM"]
    )
    async with serve(uses(READ, GREP, tokens=100), answer) as llm:
        status, finding = await ask(bench, llm)
    assert (status, finding.summary) == ("done", "Yes, with another runner.")
    assert finding.requires == {"moe-runner-backend": "flashinfer_cutlass"}
    found = Quote(path=ARGS, line=16, text="            assert self.moe_runner_backend in [")
    assert finding.quotes == (found,)
    assert finding.answer is not None
    assert finding.answer.text == "Yes, with another runner. It sets ep_size.\n\n- see there"
    assert finding.answer.claims[0] == Claim(
        text="It wants another runner.", path=ARGS, line=16, quote="assert self.moe_runner_backend in [", found=True
    )
    assert [each.found for each in finding.answer.claims] == [True, False, False]
    assert (finding.answer.risks, finding.answer.confidence, finding.proposal) == (("OOM",), "medium", None)

    read, searched = (block["content"] for block in llm.told)
    mark = read.partition("\n")[0]
    assert read.startswith(f"{mark}\n{ARGS}\n10: ") and read.endswith(f"</{mark[1:]}")
    assert '\n13:         if self.moe_a2a_backend == "flashinfer":\n' in read
    assert "(not there: sglang:gone)" in searched
    first = llm.requests[0]
    assert (first["model"], "output_config" in first, "tool_choice" in first) == ("claude-sonnet-5-5", False, False)
    assert "--moe-a2a-backend flashinfer" in first["system"] and "8 GPUs: RTX PRO 6000 (SM 12.0)" in first["system"]
    assert mark in first["system"]
    assert first["messages"][0]["content"][0]["text"].endswith(f"{mark}\n{bench.board}\n</{mark[1:]}")
    assert [tool["name"] for tool in first["tools"]][-1] == "answer"


async def test_each_call_and_each_turn_is_journalled(bench: Bench) -> None:
    async with serve(uses(READ, ("bash", {"command": "x" * 900}), tokens=1000), answers("Yes.")) as llm:
        await ask(bench, llm)
    read, bash = bench.used
    assert (read.tool, read.task, read.refused) == ("read", "t1", "")
    assert json.loads(read.asked) == READ[1]
    assert read.bytes == len(llm.told[0]["content"].encode())
    assert (bash.tool, bash.bytes) == ("bash", 0) and bash.refused.startswith("there is no such tool")
    assert len(bash.asked) <= 500
    spent = [event.spent for event in bench.told if isinstance(event, ev.LlmSpent)]
    assert spent == [
        Spent(calls=0, read_bytes=0, input_tokens=1000, output_tokens=2, cost_usd=pytest.approx(0.00202)),
        Spent(calls=2, read_bytes=read.bytes, input_tokens=1001, output_tokens=4, cost_usd=pytest.approx(0.002042)),
    ]
    assert bench.steps[0] == "asking claude-sonnet-5-5"
    assert bench.steps[1].startswith('read {"path":"sglang:srt/server_args.py"')


async def test_the_environment_decides_who_answers(bench: Bench) -> None:
    async with serve(answers("Yes.")) as llm:
        asks = Asker.from_env({"ANTHROPIC_BASE_URL": llm.url, "TUNEBOT_MODEL": "tiny", "TUNEBOT_EFFORT": "low"})
        assert asks is not None and asks.model.keyless
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("ANTHROPIC_API_KEY")
            patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
            status, _ = await ask(bench, llm, asks)
    assert status == "done"
    assert (llm.requests[0]["model"], llm.requests[0]["output_config"]) == ("tiny", {"effort": "low"})
    assert "none" in llm.headers[0] and "sk-ant" not in llm.headers[0]
    assert bench.steps[0] == "asking tiny, whose prices are not known: money is not counted"
    assert bench.told[1].spent.cost_usd is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "environ",
    [{}, {"ANTHROPIC_API_KEY": " "}, {"TUNEBOT_MODEL": "m"}, {"ANTHROPIC_BASE_URL": "https://example.com"}]
    + [{"ANTHROPIC_BASE_URL": url} for url in ("http://127.0.0.1.example.com", "nonsense", "http://[")],
)
async def test_without_a_key(bench: Bench, environ: dict[str, str]) -> None:
    bench.asker = Asker.from_env(environ)
    assert await bench.run({"ask": "anything?"}) == ("needs-key", Finding(summary=NEEDS_KEY))


def test_defaults() -> None:
    assert Asker.from_env({"ANTHROPIC_AUTH_TOKEN": "t"}) == Asker(Model("claude-sonnet-5-5"))
    assert Asker.from_env({"ANTHROPIC_API_KEY": "k", "TUNEBOT_MODEL": "other"}) == Asker(Model("other"))


async def test_a_pause_goes_on(bench: Bench) -> None:
    async with serve(says("so far", "pause_turn"), answers("Done.")) as llm:
        status, finding = await ask(bench, llm)
    assert (status, finding.summary) == ("done", "Done.")
    assert llm.requests[1]["messages"][-1]["role"] == "assistant"


async def test_an_answer_ends_a_turn_with_other_calls(bench: Bench) -> None:
    both = uses(READ, ("answer", {"text": "Yes.", "confidence": "low"}))
    async with serve(both) as llm:
        status, finding = await ask(bench, llm)
    assert (status, finding.summary, bench.used) == ("done", "Yes.", [])


@pytest.mark.parametrize(
    ("turn", "wrong"),
    [
        (says("Yes, it can."), "the tool answer was not called"),
        (says(""), "the tool answer was not called"),
        ([begin(), *end("end_turn")], "the tool answer was not called"),
        ([begin(), *end("tool_use")], "the tool answer was not called"),
        (uses(("answer", {"text": "Yes."})), "confidence: Field required"),
        (answers(" \n"), "its text is empty"),
        (answers("Yes.", mood="good"), "mood: Extra inputs are not permitted"),
        (answers("Yes.", claims=[{"text": "x"}]), "claims.0.path: Field required"),
        (answers("Yes.", flags={"tp": "8"}), "flags: Input should be a valid tuple"),
        (uses(("answer", [])), "text: Field required"),
        (uses(("answer", {"text": "Yes."}), READ), "confidence: Field required"),
    ],
)
async def test_what_is_no_answer_is_asked_once_more(bench: Bench, turn: list[Any], wrong: str) -> None:
    async with serve(turn, answers("Yes.")) as llm:
        assert (await ask(bench, llm))[0] == "done"
    said = llm.requests[1]["messages"][-1]["content"]
    assert wrong in json.dumps(said)
    assert not bench.used
    async with serve(turn, turn) as llm:
        status, finding = await ask(bench, llm)
    assert status == "failed" and finding.summary.startswith(f"unusable answer: {wrong}")
    assert (finding.answer, finding.quotes, finding.requires) == (None, (), {})


async def test_several_at_once_and_each_can_be_cancelled(bench: Bench) -> None:
    stuck = [begin(), *text("thinking"), STALL]
    async with serve(stuck) as first, serve(answers("Two.")) as second, serve(stuck) as third:
        bench.asker = asker(first.url)
        one = asyncio.create_task(bench.run({"ask": "one?"}))
        await _until(lambda: first.requests)
        bench.asker = asker(second.url)
        two = asyncio.create_task(bench.run({"ask": "two?"}))
        assert (await two)[1].summary == "Two."
        bench.asker = asker(third.url)
        three = asyncio.create_task(bench.run({"ask": "three?"}))
        await _until(lambda: third.requests)
        for task, llm in ((one, first), (three, third)):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
            await asyncio.wait_for(llm.left.wait(), 5)  # the connection is closed, not left to time out


async def test_cancelling_in_a_tool_ends_the_command(bench: Bench) -> None:
    """The target's grep is a program that waits; it is gone when the task is."""
    program = bench.home / "grep"
    program.write_text(
        f"#!/bin/sh\necho $$ > {bench.home}/pid.new\nmv {bench.home}/pid.new {bench.home}/pid\nsleep 60\n"
    )
    program.chmod(0o755)
    bench.target._env["PATH"] = f"{bench.home}:{bench.target._env['PATH']}"
    async with serve(uses(GREP)) as llm:
        task = asyncio.create_task(ask(bench, llm))
        await _until((bench.home / "pid").exists)
        pid = int((bench.home / "pid").read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
    assert not alive(pid)


async def _until(true: Any) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.02)


async def test_secrets_of_the_experiment_stay_here(bench: Bench) -> None:
    bench.args["api-key"] = "a-secret-of-the-server"
    bench.env.update(HF_TOKEN="another-secret", NCCL_ALGO="Ring")
    async with serve(answers("Yes.")) as llm:
        await ask(bench, llm)
    sent = json.dumps(llm.requests)
    assert "a-secret-of-the-server" not in sent
    assert "another-secret" not in sent
    assert "NCCL_ALGO=Ring" in sent
