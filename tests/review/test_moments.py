"""Times as people write them, in a session from 22:30:20 on one day to 01:10:40 on the next."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.review.moments import NoMoment, moment_of, span_text

START = datetime(2026, 11, 28, 22, 30, 20, 500_000, tzinfo=UTC).timestamp()
END = datetime(2026, 11, 29, 1, 10, 40, tzinfo=UTC).timestamp()
LONG = datetime(2026, 11, 30, 23, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("23:00", "28 23:00:00"),
        ("23:00:05", "28 23:00:05"),
        ("0:15", "29 00:15:00"),
        ("01:10", "29 01:10:00"),
        ("01:10:40", "29 01:10:40"),
        ("2026-11-29 00:15", "29 00:15:00"),
        ("2026-11-29T00:15:01", "29 00:15:01"),
        (" 23:00 ", "28 23:00:00"),
        # The first minute, and the first second, of which the session saw a part.
        ("22:30", "28 22:30:20"),
        ("22:30:20", "28 22:30:20"),
        ("+0", "28 22:30:20"),
        ("+90", "28 22:31:50"),
        ("+1:30", "28 22:31:50"),
        ("+1:10:00", "28 23:40:20"),
        ("0%", "28 22:30:20"),
        ("100 %", "29 01:10:40"),
        # Its length is told as 2:40:20, which is rounded up.
        ("+2:40:20", "29 01:10:40"),
    ],
)
def test_a_time_is_a_moment(text: str, wanted: str) -> None:
    moment = moment_of(text, START, END, UTC)
    assert f"{datetime.fromtimestamp(moment.time, UTC):%d %H:%M:%S}" == wanted
    assert START <= moment.time <= END and moment.note == ""


def test_half_of_it() -> None:
    assert moment_of("50%", START, END).time == (START + END) / 2
    assert moment_of("12.5%", START, END).time == START + (END - START) / 8


@pytest.mark.parametrize(
    "text", ["22:29", "22:30:19", "01:11", "12:00", "2026-11-28 00:15", "2026-11-27 23:00", "+3:00:00", "101%"]
)
def test_a_time_outside_is_told_the_span(text: str) -> None:
    with pytest.raises(NoMoment, match="is not within the session") as caught:
        moment_of(text, START, END, UTC)
    assert caught.value.hint == "it went from 2026-11-28 22:30:20 to 2026-11-29 01:10:40 (2:40:20)"


@pytest.mark.parametrize(
    "text", ["", "noon", "25:00", "12:60", "2026-13-01 10:00", "2026-02-30 10:00", "-5", "14", "1e3%", "+1:2:3:4"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(NoMoment, match="is no time") as caught:
        moment_of(text, START, END, UTC)
    assert "14:32" in caught.value.hint and "50%" in caught.value.hint


def test_a_time_that_came_on_two_days() -> None:
    moment = moment_of("22:45", START, LONG, UTC)
    assert f"{datetime.fromtimestamp(moment.time, UTC):%d %H:%M}" == "28 22:45"
    assert moment.note == "22:45 came on 3 days; this is 2026-11-28, the next is 2026-11-29 22:45"
    assert moment_of("2026-11-29 22:45", START, LONG, UTC).note == ""


def test_the_span_of_a_session_of_one_day() -> None:
    assert span_text(START, START + 60, UTC) == "2026-11-28 22:30:20 to 22:31:20 (1:00)"


def test_the_zone_is_that_of_the_machine_unless_it_is_given() -> None:
    local = datetime.fromtimestamp(START + 60)
    assert moment_of(f"{local:%H:%M:%S}", START, END).time == pytest.approx(START + 59.5)


@given(st.integers(0, int(LONG - START) - 1))
def test_any_second_that_is_written_whole_is_found(second: int) -> None:
    at = datetime.fromtimestamp(START, UTC).replace(microsecond=0) + timedelta(seconds=second)
    moment = moment_of(f"{at:%Y-%m-%d %H:%M:%S}", START, LONG, UTC)
    assert 0 <= moment.time - at.timestamp() < 1


@given(st.text(max_size=20))
def test_any_text_is_a_moment_of_the_session_or_is_refused_in_words(text: str) -> None:
    try:
        assert START <= moment_of(text, START, END, UTC).time <= END
    except NoMoment as error:
        assert str(error) and error.hint
