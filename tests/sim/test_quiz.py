"""The simulated server before the guard: right answers, SGLang's form of a score, and a flag that makes it wrong."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from agent.bench import guard
from agent.bench.guard import HttpGuard
from agent.bench.questions import completion_text, questions
from agent.core.guard import GuardResult, guard_failure, guard_notes
from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import read_ledger
from agent.sim.world import read_world
from tests.sim.conftest import Server, free_port, kill_all

COUNT = 90
WORLD = {
    "noise": {"launch_sd": 0.007},  # so that launches differ a little, as real ones do
    "error_rate": 0.03,
    "memory": {"weights_gib": 8, "kv_gib": 2},  # for several servers at a time
    "rates": {"tok_s": 100, "ttft": 0.01, "prefill_tok_s": 20000, "token_speed": 20},
}


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimHost]:
    host = create_host(tmp_path_factory.mktemp("quiz"), {**read_world(world_file("small")), **WORLD})
    yield host
    kill_all(host)


@pytest.fixture(scope="module")
def server(noisy: SimHost) -> Server:
    return Server(noisy, free_port()).ready()


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Some of the questions, for the sake of time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "questions", lambda: questions()[:COUNT])
        yield


async def examine(server: Server, baseline: GuardResult | None = None) -> GuardResult:
    async with httpx.AsyncClient() as http:
        return await HttpGuard(http).examine(f"http://127.0.0.1:{server.port}", None, "sglang", baseline)


@pytest.fixture(scope="module")
def baseline(server: Server, few: None) -> GuardResult:
    return asyncio.run(examine(server))


def test_a_score_has_sglangs_form(server: Server) -> None:
    requests = len([r for r in read_ledger(server.host.ledger) if r["kind"] == "request"])
    ask = {"text": "one two three", "sampling_params": {"max_new_tokens": 0, "temperature": 0}}
    found = server.post("/generate", {**ask, "return_logprob": True, "logprob_start_len": 0})["meta_info"]
    entries = found["input_token_logprobs"]
    assert len(entries) == found["prompt_tokens"] == 3 and len(found["output_token_logprobs"]) == 1
    assert entries[0][0] is None and all(-1 < value <= 0 for value, _, _ in entries[1:])
    assert all(isinstance(token, int) and text is None for _, token, text in entries)
    again = server.post("/generate", {**ask, "return_logprob": True, "logprob_start_len": 1})["meta_info"]
    assert [e[1] for e in again["input_token_logprobs"]] == [e[1] for e in entries[1:]]
    assert "input_token_logprobs" not in server.post("/generate", ask)["meta_info"]
    last = server.post("/generate", {**ask, "return_logprob": True})["meta_info"]["input_token_logprobs"]
    assert last == [[None, entries[-1][1], None]]
    served = len([r for r in read_ledger(server.host.ledger) if r["kind"] == "request"])
    assert served == requests + 1, "a score takes no place among the generations"


def test_an_answer_ends_but_not_where_its_end_is_to_be_ignored(server: Server) -> None:
    question = next(q for q in questions() if q.accepted == ("Oslo",))
    ask = {"prompt": completion_text(question), "max_tokens": 6, "temperature": 0}
    short = server.post("/v1/completions", ask)
    assert short["choices"][0]["finish_reason"] == "stop" and short["usage"]["completion_tokens"] == 1
    long = server.post("/v1/completions", {**ask, "ignore_eos": True})
    assert long["choices"][0]["finish_reason"] == "length" and long["usage"]["completion_tokens"] == 6


async def test_equal_launches_pass_and_a_faster_wrong_one_fails(noisy: SimHost, baseline: GuardResult) -> None:
    assert baseline.asked_over == "chat" and 80 < baseline.right.count("1") < COUNT
    assert baseline.mean_logprob == pytest.approx(-0.25, abs=0.05) and not baseline.unscored
    same = await examine(Server(noisy, free_port()).ready(), baseline)
    assert same.answers != baseline.answers and same.mean_logprob != baseline.mean_logprob, "launches differ"
    assert guard_failure(same, baseline, answers=True, max_logprob_drop=0.02) is None, guard_notes(same, baseline)
    wrong = await examine(Server(noisy, free_port(), "--kv-cache-dtype", "fp4_e2m1").ready(), baseline)
    said = guard_failure(wrong, baseline, answers=True, max_logprob_drop=0.02)
    assert said is not None and "its answers are worse" in said and "less probable: -0.3" in said
    rates = [r["tok_s"] for r in read_ledger(noisy.ledger) if r["kind"] == "rate"]
    assert rates[-1] > 1.1 * rates[0]


async def test_a_garbled_server_fails(noisy: SimHost, baseline: GuardResult) -> None:
    garbled = await examine(Server(noisy, free_port(), "--enable-mscclpp").ready(), baseline)
    assert garbled.asked_over == "chat" and garbled.truncated > 70 and garbled.right.count("1") < 10
    said = guard_failure(garbled, baseline, answers=True, max_logprob_drop=0.02)
    assert said is not None and "break down" in said
