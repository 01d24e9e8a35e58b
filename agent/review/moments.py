"""Moments of a session as people write them: `14:32`, `2026-11-28 14:32:10`, `+1:10:00`, `50%`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from agent.core.views.basics import duration

FORMS = "14:32, 14:32:10, 2026-11-28 14:32, +1:10:00 from its start, or 50%"

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")
_AFTER = re.compile(r"\+(?:(?:(\d+):)?(\d+):)?(\d+)")
_CLOCK = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?")


class NoMoment(ValueError):
    """What was written is no moment of the session. The message says why, `hint` what would be one."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A recorded time in seconds since the epoch. `note` says what else could have been meant; mostly empty."""

    time: float
    note: str = ""


def moment_of(text: str, start: float, end: float, zone: tzinfo | None = None) -> Moment:
    """The moment that a text means in a session from `start` to `end` (seconds since the epoch). Raises NoMoment.

    Times of day are those of `zone`, or of this machine where it is None.
    """
    text = text.strip()
    if share := _SHARE.fullmatch(text):
        time = start + (end - start) * float(share[1]) / 100
    elif after := _AFTER.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in after.groups())
        time = start + 3600 * hours + 60 * minutes + seconds
    elif clock := _CLOCK.fullmatch(text):
        return _by_clock(text, clock, start, end, zone)
    else:
        raise NoMoment(f"{text!r} is no time", f"write {FORMS}")
    # Seconds are shown rounded: the last one is written as it was read.
    if time >= end + 1.0:
        raise _outside(text, start, end, zone)
    return Moment(time=min(time, end))


def span_text(start: float, end: float, zone: tzinfo | None = None) -> str:
    """`2026-11-28 14:02:11 to 16:07:22 (2:05:11)`."""
    first, last = datetime.fromtimestamp(start, zone), datetime.fromtimestamp(end, zone)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} to {until} ({duration(end - start)})"


def _by_clock(text: str, clock: re.Match[str], start: float, end: float, zone: tzinfo | None) -> Moment:
    year, month, day, hour, minute, second = clock.groups()
    first, last = datetime.fromtimestamp(start, zone), datetime.fromtimestamp(end, zone)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    try:
        if year:
            days = [midnight.replace(year=int(year), month=int(month), day=int(day))]
        else:
            days = [midnight + timedelta(days=n) for n in range((last.date() - first.date()).days + 1)]
        days = [day.replace(hour=int(hour), minute=int(minute), second=int(second or 0)) for day in days]
    except ValueError as error:
        raise NoMoment(f"{text!r} is no time: {error}", f"write {FORMS}") from error
    # A time is written with less than is recorded: any part of that second, or minute, will do.
    width = 1.0 if second else 60.0
    found = list(_within(days, width, start, end))
    if not found:
        raise _outside(text, start, end, zone)
    return Moment(time=found[0][1], note=_note(text, found))


def _within(days: list[datetime], width: float, start: float, end: float) -> Iterator[tuple[datetime, float]]:
    for day in days:
        begins = day.timestamp()
        if begins <= end and begins + width > start:
            yield day, max(begins, start)


def _note(text: str, found: list[tuple[datetime, float]]) -> str:
    if len(found) == 1:
        return ""
    first, second = found[0][0], found[1][0]
    return f"{text} came on {len(found)} days; this is {first:%Y-%m-%d}, the next is {second:%Y-%m-%d} {text}"


def _outside(text: str, start: float, end: float, zone: tzinfo | None) -> NoMoment:
    return NoMoment(f"{text} is not within the session", f"it went from {span_text(start, end, zone)}")
