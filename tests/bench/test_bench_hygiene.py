"""What makes a measurement doubtful, or worth nothing."""

import pytest

from agent.bench.health import Health
from agent.bench.metrics import measured
from agent.bench.sample import Sample
from agent.playbook.workload import Workload

CALM = {"cpu_fraction": 0.1, "loop_lag_p99_ms": 0.5, "host_load_others": 0.1}


def samples(count=40, tokens=128, chunks=128, **changes):
    """Requests as the default workload wants them, one second apart."""
    made = []
    for n in range(count):
        fields = {"sent_s": n, "first_s": n + 0.1, "last_s": n + 0.9, "scheduled_s": n, "prompt_tokens": 512}
        fields |= {name: value(n) if callable(value) else value for name, value in changes.items()}
        made.append(Sample(output_tokens=tokens, chunks=chunks, **fields))
    return made


def found(given, workload=None, refused=(), **health):
    shape = Workload.model_validate({"name": "w", **(workload or {})})
    metrics = measured(given, Health(**(CALM | health)), shape, refused)
    return {item.name: item.level for item in metrics.hygiene}, metrics.not_comparable


def test_a_clean_round_has_nothing_to_say():
    assert found(samples()) == ({}, None)
    assert found(samples(), {"rate": 1.0}) == ({}, None)


@pytest.mark.parametrize(
    ("health", "levels"),
    [
        ({"cpu_fraction": 0.8}, {"client CPU": "warn"}),
        ({"cpu_fraction": 0.95}, {"client CPU": "bad"}),  # pitfall 6
        ({"loop_lag_p99_ms": 20.0}, {"loop lag": "warn"}),
        ({"loop_lag_p99_ms": 1500.0}, {"loop lag": "bad"}),
        ({"host_load_others": 0.95}, {"host load": "warn"}),
        ({"host_load_others": None}, {}),
    ],
)
def test_the_client_and_its_host(health, levels):
    assert found(samples(), **health)[0] == levels


@pytest.mark.parametrize(
    ("changes", "workload", "levels"),
    [
        # pitfall 1: prompts of an earlier round
        ({"cached_tokens": 16}, {}, {"prefix cache": "warn"}),
        ({"cached_tokens": 400}, {}, {"prefix cache": "bad"}),
        ({"cached_tokens": 400}, {"data": "random-tokens"}, {"prefix cache": "bad"}),
        ({"cached_tokens": 100}, {"api": "chat"}, {"prefix cache": "warn"}),  # the template
        ({"cached_tokens": 400}, {"api": "chat"}, {"prefix cache": "bad"}),
        ({"cached_tokens": 400}, {"data": "shared-prefix", "shared_prefix_len": 400}, {}),
        # pitfalls 4 and 10: fewer tokens than asked for
        ({"tokens": 60, "chunks": 60}, {}, {"output length": "warn"}),
        ({"counted": True}, {}, {"usage": "warn"}),
        ({"counted": True, "tokens": 40, "chunks": 40}, {}, {"output length": "warn", "usage": "bad"}),
        ({"counted": True}, {"data": {"file": "x"}}, {"usage": "bad"}),
        # pitfall 9
        ({"prompt_tokens": 600}, {}, {"input length": "warn"}),
        ({"prompt_tokens": 540}, {}, {}),
        ({"prompt_tokens": 9000, "tokens": 7, "chunks": 7}, {"data": {"file": "x"}}, {}),
        # pitfall 12
        ({"chunks": 40}, {"data": "random-tokens"}, {"speculation": "bad"}),
        ({"chunks": 40}, {}, {}),
        # pitfall 5: the client's own queue
        ({"scheduled_s": lambda n: n - 0.02}, {}, {"schedule": "warn"}),
        ({"scheduled_s": lambda n: n - 1.2}, {}, {"schedule": "bad"}),
        ({"scheduled_s": lambda n: n - 1.2}, {"rate": 1.0}, {"schedule": "warn"}),
    ],
)
def test_prompts_answers_and_schedule(changes, workload, levels):
    said, why = found(samples(**changes), workload)
    assert said == levels
    assert (why is not None) == ("bad" in levels.values())


def test_a_field_that_the_server_refuses():
    assert found(samples(), refused=["ignore_eos"])[0] == {"ignore_eos": "warn"}
    assert found(samples(), refused=["continuous_usage_stats"])[0] == {}


def test_the_reasons_why_numbers_are_not_comparable():
    _, why = found(samples(cached_tokens=400), cpu_fraction=0.95)
    assert why == (
        "the client used 95% of its core; 78% of the prompt tokens were in the prefix cache, though all are unique"
    )


def test_a_rate_above_what_the_server_can_do():
    """Pitfall 11: with one request a second and one and a half seconds for each, the queue grows for ever."""
    queued = samples(first_s=lambda n: 1.5 * n + 0.1, last_s=lambda n: 1.5 * n + 1.5, sent_s=float, scheduled_s=float)
    assert found(queued, {"rate": 1.0})[0] == {"saturation": "warn"}
    assert found(queued)[0] == {}  # a closed loop cannot outrun its server
    noisy = samples(first_s=lambda n: n + 0.1 + 0.05 * (n * 7 % 5), last_s=lambda n: n + 2.4 + 0.3 * (n * 11 % 4))
    assert found(noisy, {"rate": 1.0})[0] == {}
    assert found(queued[:10], {"rate": 1.0})[0] == {}  # too few to tell
