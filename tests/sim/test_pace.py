"""The time of a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sim.pace import Pace, accepted, latency_us

TABLE = {4096: 24.0, 14336: 28.0, 57344: 200.0, 131072: 95.0}


@pytest.mark.parametrize(
    ("size", "us"), [(1, 24), (4096, 24), (14336, 28), (35840, 114), (57344, 200), (131072, 95), (262144, 190)]
)
def test_latency_between_and_beyond_known_sizes(size: int, us: float) -> None:
    assert latency_us(TABLE, size) == pytest.approx(us)


def test_one_token_is_always_right() -> None:
    assert accepted(0.0, 3) == 1.0 and accepted(1.0, 3) == 4.0
    assert accepted(0.7165, 3) == pytest.approx(2.6, rel=2e-3)


@given(st.integers(1, 256), st.integers(1, 8))
def test_more_requests_give_more_in_total_and_less_to_each(batch: int, rows: int) -> None:
    pace = Pace(0.008, 0.75, count=122, row_bytes=14336, rows=rows, latency_us={14336: 28.0, 1 << 20: 330.0})
    assert pace.tok_s(batch + 1) < pace.tok_s(batch)
    alone = Pace(1 / 90, 0.75)
    assert (batch + 1) * alone.tok_s(batch + 1) > batch * alone.tok_s(batch)
