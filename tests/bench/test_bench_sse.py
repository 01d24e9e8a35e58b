"""Streams are read without decoding most events; what they say must be what decoding every event says."""

import bisect
import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent.bench.sse as sse
from agent.bench.sse import read_plainly, read_stream

USAGE = {"prompt_tokens": 7, "total_tokens": 9, "completion_tokens": 2}


def vllm(text, count):
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None, "stop_reason": None}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 17, "model": "m"}
    return head | {"choices": [choice], "usage": None if count is None else USAGE | {"completion_tokens": count}}


def chat(text, count):
    delta = {"role": None, "content": text, "reasoning_content": None, "tool_calls": None}
    return {"id": "c", "choices": [{"index": 0, "delta": delta}], "usage": count and {"completion_tokens": count}}


def reasoning(text, count):
    delta = {"reasoning_content": text}
    return {"usage": None, "choices": [{"delta": delta, "index": 0}], "created": count or 0}


def llama(text, count):
    """Ids and numbers of all kinds behind the text, and a model that is named like a text."""
    tail = {"created": 1.5e3, "model": "a", "id": f"x{count}", "timings": {"ms": -0.25, "n": [count, 2]}}
    return {"choices": [{"text": text, "index": 0}], **tail, "usage": {"completion_tokens": count or 0}}


def usage_first(text, count):
    return {"usage": {"completion_tokens": count}, "choices": [{"text": text}]}


def generate(text, count):
    return {"text": text, "meta_info": {"id": "g", "completion_tokens": count, "cached_tokens": 1}}


SHAPES = {vllm: "completions", llama: "completions", usage_first: "completions", chat: "chat", reasoning: "chat"}
texts = st.sampled_from(["", "a", " the", '"', "\\", "\n", "é", "日本", "🚀", "m", '","usage":{', "\x00", "data: "]) | (
    st.text(max_size=6)
)
odd = st.sampled_from(
    [
        b": ping\n\n",
        b"\n",
        b"data: [DONE]\n\n",
        b'data: {"error": {"message": "no"}}\n\n',
        b'data: {"choices": [], "usage": {"completion_tokens": 5, "prompt_tokens": 1}}\n\n',
        b"data: {broken\n\n",
        b'event: x\ndata: {"choices": [{"text": "b"}]}\r\n\r\n',
        b'data: {"choices": [{"text": "b"}]}',
    ]
)


@st.composite
def bodies(draw):
    """An API, and the body of a stream: events of a server or two, with what may stand between them."""
    shapes = draw(st.lists(st.sampled_from(list(SHAPES)), min_size=1, max_size=2))
    api = SHAPES[shapes[0]]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    ascii_only, separators = draw(st.booleans()), draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    body, count = b"", 0
    for shape, text, between in draw(
        st.lists(st.tuples(st.sampled_from(shapes), texts, st.one_of(st.none(), st.none(), odd)), max_size=24)
    ):
        count += draw(st.integers(0, 3))
        event = json.dumps(
            shape(text, draw(st.sampled_from([count, count, None]))), ensure_ascii=ascii_only, separators=separators
        )
        body += f"data: {event}{end}{end}".encode() + (between or b"")
    return api, body


def events_of(body):
    """The parts of a server that sends each event as a chunk of its own."""
    return re.findall(rb"(?s).+?(?:\n\r?\n|\Z)", body)


@st.composite
def parted(draw, body):
    """The parts in which a body may come: one an event, with some of them torn or come together, or anything else."""
    if not body:
        return []
    ends = set(draw(st.sampled_from([[len(body)], [*itertools.accumulate(map(len, events_of(body)))]])))
    torn = draw(st.sets(st.integers(1, len(body)), max_size=4))
    together = draw(st.sets(st.sampled_from(sorted(ends)), max_size=3))
    cuts = sorted((ends - together) | torn | {len(body)})
    return [body[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]


@settings(deadline=None)
@given(bodies(), st.data())
def test_the_short_way_says_what_the_long_way_says(case, data):
    api, body = case
    parts = data.draw(parted(body))
    assert b"".join(parts) == body
    assert read_stream(api, parts) == read_plainly(api, parts)


@settings(deadline=None)
@given(bodies(), st.data())
def test_the_long_way_reads_lines_wherever_they_are_torn(case, data):
    api, body = case
    parts = data.draw(parted(body))
    whole, torn = read_plainly(api, [body]), read_plainly(api, parts)
    assert (torn.told, torn.usage, torn.error, torn.done) == (whole.told, whole.usage, whole.error, whole.done)
    single = read_plainly(api, [body[i : i + 1] for i in range(len(body))]).places  # where each line ends
    ends = list(itertools.accumulate(map(len, parts)))
    assert torn.places == [bisect.bisect_right(ends, place) for place in single]


@settings(deadline=None)
@given(bodies(), st.data())
def test_also_with_what_was_learnt_of_another_stream(case, data):
    api, body = case
    parts = data.draw(parted(body))
    other = body.replace(b"cmpl-1", b"cmpl-2x").replace(b'"c"', b'"d"').replace(b"17", b"4")
    assert read_stream(api, parts, read_stream(api, [other]).shape) == read_plainly(api, parts)


@settings(deadline=None)
@given(bodies(), st.data())
def test_also_where_bytes_are_wrong(case, data):
    api, body = case
    mangled = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4)) if body else 0):
        at = data.draw(st.integers(0, len(mangled) - 1))
        mangled[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"\n", b"\xff", b"9", b"0", b"-", b"\x01", b"\\u12", b"e"])
        )
        if not mangled:
            break
    parts = data.draw(parted(bytes(mangled)))
    expected = read_plainly(api, parts)
    assert read_stream(api, parts) == expected
    assert read_stream(api, parts, read_stream(api, events_of(body)).shape) == expected


@pytest.mark.parametrize("an_event", [1, 3, 0.4], ids=["each a part", "several a part", "torn"])
@pytest.mark.parametrize("shape", [vllm, llama, chat, reasoning])
def test_most_events_are_not_decoded(shape, an_event, monkeypatch):
    body = b"".join(f"data: {json.dumps(shape(f't{i}', i + 1))}\n\n".encode() for i in range(256))
    size = int(an_event * len(body) / 256)
    parts = events_of(body) if an_event == 1 else [body[i : i + size] for i in range(0, len(body), size)]
    expected = read_plainly(SHAPES[shape], parts)
    decoded, loads = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text: (decoded.append(text), loads(text))[1])
    assert read_stream(SHAPES[shape], parts) == expected
    assert len(expected.places) == 256
    assert len(decoded) < 16


def test_the_next_stream_of_a_server_is_not_learnt_anew(monkeypatch):
    first, second = (
        [b'data: {"id": "%d", "choices": [{"text": "a"}]}\n\n' % number for _ in range(64)] for number in (7, 8)
    )
    like = read_stream("completions", first).shape
    monkeypatch.setattr(sse, "learnt", None)
    assert read_stream("completions", second, like) == read_plainly("completions", second)


def test_a_server_whose_events_have_no_shape_is_not_learnt_from_for_ever(monkeypatch):
    learnings, learnt = [], sse.learnt
    monkeypatch.setattr(sse, "learnt", lambda *args: (learnings.append(args), learnt(*args))[1])
    parts = [b'data: {"id": "%d", "choices": [{"text": "a"}]}\n\n' % i for i in range(256)]
    assert len(read_stream("completions", parts).places) == 256
    assert len(learnings) <= 1 + 256 // 16


def test_tokens_of_each_chunk():
    told = [2, 3, 3, 7]
    parts = [f"data: {json.dumps(vllm('ab', count))}\n\n".encode() for count in told]
    assert read_stream("completions", parts).chunk_tokens() == (2, 1, 0, 4)
    for wrong in ([1, None], [2, 1]):
        parts = [f"data: {json.dumps(vllm('ab', count))}\n\n".encode() for count in wrong]
        assert read_stream("completions", parts).chunk_tokens() is None


def test_the_text_of_generate_grows():
    """Each event has the whole text so far: one that has no new text is no token chunk."""
    events = [generate(text, count) for count, text in enumerate(["", "a", "a", "ab", "abc"])]
    parts = [*(f"data: {json.dumps(event)}\n\n".encode() for event in events), b"data: [DONE]\n\n"]
    stream = read_stream("generate", parts)
    assert (stream.done, stream.error, stream.places) == (True, None, [1, 3, 4])
    assert stream.told == [1, 3, 4]
    assert stream.usage == {"id": "g", "completion_tokens": 4, "cached_tokens": 1}


def test_text_may_be_reasoning_and_an_opening_role_is_none():
    deltas = [{"role": "assistant", "content": ""}, {"reasoning_content": "a"}, {"reasoning": "b"}, {"content": "c"}]
    parts = [f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n".encode() for delta in deltas]
    assert read_stream("chat", parts).places == [1, 2, 3]
