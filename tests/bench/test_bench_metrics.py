import pytest

from agent.bench.metrics import NotMeasurable, Sample, round_metrics, too_many_failed


def ok(sent=0.0, first=0.1, last=1.1, tokens=11, chunks=11, **more):
    return Sample(sent_s=sent, first_s=first, last_s=last, output_tokens=tokens, chunks=chunks, **more)


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
    metrics = round_metrics(
        [
            ok(sent=10.0, first=10.1, last=11.1, tokens=11, prompt_tokens=5, cached_tokens=2),
            ok(sent=10.5, first=10.8, last=12.8, tokens=21, prompt_tokens=6),
            ok(sent=11.1, first=11.3, last=14.0, tokens=28, chunks=8, prompt_tokens=7, cached_tokens=3),
        ]
    )
    assert (metrics.requests, metrics.failed) == (3, 0)
    assert (metrics.prompt_tokens, metrics.output_tokens, metrics.cached_tokens) == (18, 60, 5)
    assert metrics.duration_s == pytest.approx(4.0)
    assert metrics.output_throughput == pytest.approx(15.0)
    assert metrics.request_throughput == pytest.approx(0.75)
    assert metrics.ttft_ms == pytest.approx(200.0)
    assert metrics.tpot_ms == pytest.approx(100.0)
    assert metrics.tokens_per_chunk == pytest.approx(2.0)


def test_failed_requests_bring_no_tokens_and_no_time():
    slow_failure = Sample(error="cut", sent_s=-5.0, first_s=0.0, last_s=99.0, output_tokens=500, chunks=500)
    metrics = round_metrics([ok()] * 199 + [slow_failure])
    assert (metrics.requests, metrics.failed) == (200, 1)
    assert metrics.output_tokens == 199 * 11
    assert metrics.duration_s == pytest.approx(1.1)
    assert metrics.request_throughput == pytest.approx(199 / 1.1)


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
        round_metrics(samples)


@pytest.mark.parametrize(
    ("failed", "requests", "too_many"), [(0, 1, False), (1, 16, True), (1, 99, True), (1, 100, False), (2, 100, True)]
)
def test_one_percent_may_fail(failed, requests, too_many):
    assert too_many_failed(failed, requests) is too_many
