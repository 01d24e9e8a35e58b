import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from agent.bench.bencher import HttpBencher
from agent.playbook.model import Workload
from agent.ports import Bencher, RoundError


def tokens(pause_s=0.002, fails=lambda number: False):
    """A handler that streams what was asked for; requests for which `fails` get a 500."""
    count = 0

    async def handler(request, answer):
        nonlocal count
        if request.path == "/v1/models":
            await answer.plain("200 OK", b'{"data": [{"id": "listed"}]}')
            return
        count += 1
        if fails(count):
            await answer.plain("500 Oops", b"\x1b[31mboom\x1b[0m api_key=sk-12345678901234567890")
            return
        await answer.head()
        for i in range(request.body["max_tokens"]):
            await answer.token("x", i + 1)
            await asyncio.sleep(pause_s)
        await answer.finish(request.body["max_tokens"], cached=1)

    return handler


async def test_a_round(serve, workload):
    server = await serve(tokens())
    records = []
    bencher: Bencher = HttpBencher(record=records.append)
    metrics = await bencher.round(server.url, "mine", workload, 5)
    assert (metrics.requests, metrics.failed) == (4, 0)
    assert (metrics.output_tokens, metrics.prompt_tokens, metrics.cached_tokens) == (32, 28, 4)
    assert metrics.output_throughput == pytest.approx(32 / metrics.duration_s)
    assert metrics.request_throughput == pytest.approx(4 / metrics.duration_s)
    assert metrics.ttft_ms > 0 and metrics.tpot_ms > 1.5
    assert metrics.tokens_per_chunk == 1.0
    assert {request.body["model"] for request in server.requests} == {"mine"}
    assert server.connections == 1
    assert len(records) == 4
    assert records[0]["sent_ms"] == 0.0
    assert records[0]["ttft_ms"] > 0
    expected = {"workload": "w", "seed": 5, "output_tokens": 8, "prompt_tokens": 7, "cached_tokens": 1, "chunks": 8}
    expected |= {"ok": True, "error": None, "counted": False, "retries": 0, "refused": []}
    for record in records:
        assert expected.items() <= record.items()
        assert 0 <= record["client_busy"] <= 1


async def test_warm_up_and_rounds_send_different_prompts(serve, workload):
    server = await serve(tokens())
    records = []
    bencher = HttpBencher(record=records.append)
    await bencher.warm_up(server.url, None, workload)
    for seed in (0, 1):
        await bencher.round(server.url, None, workload, seed)
    sent = [request.body["prompt"] for request in server.requests if request.method == "POST"]
    assert len({prompt[:16] for prompt in sent}) == len(sent) == 1 + 4 + 4
    assert {request.body["model"] for request in server.requests if request.body} == {"listed"}
    assert len(records) == 8  # the warm-up is not measured


async def test_the_closed_loop_keeps_its_concurrency(serve):
    running = peak = 0
    stream = tokens()

    async def handler(request, answer):
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await stream(request, answer)
        running -= 1

    server = await serve(handler)
    shape = Workload(name="w", concurrency=5, input_len=16, output_len=8, requests=20)
    metrics = await HttpBencher().round(server.url, "m", shape, 0)
    assert (metrics.requests, peak, server.connections) == (20, 5, 5)


async def test_more_lanes_than_requests(serve, workload):
    server = await serve(tokens())
    shape = workload.model_copy(update={"concurrency": 64, "requests": 2})
    assert (await HttpBencher().round(server.url, "m", shape, 0)).requests == 2
    assert server.connections == 2


async def test_the_warm_up_is_as_wide_as_the_round_but_no_longer_than_needed(serve):
    server = await serve(tokens())
    await HttpBencher().warm_up(server.url, "m", Workload(name="w", concurrency=3, output_len=4000))
    assert [request.body["max_tokens"] for request in server.requests] == [128] * 3


async def test_a_failed_request_ends_a_small_round_with_its_text_cleaned(serve, workload):
    server = await serve(tokens(fails=lambda number: number == 2))
    records = []
    bencher = HttpBencher(lambda text: text.replace("sk-12345678901234567890", "***"), records.append)
    with pytest.raises(RoundError) as caught:
        await bencher.round(server.url, "m", workload, 0)
    assert str(caught.value) == "1 of 2 requests failed: HTTP 500: boom api_key=***"
    assert len(server.requests) == 2  # the other two could not have saved it
    assert [record["ok"] for record in records] == [True, False]
    assert records[1]["error"] == "HTTP 500: boom api_key=***"


async def test_one_in_a_hundred_may_fail(serve):
    server = await serve(tokens(fails=lambda number: number == 7))
    shape = Workload(name="w", concurrency=4, input_len=16, output_len=2, requests=100)
    metrics = await HttpBencher().round(server.url, "m", shape, 0)
    assert (metrics.requests, metrics.failed, metrics.output_tokens) == (100, 1, 198)


async def test_a_server_that_dies_in_the_round(serve):
    number = 0
    stream = tokens()

    async def handler(request, answer):
        nonlocal number
        number += 1
        if number >= 6:
            answer.writer.transport.abort()
        else:
            await stream(request, answer)

    server = await serve(handler)
    shape = Workload(name="w", concurrency=4, input_len=16, output_len=8, requests=16)
    with pytest.raises(RoundError, match="requests failed: the server closed the connection"):
        await HttpBencher().round(server.url, "m", shape, 0)


async def test_a_warm_up_that_fails(serve, workload):
    server = await serve(tokens(fails=lambda number: True))
    with pytest.raises(RoundError, match="warm-up: 1 of 1 requests failed: HTTP 500: boom"):
        await HttpBencher().warm_up(server.url, "m", workload)


async def test_no_model_no_round(serve, workload):
    async def handler(_, answer):
        await answer.plain("404 Not Found", b"")

    server = await serve(handler)
    with pytest.raises(RoundError, match="GET /v1/models: HTTP 404"):
        await HttpBencher().round(server.url, None, workload, 0)


async def test_what_a_server_refuses_is_remembered_until_the_next_warm_up(serve, workload):
    stream = tokens()
    refusals = 0

    async def handler(request, answer):
        nonlocal refusals
        if "ignore_eos" in request.body:
            refusals += 1
            await answer.plain("422 X", b"Unexpected fields in the request: {'ignore_eos'}")
        else:
            await stream(request, answer)

    server = await serve(handler)
    records = []
    bencher = HttpBencher(record=records.append)
    await bencher.warm_up(server.url, "m", workload)
    await bencher.round(server.url, "m", workload, 0)
    assert refusals == 1
    assert records[0]["refused"] == ["ignore_eos"]
    await bencher.warm_up(server.url, "m", workload)
    assert refusals == 2


async def test_a_cancelled_round_leaves_nothing_behind(serve):
    server = await serve(tokens(0.05))
    shape = Workload(name="w", concurrency=4, input_len=16, output_len=4, requests=16)
    task = asyncio.create_task(HttpBencher().round(server.url, "m", shape, 0))
    while len(server.requests) < 4:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not children()
    async with asyncio.timeout(1):  # the sockets are closed, which the server notices
        while server.open:
            await asyncio.sleep(0.01)


async def test_a_worker_that_dies_ends_the_round(serve, workload):
    async def handler(request, answer):
        os.kill(children()[0], signal.SIGKILL)
        await answer.head()

    server = await serve(handler)
    with pytest.raises(RoundError, match="the load generator's process ended: exit code -9"):
        await HttpBencher().round(server.url, "m", workload, 0)


async def test_a_worker_that_cannot_be_started(serve, workload, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    server = await serve(tokens())
    with pytest.raises(RoundError, match="the load generator's process cannot be started: No such file"):
        await HttpBencher().round(server.url, "m", workload, 0)


async def test_what_cannot_be_sent_is_told(workload):
    shape = workload.model_copy(update={"api": "chat", "data": "random-tokens"})
    with pytest.raises(RoundError, match="a chat takes text, not token ids"):
        await HttpBencher().round("http://127.0.0.1:1", "m", shape, 0)


async def test_the_worker_does_not_outlive_its_parent(serve, tmp_path):
    """The parent is killed while requests are in flight: the server sees their connections closed."""
    server = await serve(tokens(0.05))
    program = (
        "import asyncio, sys\n"
        "from agent.bench.client import Server\n"
        "from agent.bench.load import Plan\n"
        "from agent.bench.worker import run_apart\n"
        "plan = Plan(api='completions', model='m', prompts=('a',) * 4, output_lens=(1000,) * 4, concurrency=4)\n"
        "asyncio.run(run_apart(Server(sys.argv[1]), plan))\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, server.url)
    async with asyncio.timeout(10):
        while server.open < 4:
            await asyncio.sleep(0.01)
        parent.kill()
        await parent.wait()
        while server.open:
            await asyncio.sleep(0.01)


def children():
    """Load generators of this process that have not been waited for."""
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in found if b"agent.bench.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
