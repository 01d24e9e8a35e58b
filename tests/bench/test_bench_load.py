"""Loads: closed and open, of all three APIs, in this process and in one of their own."""

import asyncio
from collections import Counter
from time import perf_counter

import pytest

import agent.bench.load as load_module
from agent.bench.client import Server
from agent.bench.load import Plan, run_load
from agent.bench.worker import run_apart


def plan(requests=4, concurrency=2, output_len=4, send_at_s=None, api="completions", prompts=None):
    return Plan(
        api=api,
        model="m",
        prompts=prompts or tuple(f"prompt {i}" for i in range(requests)),
        output_lens=(output_len,) * requests,
        concurrency=concurrency,
        send_at_s=send_at_s,
    )


def answers(pause_s=0.001):
    async def handler(request, answer):
        await answer.head()
        for i in range(request.body["max_tokens"]):
            await answer.token("x", i + 1)
            await asyncio.sleep(pause_s)
        await answer.finish(request.body["max_tokens"])

    return handler


async def test_a_closed_loop(serve):
    server = await serve(answers())
    load = await run_load(Server(server.url), plan(requests=6, concurrency=2))
    assert [s.error for s in load.samples] == [None] * 6
    assert server.connections == 2
    for s in load.samples:
        assert s.scheduled_s <= s.sent_s < s.first_s == s.chunk_s[0] < s.chunk_s[-1] == s.last_s
        assert (len(s.chunk_s), s.chunk_tokens) == (4, (1, 1, 1, 1))
    # A lane is free when its last request has ended.
    starts = sorted(s.scheduled_s for s in load.samples)
    assert starts[2] >= min(s.last_s for s in load.samples)
    assert load.health.cpu_fraction > 0 and load.health.loop_lag_p99_ms >= 0


async def test_an_open_loop_sends_on_time_whatever_is_in_flight(serve):
    server = await serve(answers(0.05))  # 0.2 s a request
    at_s = (0.0, 0.003, 0.0065, 0.05, 0.8, 0.85)
    load = await run_load(Server(server.url), plan(6, 16, send_at_s=at_s))
    samples = sorted(load.samples, key=lambda s: s.scheduled_s)
    assert [s.scheduled_s - samples[0].scheduled_s for s in samples] == pytest.approx(at_s)
    assert all(s.sent_s >= s.scheduled_s for s in samples)  # a timer of the event loop would be early by a millisecond
    assert samples[3].sent_s < samples[0].last_s
    assert server.connections == 4  # the last two found one free


async def test_a_wait_for_a_free_place_counts_from_the_planned_time(serve):
    server = await serve(answers(0.02))
    load = await run_load(Server(server.url), plan(4, 1, send_at_s=(0.0, 0.0, 0.0, 0.0)))
    waits = sorted(s.sent_s - s.scheduled_s for s in load.samples)
    assert len({s.scheduled_s for s in load.samples}) == 1 and server.connections == 1
    assert all(wait >= 0.08 * place for place, wait in enumerate(waits))


async def test_an_open_loop_that_is_cancelled_leaves_nothing(serve):
    server = await serve(answers(0.05))
    task = asyncio.create_task(run_load(Server(server.url), plan(3, 4, 100, send_at_s=(0.0, 0.0, 60.0))))
    while len(server.requests) < 2:
        await asyncio.sleep(0.01)
    task.cancel()
    begun_s = perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await task
    while server.open:
        await asyncio.sleep(0.01)
    assert perf_counter() - begun_s < 5


async def test_progress(serve, monkeypatch):
    monkeypatch.setattr(load_module, "_PROGRESS_S", 0.01)
    server, told = await serve(answers(0.01)), []
    await run_load(Server(server.url), plan(4, 2), told.append)
    assert told[0].done == told[0].output_chunks == 0
    assert {p.in_flight for p in told} >= {2}
    assert [p.done for p in told] == sorted(p.done for p in told) and told[-1].done >= 2
    assert any(p.output_chunks > 0 for p in told)


async def test_a_hanging_server_ends_the_load(serve, monkeypatch):
    monkeypatch.setattr(load_module, "deadline_s", lambda output_len: 0.1)

    async def handler(request, answer):
        await asyncio.sleep(0.4)

    server = await serve(handler)
    load = await run_load(Server(server.url), plan(4, 1))
    assert [s.error for s in load.samples] == ["no complete answer within 0.1 s"]


async def test_beyond_the_memory_limit_requests_are_read_as_they_end(serve, monkeypatch):
    monkeypatch.setattr(load_module, "_HOLD_BYTES", 1500)
    server = await serve(answers())
    load = await run_load(Server(server.url), plan(4, 1, 8))
    assert [s.output_tokens for s in load.samples] == [8] * 4


async def test_a_worker_says_what_run_load_says(serve):
    async def picky(request, answer):
        if "ignore_eos" in request.body:
            await answer.plain("422 X", b"Unexpected fields in the request: {'ignore_eos'}")
        else:
            await answers(0.2)(request, answer)

    scripted, told = await serve(picky), []
    server = Server(scripted.url)
    load = await run_apart(server, plan(2, 2), told.append)
    assert [(s.error, s.output_tokens, s.chunk_tokens) for s in load.samples] == [(None, 4, (1, 1, 1, 1))] * 2
    assert server.refused == {"ignore_eos"}
    assert told[0].done == 0 and told[-1].in_flight == 2
    stamps = [stamp for s in load.samples for stamp in s.chunk_s]
    assert max(stamps) <= perf_counter() < min(stamps) + 30  # one clock for all processes


async def test_chat(serve):
    async def handler(request, answer):
        await answer.head()
        await answer.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        await answer.event({"choices": [{"delta": {"reasoning_content": "hm"}}]})
        await answer.event({"choices": [{"delta": {"content": "yes"}}]})
        await answer.finish(2, cached=3)

    server = await serve(handler)
    load = await run_load(Server(server.url), plan(2, 1, api="chat"))
    assert [(s.error, s.chunks, s.output_tokens, s.cached_tokens) for s in load.samples] == [(None, 2, 2, 3)] * 2
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.body["messages"] == [{"role": "user", "content": "prompt 0"}]
    assert request.body["max_tokens"] == 4 and "prompt" not in request.body


@pytest.mark.parametrize(("prompts", "key"), [(("a", "b"), "text"), (((1, 2), (3, 4)), "input_ids")])
async def test_generate(serve, prompts, key):
    async def handler(request, answer):
        await answer.head()
        for i, text in enumerate(("a", "a b", "a b c")):
            meta = {"completion_tokens": i + 1, "prompt_tokens": 2, "cached_tokens": 1}
            await answer.event({"text": text, "meta_info": meta})
        await answer.send(b"data: [DONE]\n\n")
        await answer.end()

    server = await serve(handler)
    load = await run_load(Server(server.url), plan(2, 1, 3, api="generate", prompts=prompts))
    seen = [(s.error, s.chunk_tokens, s.output_tokens, s.prompt_tokens, s.cached_tokens) for s in load.samples]
    assert seen == [(None, (1, 1, 1), 3, 2, 1)] * 2
    sampling = {"temperature": 0, "max_new_tokens": 3, "ignore_eos": True}
    asked = prompts[0] if key == "text" else list(prompts[0])
    assert server.requests[0].path == "/generate"
    assert server.requests[0].body == {key: asked, "sampling_params": sampling, "stream": True}


async def test_token_ids_go_to_completions_as_they_are(serve):
    server = await serve(answers())
    await run_load(Server(server.url), plan(2, 1, prompts=((5, 6), (7, 8))))
    assert [request.body["prompt"] for request in server.requests] == [[5, 6], [7, 8]]


async def test_the_concurrency_of_an_open_loop_is_kept(serve):
    running, peaks = Counter(), []
    stream = answers(0.02)

    async def handler(request, answer):
        running["now"] += 1
        peaks.append(running["now"])
        await stream(request, answer)
        running["now"] -= 1

    server = await serve(handler)
    load = await run_load(Server(server.url), plan(12, 3, send_at_s=(0.0,) * 12))
    assert (len(load.samples), max(peaks), server.connections) == (12, 3, 3)
