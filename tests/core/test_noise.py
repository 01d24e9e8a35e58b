"""Noise between launches: quantiles by table, pooling by hand, and what must not matter."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.model import LaunchNoise
from agent.core.noise import difference, measured_noise, pooled, round_variance, t_quantile

# scipy.stats.t.ppf of scipy 1.17, for the probabilities of the first row.
PROBABILITIES = (0.9, 0.95, 0.975, 0.99, 0.995)
QUANTILES = {
    1: (3.0777, 6.3138, 12.7062, 31.8205, 63.6567),
    2: (1.8856, 2.9200, 4.3027, 6.9646, 9.9248),
    2.5: (1.7303, 2.5582, 3.5747, 5.3531, 7.1637),
    3: (1.6377, 2.3534, 3.1824, 4.5407, 5.8409),
    4: (1.5332, 2.1318, 2.7764, 3.7469, 4.6041),
    5: (1.4759, 2.0150, 2.5706, 3.3649, 4.0321),
    7.3: (1.4089, 1.8829, 2.3451, 2.9639, 3.4510),
    10: (1.3722, 1.8125, 2.2281, 2.7638, 3.1693),
    30: (1.3104, 1.6973, 2.0423, 2.4573, 2.7500),
    1000: (1.2824, 1.6464, 1.9623, 2.3301, 2.5808),
}


@pytest.mark.parametrize("degrees", QUANTILES)
def test_quantiles(degrees: float) -> None:
    found = [t_quantile(probability, degrees) for probability in PROBABILITIES]
    assert found == pytest.approx(QUANTILES[degrees], rel=1e-4)


def test_fewer_than_two_degrees_count_as_one() -> None:
    assert t_quantile(0.975, 1.9) == t_quantile(0.975, 1) > t_quantile(0.975, 2)


def test_the_noise_between_launches_is_pooled_without_what_the_rounds_explain() -> None:
    # Launch means 0 and 2 (squares 2, one degree), then 0, 3 and 3 (squares 6, two degrees): 8 / 3 a launch.
    # Rounds 1 apart: a variance of 0.5, of which half a launch mean has; over all degrees 0.25.
    pairs = [[-0.5, 0.5], [1.5, 2.5]], [[-0.5, 0.5], [2.5, 3.5], [2.5, 3.5]], [[7.0, 8.0]]
    found = measured_noise(pairs)
    assert found is not None
    assert found.sd**2 == pytest.approx(8 / 3 - 0.25)
    assert (found.degrees, found.launches) == (3, 5)
    assert measured_noise([[[1.0, 2.0]]]) is None
    assert round_variance(pairs[1]) == (pytest.approx(0.5), 3)


def test_rounds_that_explain_all_leave_no_noise_between_launches() -> None:
    found = measured_noise([[[0.0, 9.0], [9.0, 0.0]]])
    assert found == LaunchNoise(sd=0.0, degrees=1, launches=2)


def test_what_is_known_better_weighs_more() -> None:
    found = pooled(LaunchNoise(sd=0.02, degrees=1.0), None, LaunchNoise(sd=0.01, degrees=3.0, launches=4))
    assert found.sd == pytest.approx(((0.02**2 + 3 * 0.01**2) / 4) ** 0.5)
    assert (found.degrees, found.launches) == (3.0, 4), "an assumption lends no certainty"


def test_the_error_of_a_difference_by_hand() -> None:
    noise = LaunchNoise(sd=0.02, degrees=5.0)
    found = difference([[0.11, 0.09]], [[0.0], [0.0]], noise)
    # Between: 0.0004 * (1 + 1/2); rounds: 0.0002 / 2 on one side, none known on the other.
    assert found.value == pytest.approx(0.1)
    assert found.error**2 == pytest.approx(0.0006 + 0.0001)
    assert found.degrees == pytest.approx(0.0007**2 / (0.0006**2 / 5 + 0.0001**2 / 1))


launches = st.lists(st.lists(st.floats(50, 200), min_size=1, max_size=4), min_size=1, max_size=4)
NOISE = LaunchNoise(sd=0.015, degrees=4.0)


@given(launches, launches, st.floats(0.1, 10))
def test_the_unit_does_not_matter(ours: list[list[float]], theirs: list[list[float]], factor: float) -> None:
    sides = [[[log(v) for v in rounds] for rounds in side] for side in (ours, theirs)]
    scaled = [[[log(v * factor) for v in rounds] for rounds in side] for side in (ours, theirs)]
    one, two = difference(sides[0], sides[1], NOISE), difference(scaled[0], scaled[1], NOISE)
    assert (one.value, one.error) == pytest.approx((two.value, two.error), rel=1e-6, abs=1e-9)


@given(launches, launches)
def test_another_launch_never_makes_it_less_certain(ours: list[list[float]], theirs: list[list[float]]) -> None:
    now = difference(ours, theirs, NOISE)
    for more in ((1, 0), (0, 1), (1, 1)):
        assert difference(ours, theirs, NOISE, more).error < now.error
