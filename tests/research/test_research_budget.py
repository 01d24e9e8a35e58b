"""Amounts, prices, and the meter of one question."""

import pytest

from agent.core.model import Spent
from agent.diagnostics import UserError
from agent.research.ask import Asker
from agent.research.budget import QUESTION, SESSION, Amount, Meter, Usage, cost_usd, limits

USAGE = Usage(input=1_000_000, to_cache=1_000_000, from_cache=1_000_000, output=1_000_000)


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("claude-sonnet-5-5", 2.0 + 2.5 + 0.2 + 10.0),
        ("claude-sonnet-5-5-20260929", 14.7),
        ("claude-opus-5", 5.0 + 6.25 + 0.5 + 25.0),
        ("claude-opus-5-9", None),
        ("/models/tiny-llama", None),
    ],
)
def test_prices(model: str, cost: float | None) -> None:
    found = cost_usd(model, USAGE)
    assert found is None if cost is None else found == pytest.approx(cost)


def test_the_environment_sets_limits() -> None:
    assert limits({"TUNEBOT_QUESTION_USD": " ", "TUNEBOT_MODEL": "m"}) == (QUESTION, SESSION)
    names = ("CALLS", "BYTES", "TOKENS", "USD", "SECONDS")
    environ = {f"TUNEBOT_QUESTION_{name}": str(number) for number, name in enumerate(names)}
    environ |= {f"TUNEBOT_SESSION_{name}": str(10 + number) for number, name in enumerate(names)}
    asker = Asker.from_env({**environ, "ANTHROPIC_API_KEY": "k", "TUNEBOT_SESSION_USD": "0.25"})
    assert asker is not None
    assert asker.question == Amount(calls=0, read_bytes=1, tokens=2, usd=3.0, seconds=4.0)
    assert asker.session == Amount(calls=10, read_bytes=11, tokens=12, usd=0.25, seconds=14.0)


@pytest.mark.parametrize(
    ("name", "value", "message", "hint"),
    [
        ("QUESTION_USD", "1 $", "TUNEBOT_QUESTION_USD is 1 $, not a number of zero or more", "leave it out for 1.0"),
        ("QUESTION_USD", "-1", "TUNEBOT_QUESTION_USD is -1, not a number of", "leave it out for 1.0"),
        ("SESSION_USD", "nan", "TUNEBOT_SESSION_USD is nan, not a number of", "leave it out for 20.0"),
        ("SESSION_SECONDS", "inf", "TUNEBOT_SESSION_SECONDS is inf, not a number of", "leave it out for 7200.0"),
        ("SESSION_CALLS", "1.5", "TUNEBOT_SESSION_CALLS is 1.5, not a whole number of", "leave it out for 1000"),
        ("QUESTION_BYTES", "4 MB\x1b[2J", "TUNEBOT_QUESTION_BYTES is 4 MB, not", "leave it out for 400000"),
        ("QUESTION_DOLLARS", "1", "the variable TUNEBOT_QUESTION_DOLLARS is not known", "CALLS, BYTES, TOKENS, USD, S"),
    ],
)
def test_a_limit_that_cannot_be_understood_is_said(name: str, value: str, message: str, hint: str) -> None:
    """Also where no question could be asked for lack of a key."""
    with pytest.raises(UserError) as told:
        Asker.from_env({f"TUNEBOT_{name}": value})
    assert str(told.value).startswith(message)
    assert hint in told.value.hint


def test_a_meter_holds_its_own_limit_and_that_of_the_session() -> None:
    limit = Amount(calls=2, read_bytes=100, tokens=1000, usd=1.0, seconds=60)
    others = Amount(read_bytes=950, usd=9.0, seconds=3)
    meter = Meter(
        "claude-sonnet-5-5", limit, Amount(calls=9, read_bytes=1000, tokens=9999, usd=9.5, seconds=10), lambda: others
    )
    assert (meter.bytes_left, meter.seconds_left) == (50, 7)
    assert meter.no_room(Amount(tokens=1000, usd=0.5)) is None
    assert meter.no_room(Amount(tokens=1001)) == "the question's budget of 1000 tokens is used up"
    assert meter.no_room(Amount(usd=0.6)) == "the session's budget of $9.50 is used up"
    meter.add_call(30)
    assert meter.bytes_left == 20
    meter.add_call(0)
    assert meter.bytes_left == 0
    meter.add_turn(Usage(input=100, from_cache=100, output=10), 2.5)
    assert meter.spent == Spent(
        calls=2, read_bytes=30, input_tokens=200, output_tokens=10, cost_usd=pytest.approx(0.00032)
    )
    meter.add_turn(Usage(), 4.5)
    assert meter.no_room(Amount()) == "the session's budget of 10 s is used up"


def test_money_is_not_counted_where_prices_are_not_known() -> None:
    meter = Meter("tiny", Amount(tokens=10**9, seconds=1), Amount(tokens=10**9, seconds=1), Amount)
    meter.add_turn(USAGE, 0.0)
    assert not meter.prices_known
    assert (meter.spent.cost_usd, meter.turns(2, USAGE).usd) == (None, 0.0)
    assert meter.no_room(Amount(usd=0.0)) is None
