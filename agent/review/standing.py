"""How a session stood at a recorded moment: in words, and as JSON-ready values."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.core.needs import needs
from agent.core.state import State
from agent.core.views.background import background_view
from agent.core.views.basics import duration
from agent.core.views.panels import header_view, server_view
from agent.headless import board_lines, head_line
from agent.replay import Recording
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.report.model import Report
from agent.review.marks import DECISIONS, Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A moment of a recording. `time` is in seconds since the epoch, `index` the position there.

    `latest` is the decision before it, number `decided` of `decisions`.
    """

    time: float
    start: float
    end: float
    index: int
    events: int
    latest: Mark | None
    decided: int
    decisions: int
    state: State


def standing_at(recording: Recording, time: float) -> Standing:
    """How it stood at a time within the recording. Raises DoesNotFit."""
    index = recording.index_at(time)
    trail = recording.trail(DECISIONS)
    reached = trail.reached(index)
    return Standing(
        time=time,
        start=recording.times[0],
        end=recording.times[-1],
        index=index,
        events=len(recording.events),
        latest=trail.marks[reached - 1] if reached else None,
        decided=reached,
        decisions=len(trail.marks),
        state=recording.state_at(index),
    )


def standing_lines(standing: Standing) -> Iterator[str]:
    """The board as it stood, and what ran."""
    state, now = standing.state, standing.time
    yield head_line(state)
    elapsed = f"{duration(now - standing.start)} of {duration(standing.end - standing.start)}"
    yield f"{datetime.fromtimestamp(now):%Y-%m-%d %H:%M:%S}, {elapsed}, event {standing.index + 1} of {standing.events}"
    if standing.latest:
        yield f"decision {standing.decided} of {standing.decisions}: {standing.latest.text}"
    yield ""
    yield from board_lines(state)
    yield ""
    if mark := header_view(state, now).mark:
        yield f"session: {mark}"
    yield _server(state, now)
    yield from _background(state, now)
    if waiting := dict.fromkeys(need.experiment for need in needs(state)):
        yield f"needs you: {', '.join(waiting)}"


def moment_json(standing: Standing) -> dict[str, Any]:
    """Which moment it is, as JSON-ready values; times in `_s` are seconds."""
    return {
        "time": datetime.fromtimestamp(standing.time).astimezone().isoformat(timespec="milliseconds"),
        "elapsed_s": standing.time - standing.start,
        "event": standing.index + 1,
        "events": standing.events,
        "decision": standing.latest and standing.latest.text,
        "decision_number": standing.decided or None,
        "decisions": standing.decisions,
    }


def report_at(recording: Recording, standing: Standing) -> Report:
    """The report as it would have been at that moment."""
    state, lane = fold(recording.events[: standing.index + 1], until=standing.time)
    return report_of(state, lane, now=standing.time, live=True)


def _server(state: State, now: float) -> str:
    view = server_view(state, now)
    present = [f"{step.phase} {step.detail}" for step in view.steps if step.stands in ("present", "failed")]
    told = "; ".join(filter(None, (" ".join(view.status.split()), *present, view.note)))
    return f"{view.title}: {told}"


def _background(state: State, now: float) -> Iterator[str]:
    view = background_view(state, now)
    yield view.title
    running = sum(task.status is None for task in state.tasks.values())
    for row in view.rows[:running]:
        yield f"  {row.glyph} {row.kind} {row.experiment}: {row.title}  {row.text}  {row.elapsed}"
