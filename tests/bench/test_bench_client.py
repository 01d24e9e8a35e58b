import asyncio
import itertools
import json
import re
import socket
from statistics import median
from time import perf_counter

import pytest

from agent.bench.client import Exchange, Lane, Server, deadline_s, first_model
from agent.bench.http import HttpError, Response
from agent.bench.read import Reader

TEXTS = ["Ärger ", "über ", "日本語 ", "🚀 ", 'quote " and \\n\n', "data: [DONE] ", "0\r\n\r\n", "end"]


async def complete(server, prompts=1, within_s=5.0, output_len=8):
    """Samples of requests sent one after the other by one lane."""
    lane = Lane(server if isinstance(server, Server) else Server(server.url))
    try:
        return [
            Reader("completions").sample(await lane.complete("completions", "m", f"prompt {i}", output_len, within_s))
            for i in range(prompts)
        ]
    finally:
        await lane.close()


def body_of_texts(line_end):
    events = [{"choices": [{"index": 0, "text": ""}]}]
    events += [{"choices": [{"index": 0, "text": text}]} for text in TEXTS]
    events += [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 21}}]
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}{line_end * 2}" for event in events]
    return (": comment" + line_end + "".join(lines) + f"data: [DONE]{line_end * 2}").encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("chunked", [True, False])
def test_torn_at_every_byte(chunked, line_end):
    body = body_of_texts(line_end)
    head = b"HTTP/1.1 200 OK\r\nX: y\r\n"
    if chunked:
        pieces = [body[i : i + 37] for i in range(0, len(body), 37)]
        framed = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        wire = head + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\nTrailer: t\r\n\r\n"
    else:
        wire = head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    wire = b"HTTP/1.1 100 Continue\r\n\r\n" + wire
    for cut in range(len(wire) + 1):
        response = Response(0.0)
        for now, piece in ((1.0, wire[:cut]), (2.0, wire[cut:])):
            if piece:
                response.feed(piece, now)
        assert response.complete and response.keep_alive
        assert bytes(response.body) == body
        got = Reader("completions").sample(Exchange(response=response, error=None, retries=0))
        assert (got.error, got.chunks, got.prompt_tokens, got.output_tokens) == (None, len(TEXTS), 3, 21)
        assert set(got.chunk_s) <= {1.0, 2.0} and got.chunk_s == tuple(sorted(got.chunk_s))
    bytewise = Response(0.0)
    for at in range(len(wire)):
        bytewise.feed(wire[at : at + 1], float(at))
    assert bytewise.body == body
    got = Reader("completions").sample(Exchange(response=bytewise, error=None, retries=0))
    ends = [m.end() - 1 for m in re.finditer(rb"data: .*\n", wire)] if not chunked else None
    assert ends is None or list(got.chunk_s) == [float(x) for x in ends[1 : len(TEXTS) + 1]]


@pytest.mark.parametrize(
    ("wire", "says"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 abc\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "chunk size"),
        (b"x" * 70_000, "not an HTTP answer"),
    ],
)
def test_what_is_not_http(wire, says):
    with pytest.raises(HttpError, match=says):
        Response(0.0).feed(wire, 0.0)


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", b"junk", b"\x00"])
def test_bytes_that_nobody_asked_for_are_no_part_of_the_answer(more):
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n"
    response = Response(0.0)
    response.feed(wire + more, 1.0)
    assert (response.complete, response.keep_alive, response.body) == (True, False, b"yes")
    response = Response(0.0)
    response.feed(wire, 1.0)
    assert response.keep_alive
    response.feed(more, 2.0)
    assert (response.keep_alive, response.body) == (False, b"yes")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(event):
    return b"%x\r\n%s\r\n" % (len(event), event)


@pytest.mark.parametrize("last", [[b"0\r\n\r\n"], [b"0\r\n", b"\r\n"], [b"0\r\nA: b\r", b"\n\r", b"\n"]])
def test_pieces_that_are_read_together_keep_their_own_stamps(last):
    pieces = [CHUNKED, *(chunk(b"data: %d\n\n" % i) for i in range(200)), *last]
    response = Response(0.0)
    assert [response.feed(piece, float(i)) for i, piece in enumerate(pieces)] == [False] * (len(pieces) - 1) + [True]
    assert response.parts == [b"data: %d\n\n" % i for i in range(200)]
    assert response.parts_s == [float(1 + i) for i in range(200)]
    assert (response.size, response.keep_alive) == (sum(map(len, pieces)), True)


def test_a_part_came_when_its_piece_did():
    """Chunks that come together, and one that is torn: its halves are two parts."""
    wire = CHUNKED + b"".join(map(chunk, [b"a\n\n", b"b\n\n", b"c\n\n", b"d\n\n"])) + b"0\r\n\r\n"
    response, cuts = Response(0.0), [0, len(CHUNKED) + 16, len(CHUNKED) + 20, len(wire)]
    for now_s, (start, end) in enumerate(itertools.pairwise(cuts)):
        response.feed(wire[start:end], float(now_s))
    assert response.complete
    assert (response.parts, response.parts_s) == ([b"a\n\n", b"b\n\n", b"c", b"\n\n", b"d\n\n"], [0, 0, 1, 2, 2])


@pytest.mark.parametrize("apart", [True, False])
def test_an_answer_of_known_length_is_complete_at_once_even_if_it_ends_as_an_event_does(apart):
    head, body = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"hello\n\n\r\n"
    response = Response(0.0)
    assert [response.feed(piece, 1.0) for piece in ([head, body] if apart else [head + body])][-1] is True
    assert response.body == body


def test_pieces_that_are_not_http_are_noticed_while_they_come():
    response = Response(0.0)
    response.feed(CHUNKED, 0.0)
    with pytest.raises(HttpError, match="chunk size"):
        for at in range(100):
            response.feed(b"none\n\n\r\n", float(at))


def test_pieces_that_were_not_read_yet_when_the_connection_ends():
    response = Response(0.0)
    response.feed(CHUNKED, 0.0)
    response.feed(chunk(b"a\n\n"), 1.0)
    with pytest.raises(HttpError, match=f"in the middle of its answer .{response.size + len(chunk(b'a..'))} bytes"):
        response.end()
    assert response.parts == [b"a\n\n"]


async def test_times_are_those_of_the_server(serve):
    truth = []

    async def paced(_, answer):
        stamps = [perf_counter()]
        await answer.head()
        await answer.event({"choices": [{"index": 0, "text": ""}]})  # an opening chunk is not a token
        await asyncio.sleep(0.05)
        for i in range(11):
            stamps.append(perf_counter())
            await answer.token("x", i + 1)
            await asyncio.sleep(0.01)
        truth.append(stamps)
        await answer.finish(11)

    samples = await complete(await serve(paced), prompts=7)
    assert all(s.ok and not s.counted and s.chunks == 11 for s in samples)
    # What the server did, not what it meant to do: on a busy machine its own pauses are longer.
    ttft_off = [s.ttft_ms - 1000 * (t[1] - t[0]) for s, t in zip(samples, truth, strict=True)]
    tpot_off = [s.tpot_ms - 1000 * (t[-1] - t[1]) / 10 for s, t in zip(samples, truth, strict=True)]
    assert median(ttft_off) == pytest.approx(0, abs=3)
    assert median(tpot_off) == pytest.approx(0, abs=0.5)
    assert median(s.ttft_ms for s in samples) > 50
    assert median(s.tpot_ms for s in samples) > 9.5


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("torn", [0, 1, 7])
async def test_transfer_encodings(serve, framing, torn):
    async def handler(_, answer):
        answer.framing, answer.torn = framing, torn
        await answer.head()
        for text in TEXTS:
            await answer.token(text)
        await answer.finish(len(TEXTS), cached=2)

    server = await serve(handler)
    samples = await complete(server, prompts=2)
    assert [(s.ok, s.chunks, s.output_tokens, s.prompt_tokens, s.cached_tokens, s.retries) for s in samples] == [
        (True, 8, 8, 7, 2, 0)
    ] * 2
    assert server.connections == (1 if framing == "chunked" else 2)


async def test_several_tokens_a_chunk(serve):
    async def speculative(_, answer):
        await answer.head()
        for i in range(4):
            await answer.token("four tokens", 4 * (i + 1))
            await asyncio.sleep(0.02)
        await answer.finish(16)

    (s,) = await complete(await serve(speculative))
    assert (s.chunks, s.output_tokens) == (4, 16)
    assert s.tpot_ms + 0.5 >= 60 / 15
    assert s.tpot_ms == pytest.approx((s.e2e_ms - s.ttft_ms) / 15)


async def test_without_usage_chunks_are_counted_and_that_is_told(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a")
        await answer.token("b")
        await answer.finish(None)

    (s,) = await complete(await serve(handler))
    assert (s.ok, s.counted, s.output_tokens, s.prompt_tokens) == (True, True, 2, None)


@pytest.mark.parametrize("usage", [{"completion_tokens": "9"}, {"completion_tokens": -1}, {"prompt_tokens_details": 3}])
async def test_usage_that_makes_no_sense_is_no_usage(serve, usage):
    async def handler(_, answer):
        await answer.head()
        await answer.event({"choices": [{"text": "a"}], "usage": usage})
        await answer.finish(None)

    (s,) = await complete(await serve(handler))
    assert (s.ok, s.counted, s.output_tokens) == (True, True, 1)


async def test_the_body_of_a_request(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a")
        await answer.finish(1)

    server = await serve(handler)
    await complete(server)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/completions")
    assert request.body == {
        "model": "m",
        "prompt": "prompt 0",
        "max_tokens": 8,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "ignore_eos": True,
    }


@pytest.mark.parametrize(
    ("status", "strict", "bodies", "refused"),
    [
        ("422 X", {"ignore_eos"}, 3, {"ignore_eos"}),
        ("400 X", {"ignore_eos", "continuous_usage_stats"}, 4, {"ignore_eos", "continuous_usage_stats"}),
        ("400 X", {"stream_options"}, 3, {"stream_options"}),
    ],
)
async def test_refused_fields_are_left_out_and_remembered(serve, status, strict, bodies, refused):
    async def picky(request, answer):
        known = {*request.body, *(f"stream_options.{x}" for x in request.body.get("stream_options", {}))}
        unwelcome = sorted(x for x in known if x.split(".")[-1] in strict)
        if unwelcome:
            await answer.plain(status, f"Unexpected fields in the request: {unwelcome[0]}".encode())
            return
        await answer.head()
        await answer.token("a")
        await answer.finish(1)

    server = await serve(picky)
    target = Server(server.url)
    assert [s.ok for s in await complete(target, prompts=2)] == [True, True]
    assert target.refused == refused
    assert len(server.requests) == bodies
    assert server.connections == 1


async def test_a_refusal_for_another_reason_is_a_failure(serve):
    async def handler(_, answer):
        await answer.plain("400 Bad Request", b'{"error": "context length exceeded"}')

    server = await serve(handler)
    (s,) = await complete(server)
    assert s.error == 'HTTP 400: {"error": "context length exceeded"}'
    assert len(server.requests) == 1


async def test_a_server_that_closes_idle_connections(serve):
    async def closes_when_asked_again(request, answer):
        if request.nth == 1:
            answer.writer.transport.abort()
            return
        await answer.head()
        await answer.token("a")
        await answer.finish(1)

    samples = await complete(await serve(closes_when_asked_again), prompts=4)
    assert [(s.ok, s.retries) for s in samples] == [(True, 0), (True, 1), (True, 1), (True, 1)]


async def test_a_connection_closed_while_idle_is_replaced_without_a_retry(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a")
        await answer.finish(1)
        answer.writer.close()

    server = await serve(handler)
    lane = Lane(Server(server.url))
    for _ in range(3):
        assert Reader("completions").sample(await lane.complete("completions", "m", "p", 8, 5.0)).ok
        await asyncio.sleep(0.05)
    await lane.close()
    assert (server.connections, len(server.requests)) == (3, 3)


async def test_a_new_connection_that_is_closed_is_not_retried(serve):
    async def handler(_, answer):
        answer.writer.transport.abort()

    server = await serve(handler)
    (s,) = await complete(server)
    assert s.error == "the server closed the connection without an answer"
    assert (s.retries, len(server.requests)) == (0, 1)


async def test_closed_in_mid_stream(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a", 1)
        answer.writer.close()

    server = await serve(handler)
    samples = await complete(server, prompts=2)
    assert all("in the middle of its answer" in s.error for s in samples)
    assert len(server.requests) == 2


@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_a_stream_without_done_is_a_failure(serve, framing):
    async def handler(_, answer):
        answer.framing = framing
        await answer.head()
        await answer.token("a", 1)
        await answer.end()

    (s,) = await complete(await serve(handler))
    assert s.error == "the stream ended without [DONE], after 1 token chunks"


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"error": {"message": "CUDA out of memory", "code": 500}}, "the stream says: CUDA out of memory"),
        ({"error": "aborted"}, "the stream says: aborted"),
        ([1], "not an event: [1]"),
    ],
)
async def test_an_error_event_is_a_failure(serve, event, says):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a", 1)
        await answer.event(event)
        await answer.finish(1)

    (s,) = await complete(await serve(handler))
    assert s.error == says


async def test_nothing_at_all_is_a_failure(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.finish(None)

    (s,) = await complete(await serve(handler))
    assert s.error == "the stream had no token and no usage"


async def test_a_hanging_server_meets_the_deadline(serve):
    async def handler(request, answer):
        await answer.head()
        await answer.token("a", 1)
        if request.connection == 1:
            await asyncio.sleep(0.5)
        await answer.finish(1)

    first, second = await complete(await serve(handler), prompts=2, within_s=0.1)
    assert first.error == "no complete answer within 0.1 s"
    assert second.ok


async def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (s,) = await complete(Server(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert s.error.startswith("no connection to 127.0.0.1:")


async def test_only_plain_http():
    (s,) = await complete(Server("https://127.0.0.1"))
    assert s.error == "not an http:// address: https://127.0.0.1"


def test_the_deadline_grows_with_the_output():
    assert (deadline_s(2), deadline_s(1000)) == (301.0, 800.0)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        ("200 OK", b'{"data": [{"id": "one"}, {"id": "two"}]}', None),
        ("503 X", b"", "GET /v1/models: HTTP 503"),
        ("200 OK", b'{"data": []}', "names no model"),
        ("200 OK", b"[]", "names no model"),
        ("200 OK", b"<html>", "names no model"),
    ],
)
async def test_the_first_model(serve, status, body, says):
    async def handler(request, answer):
        assert (request.method, request.path) == ("GET", "/v1/models")
        await answer.plain(status, body)

    server = await serve(handler)
    if says is None:
        assert await first_model(Server(server.url)) == "one"
    else:
        with pytest.raises(HttpError, match=says):
            await first_model(Server(server.url))


async def test_the_first_model_has_a_deadline(serve):
    async def handler(_, answer):
        await asyncio.sleep(0.3)

    server = await serve(handler)
    with pytest.raises(HttpError, match=r"no answer to GET /v1/models within 0\.05 s"):
        await first_model(Server(server.url), within_s=0.05)


async def test_a_prompt_that_the_socket_does_not_take_at_once(serve):
    async def handler(_, answer):
        await answer.head()
        await answer.token("a")
        await answer.finish(1)

    server = await serve(handler)
    lane, prompt = Lane(Server(server.url)), "0123456789" * 1_000_000
    exchange = await lane.complete("completions", "m", prompt, 8, 20.0)
    await lane.close()
    assert Reader("completions").sample(exchange).ok
    assert server.requests[0].body["prompt"] == prompt
