"""The decisions of a recorded session, made again from its facts, and held against those that were recorded."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core import events as ev
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.journal.codec import encode
from agent.review.marks import TICKS

_DECIDED = (
    ev.TaskRequested,
    ev.ExperimentRuledOut,
    ev.ExperimentNotReached,
    ev.ExperimentReopened,
    ev.PivotReached,
    ev.PrepareRequested,
    ev.LaunchRequested,
    ev.RoundRequested,
    ev.RoundSpoilt,
    ev.GuardRequested,
    ev.LaunchPlanned,
    ev.VerdictReached,
    ev.StopRequested,
    ev.SessionEnded,
)
"""Events that come from the scheduler alone. Flags are completed by a person too."""

_CLOSE = 1e-9
"""Relative: what another machine's arithmetic may differ by."""

_LONGEST = 200
"""Characters of a value that is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where today's rules decide otherwise: the position of an event, and how, in words."""

    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """How many decisions were made again and are the same, up to the first difference, if there is one."""

    same: int
    difference: Difference | None = None


def verify(events: Sequence[ev.Event]) -> Verified:
    """Decide again after every event. Raises IllegalTransition where the events do not fit together."""
    start = events[0]
    assert isinstance(start, ev.SessionStarted), "a recording begins with the start of a session"
    state, same = initial(start), 0
    for index, event in enumerate(events[1:], 1):
        # Progress decides nothing. What a resume found undecided was cut off.
        if not isinstance(event, (*TICKS, ev.SessionResumed)):
            decision = next_decision(state)
            if text := _difference(event, decision):
                return Verified(same=same, difference=Difference(index=index, text=text))
            same += decision is not None
        state, _ = reduce(state, event)
    return Verified(same=same)


def _difference(recorded: ev.Event, decided: ev.Event | None) -> str:
    if decided is None:
        undecided = "nothing would be decided there now"
        return f"{_name(recorded)} is recorded, {undecided}" if isinstance(recorded, _DECIDED) else ""
    if recorded == decided:
        return ""
    if type(recorded) is not type(decided):
        return f"{_name(recorded)} is recorded, {_name(decided)} would be decided now"
    apart = next(_apart(encode(recorded)["data"], encode(decided)["data"], ""), None)
    if apart is None:
        return ""
    path, was, is_now = apart
    return f"{_name(recorded)}: {path} is recorded as {was}, it would be {is_now} now"


def _name(event: ev.Event) -> str:
    """`VerdictReached of eagle3`."""
    about = getattr(event, "experiment", None) or getattr(event, "launch", None)
    if isinstance(event, ev.TaskRequested):
        about = event.task.id
    return f"{type(event).__name__} of {about}" if about else type(event).__name__


def _apart(was: Any, is_now: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Where two JSON-ready values differ: the path, and both values in words."""
    if isinstance(was, dict) and isinstance(is_now, dict):
        for key in (*was, *(key for key in is_now if key not in was)):
            yield from _apart(was.get(key), is_now.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(was, list) and isinstance(is_now, list) and len(was) == len(is_now):
        for number, (one, other) in enumerate(zip(was, is_now, strict=True)):
            yield from _apart(one, other, f"{path}[{number}]")
    elif not _equal(was, is_now):
        yield path, _told(was), _told(is_now)


def _equal(was: Any, is_now: Any) -> bool:
    if isinstance(was, float) and isinstance(is_now, float):
        return math.isclose(was, is_now, rel_tol=_CLOSE) or (math.isnan(was) and math.isnan(is_now))
    return bool(was == is_now)


def _told(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
