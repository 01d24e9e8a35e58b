from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bench.health import Health
from agent.bench.metrics import NotMeasurable, measured, spread, too_many_failed
from agent.bench.sample import Sample
from agent.playbook.workload import Workload

HEALTH = Health(cpu_fraction=0.1, loop_lag_p99_ms=0.5)


def ok(sent=0.0, first=0.1, last=1.1, tokens=11, chunks=11, **more):
    return Sample(sent_s=sent, first_s=first, last_s=last, output_tokens=tokens, chunks=chunks, **more)


def even(sent, first, gap, tokens, per_chunk=1, told=True, **more):
    """A request whose chunks come evenly; of `per_chunk` tokens each after the first one of a single token."""
    stamps = [first]
    told_tokens = [1]
    while sum(told_tokens) < tokens:
        told_tokens.append(min(per_chunk, tokens - sum(told_tokens)))
        stamps.append(stamps[-1] + gap)
    more = {"chunk_tokens": tuple(told_tokens) if told else None} | more
    return ok(sent, first, stamps[-1], tokens, len(stamps), chunk_s=tuple(stamps), **more)


def round_of(samples, **workload):
    return measured(samples, HEALTH, Workload.model_validate({"name": "w", **workload}))


@pytest.mark.parametrize(
    ("sample", "ttft", "tpot", "e2e"),
    [
        (ok(), 100.0, 100.0, 1100.0),
        (ok(tokens=21), 100.0, 50.0, 1100.0),  # tokens count, chunks do not
        (ok(sent=2.0, first=2.5, last=2.5, tokens=1, chunks=1), 500.0, None, 500.0),
        (ok(first=0.4, last=0.4, tokens=8, chunks=1), 400.0, None, 400.0),  # all in one chunk: not 0 ms
        (ok(first=0.4, last=0.4, tokens=8, chunks=8), 400.0, None, 400.0),  # held back by a proxy
        (Sample(sent_s=1.0, output_tokens=3), None, None, None),
        (Sample(error="refused"), None, None, None),
    ],
)
def test_times_of_one_request(sample, ttft, tpot, e2e):
    assert sample.ttft_ms == pytest.approx(ttft)
    assert sample.tpot_ms == pytest.approx(tpot)
    assert sample.e2e_ms == pytest.approx(e2e)


def test_a_round():
    metrics = round_of(
        [
            ok(sent=10.0, first=10.1, last=11.1, tokens=11, prompt_tokens=5, cached_tokens=2, retries=1),
            ok(sent=10.5, first=10.8, last=12.8, tokens=21, prompt_tokens=6),
            ok(sent=11.1, first=11.3, last=14.0, tokens=28, chunks=8, prompt_tokens=7, cached_tokens=3),
        ]
    )
    assert (metrics.requests, metrics.failed, metrics.retries) == (3, 0, 1)
    assert (metrics.prompt_tokens, metrics.output_tokens, metrics.cached_tokens) == (18, 60, 5)
    assert (metrics.prompt_len, metrics.output_len) == (6.0, 20.0)
    assert metrics.cache_hit_rate == pytest.approx(5 / 12)  # of those that told it
    assert metrics.duration_s == pytest.approx(4.0)
    assert metrics.output_throughput == pytest.approx(15.0)
    assert metrics.request_throughput == pytest.approx(0.75)
    assert metrics.ttft_ms == pytest.approx(200.0)
    assert metrics.tpot_ms == pytest.approx(100.0)
    assert metrics.tokens_per_chunk == pytest.approx(2.0)
    assert metrics.ttft.mean == pytest.approx(200.0)
    assert metrics.e2e.p50 == pytest.approx(2300.0)


def test_names_of_an_objective_lead_to_numbers():
    metrics = round_of([ok(first=0.001 * n, last=2.0) for n in range(1, 102)], slo={"ttft_ms": 50})
    assert metrics.value("ttft_ms") == pytest.approx(51.0)
    assert metrics.value("ttft_p90_ms") == pytest.approx(91.0)
    assert metrics.value("ttft_p99_ms") == pytest.approx(100.0)
    assert metrics.value("e2e_ms") == pytest.approx(2000.0)
    assert metrics.value("request_throughput") == pytest.approx(50.5)
    assert metrics.value("goodput") == pytest.approx(25.0)
    with pytest.raises(LookupError, match="goodput"):
        round_of([ok()]).value("goodput")


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=60))
def test_percentiles_are_those_of_numpy(values):
    cuts = quantiles(values, n=100, method="inclusive")  # the same definition
    found = spread(values)
    assert (found.p50, found.p90, found.p95, found.p99) == pytest.approx((cuts[49], cuts[89], cuts[94], cuts[98]))


def test_nothing_has_no_spread():
    assert spread([]) is None
    assert spread([None]) is None


def test_a_chunk_is_not_a_token():
    """Pitfall 3: with four tokens a chunk the gap between chunks is four times the time of a token."""
    metrics = round_of([even(0.0, 0.1, gap=0.04, tokens=41, per_chunk=4)])
    assert metrics.chunk_gap.p50 == pytest.approx(40.0)
    assert (metrics.itl.p50, metrics.itl.mean) == pytest.approx((10.0, 10.0))
    assert metrics.tpot_ms == pytest.approx(10.0)
    assert metrics.tokens_per_chunk == pytest.approx(41 / 11)
    untold = round_of([even(0.0, 0.1, gap=0.04, tokens=41, per_chunk=4, told=False)])
    assert untold.itl is None and untold.chunk_gap.p50 == pytest.approx(40.0)
    assert untold.tpot_ms == pytest.approx(10.0)


def test_text_without_a_new_token_lends_its_gap_to_the_next():
    held = ok(0.0, 0.1, 0.3, tokens=2, chunks=3, chunk_s=(0.1, 0.2, 0.3), chunk_tokens=(1, 0, 1))
    assert round_of([held]).itl.mean == pytest.approx(200.0)


def test_an_open_loop_counts_from_when_a_request_was_due():
    """Pitfall 5: the wait in the client's own queue is part of the latency."""
    waited = even(2.0, 2.1, gap=0.1, tokens=11, scheduled_s=0.0)
    closed, opened = round_of([waited]), round_of([waited], rate=4.0)
    assert (closed.ttft_ms, closed.e2e.p50) == pytest.approx((100.0, 1100.0))
    assert (opened.ttft_ms, opened.e2e.p50) == pytest.approx((2100.0, 3100.0))
    assert opened.duration_s == pytest.approx(3.1)
    assert opened.tpot_ms == closed.tpot_ms


def test_goodput_counts_what_met_every_limit():
    samples = [
        ok(first=0.1, last=1.1),  # 100 ms, 100 ms a token, 1100 ms
        ok(first=0.3, last=1.1),  # late
        ok(first=0.1, last=1.6),  # slow
        ok(first=0.1, last=0.1, tokens=1, chunks=1),  # has no TPOT to miss
    ]
    slo = {"ttft_ms": 200, "tpot_ms": 120}
    assert round_of(samples, slo=slo).goodput == pytest.approx(2 / 1.6)
    assert round_of(samples, slo={"e2e_ms": 1000}).goodput == pytest.approx(1 / 1.6)
    assert round_of(samples).goodput is None


def test_the_steady_window_leaves_ramp_and_tail_out():
    """Pitfall 8: two clients start late and one request is alone at the end."""
    samples = [
        even(0.0, 0.1, gap=0.1, tokens=50),  # until 5.0
        even(1.0, 1.1, gap=0.1, tokens=50),  # until 6.0
        even(5.0, 5.1, gap=0.1, tokens=100),  # alone from 6.0 on, until 15.0
    ]
    metrics = round_of(samples, concurrency=2, requests=3)
    assert metrics.output_throughput == pytest.approx(200 / 15)
    assert metrics.steady_output_throughput == pytest.approx(20.0, rel=0.02)  # two of 10 tok/s, from 1.0 to 6.0
    assert round_of(samples, concurrency=4, requests=4).steady_output_throughput is None


def test_the_steady_window_counts_chunks_alike_where_tokens_are_not_told():
    sample = even(0.0, 0.1, gap=0.1, tokens=40, per_chunk=2, told=False)
    assert round_of([sample]).steady_output_throughput == pytest.approx(40 / (sample.last_s))


def test_the_steady_window_of_an_open_loop_lies_between_ramp_and_last_due():
    samples = [even(n, n + 0.1, gap=0.1, tokens=10, scheduled_s=float(n)) for n in range(11)]
    metrics = round_of(samples, rate=1.0, ramp=5.0)
    assert metrics.steady_output_throughput == pytest.approx(10.0)
    assert metrics.output_throughput == pytest.approx(10.0)


def test_failed_requests_bring_no_tokens_and_no_time():
    """Pitfall 7."""
    slow_failure = Sample(error="cut", sent_s=-5.0, first_s=0.0, last_s=99.0, output_tokens=500, chunks=500)
    metrics = round_of([ok()] * 199 + [slow_failure])
    assert (metrics.requests, metrics.failed) == (200, 1)
    assert metrics.output_tokens == 199 * 11
    assert metrics.duration_s == pytest.approx(1.1)
    assert metrics.request_throughput == pytest.approx(199 / 1.1)
    assert ("failures", "warn") in [(item.name, item.level) for item in metrics.hygiene]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([], "there were none"),
        ([Sample(error="HTTP 500")], "1 of 1 requests failed: HTTP 500"),
        ([ok()] * 98 + [Sample(error="first"), Sample(error="second")], "2 of 100 requests failed: first"),
        ([Sample(sent_s=0.0, output_tokens=4)], "no request brought any text"),
        ([ok(last=0.1, chunks=1)], "no time between tokens"),
    ],
)
def test_what_makes_no_round(samples, says):
    with pytest.raises(NotMeasurable, match=says):
        round_of(samples)


@pytest.mark.parametrize(
    ("failed", "requests", "too_many"), [(0, 1, False), (1, 16, True), (1, 99, True), (1, 100, False), (2, 100, True)]
)
def test_one_percent_may_fail(failed, requests, too_many):
    assert too_many_failed(failed, requests) is too_many
