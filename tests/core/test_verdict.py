"""Verdicts by table, and their symmetries."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.core.verdict import compare, gain, interval95
from agent.playbook.model import Objective

OBJECTIVE = Objective.model_validate({"workload": "w", "min_gain": "2%"})


@pytest.mark.parametrize(
    ("candidate", "reference", "word"),
    [
        ([101.0, 101.2, 100.9], [89.5, 89.9, 89.1], "keep"),
        ([54.0, 54.5, 53.8], [89.5, 89.9, 89.1], "worse"),
        ([89.6, 89.4, 89.9], [89.5, 89.9, 89.1], "no-gain"),
        ([95.0, 70.0, 110.0], [89.5, 89.9, 89.1], "inconclusive"),
        ([90.5, 90.6, 90.4], [89.5, 89.6, 89.4], "no-gain"),
        ([120.0], [100.0], "keep"),
    ],
)
def test_words(candidate: list[float], reference: list[float], word: str) -> None:
    assert compare(candidate, reference, OBJECTIVE, "base").word == word


def test_less_is_better_for_times() -> None:
    objective = Objective.model_validate({"workload": "w", "metric": "ttft_ms", "min_gain": "2%"})
    assert compare([50.0, 51.0], [100.0, 101.0], objective, "base").word == "keep"
    assert compare([100.0, 101.0], [50.0, 51.0], objective, "base").word == "worse"


def test_interval_of_three_rounds() -> None:
    # mean 90, sd 1, n 3: 4.303 * 1 / sqrt(3)
    assert interval95([89.0, 90.0, 91.0]) == pytest.approx(2.484, abs=0.001)
    assert interval95([90.0]) == 0.0


rounds = st.lists(st.floats(10, 1000), min_size=2, max_size=6)


@given(rounds, rounds)
def test_the_interval_holds_the_gain(candidate: list[float], reference: list[float]) -> None:
    value, low, high = gain(candidate, reference, lower_is_better=False)
    assert low <= value <= high


@given(rounds, st.floats(0.1, 10))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    other = [v * 1.05 for v in values]
    assume(max(values) > min(values))
    one = gain(other, values, lower_is_better=False)
    two = gain([v * factor for v in other], [v * factor for v in values], lower_is_better=False)
    assert one == pytest.approx(two, rel=1e-6, abs=1e-9)
