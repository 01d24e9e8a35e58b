"""The numbers of rounds as people see them, and as a journal keeps them."""

from dataclasses import replace

import pytest

from agent.core import events as ev
from agent.core.metrics import GpuUse, Hygiene, RoundMetrics, Spread
from agent.core.views.details import details
from agent.core.views.lines import line_of
from agent.core.views.numbers import doubts_text
from agent.journal.codec import decode, encode
from tests.core.conftest import metrics
from tests.tui.states import loading, play, researched

FLAT = Spread(mean=50.0, p50=50.0, p90=60.0, p95=65.0, p99=70.0)
FULL = replace(
    metrics(90.0),
    steady_output_throughput=95.0,
    goodput=0.75,
    ttft=FLAT,
    tpot=FLAT,
    itl=FLAT,
    chunk_gap=FLAT,
    e2e=FLAT,
    prompt_len=512.0,
    output_len=128.0,
    cache_hit_rate=0.25,
    refused=("ignore_eos",),
    accept_length=2.5,
    watts_per_gpu=412.0,
    gpu_use=GpuUse(count=8, busy=0.99, watts=412.0, limit_watts=600.0),
)
WARNED = Hygiene(name="input length", level="warn", text="inputs of 600 tokens on average, 512 were asked for")
CACHED = Hygiene(name="prefix cache", level="bad", text="25% of the prompt tokens were in the prefix cache")


def measured(*rounds: RoundMetrics):
    state = play(
        loading(researched(), "base", "s-01", 110.0), ev.ServerReady(at=130.0, launch="s-01", load_s=19.0, flags=())
    )
    for index, found in enumerate(rounds):
        state = play(
            state,
            ev.RoundRequested(at=131.0, launch="s-01", workload="single", index=index, seed=index),
            ev.RoundMeasured(at=132.0, launch="s-01", workload="single", index=index, metrics=found),
        )
    return state


def table(*rounds: RoundMetrics):
    (view,) = details(measured(*rounds), "base", 200.0).measured
    return view


def test_what_else_is_known_stands_below_the_table() -> None:
    view = table(FULL, replace(FULL, goodput=0.25))
    assert view.more == (
        "p99  TTFT 70.0 · TPOT 70.00 · ITL 70.00 · E2E 70.0 ms",
        "1.00 req/s · goodput 0.50 req/s · 95.0 tok/s steady · 412 W a GPU",
        "512 tokens in, 128 out · 25% of the input cached · accept length 2.50",
    )


@pytest.mark.parametrize(
    ("count", "busy", "watts", "limit", "waits"),
    [
        (8, 1.0, 130.0, 600.0, "100 % busy at 130 W a card: waiting on communication"),
        (2, 0.96, 140.0, 600.0, "96 % busy at 140 W a card: waiting on communication"),
        (8, 1.0, 300.0, 600.0, ""),
        (8, 0.9, 130.0, 600.0, ""),
        (8, 1.0, 130.0, 300.0, ""),
        (1, 1.0, 130.0, 600.0, ""),
    ],
)
def test_busy_gpus_that_draw_little_wait_for_each_other(
    count: int, busy: float, watts: float, limit: float, waits: str
) -> None:
    use = GpuUse(count=count, busy=busy, watts=watts, limit_watts=limit)
    assert [line for line in table(replace(FULL, gpu_use=use)).more if "busy" in line] == ([waits] if waits else [])


def test_rounds_of_an_old_journal_have_nothing_more_to_say() -> None:
    view = table(metrics(90.0), metrics(91.0))
    assert (view.more, view.doubts) == ((), ())


def test_what_speaks_against_the_rounds_is_told_once_and_the_worst_first() -> None:
    view = table(replace(FULL, hygiene=(WARNED,)), replace(FULL, hygiene=(WARNED, CACHED)))
    assert [(doubt.glyph, doubt.word, doubt.text) for doubt in view.doubts] == [
        ("✖", "not comparable", "prefix cache: 25% of the prompt tokens were in the prefix cache (round 2)"),
        ("!", "warn", f"input length: {WARNED.text} (round 1 and 1 more)"),
    ]


@pytest.mark.parametrize(
    ("hygiene", "why", "text"),
    [
        ((), None, ""),
        ((WARNED,), None, "! input length"),
        ((WARNED, CACHED), CACHED.text, f"✖ not comparable: {CACHED.text}"),
    ],
)
def test_a_bad_item_makes_a_round_not_comparable(hygiene: tuple[Hygiene, ...], why: str | None, text: str) -> None:
    found = replace(FULL, hygiene=hygiene)
    assert found.not_comparable == why
    assert doubts_text(found) == text


def test_the_line_of_a_round_says_it() -> None:
    before = measured()
    event = ev.RoundMeasured(
        at=132.0, launch="s-01", workload="single", index=0, metrics=replace(FULL, hygiene=(CACHED,))
    )
    requested = play(before, ev.RoundRequested(at=131.0, launch="s-01", workload="single", index=0, seed=1))
    line = line_of(requested, event, play(requested, event))
    assert line and line.endswith(f"TPOT 11.1 ms  ✖ not comparable: {CACHED.text}")


def test_a_journal_gives_the_same_numbers_back() -> None:
    found = replace(FULL, hygiene=(WARNED, CACHED))
    event = ev.RoundMeasured(at=1.0, launch="s", workload="w", index=0, metrics=found)
    assert decode(encode(event)) == event


def test_a_round_of_an_old_journal_loads() -> None:
    event = ev.RoundMeasured(at=1.0, launch="s", workload="w", index=0, metrics=metrics(90.0))
    record = encode(event)
    names = ("requests", "failed", "duration_s", "prompt_tokens", "output_tokens", "cached_tokens", "tokens_per_chunk")
    old = (*names, "output_throughput", "request_throughput", "ttft_ms", "tpot_ms")
    record["data"]["metrics"] = {name: record["data"]["metrics"][name] for name in old}
    assert decode(record) == event
