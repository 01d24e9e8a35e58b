"""Decisions made again: those of a session that was just played are the same; a changed one is found where it is."""

from dataclasses import replace
from typing import Any

import pytest

from agent.core import events as ev
from agent.review.verify import verify
from tests.core.conftest import World, playbook
from tests.test_replay import PLAYED


def test_a_session_is_decided_as_it_was() -> None:
    found = verify(PLAYED)
    assert found.difference is None
    decided = (ev.LaunchRequested, ev.VerdictReached, ev.TaskRequested, ev.RoundRequested, ev.SessionEnded)
    assert found.same >= sum(isinstance(event, decided) for event in PLAYED) > 20


@pytest.mark.parametrize("count", range(1, len(PLAYED), 7))
def test_a_session_that_was_cut_off_anywhere_is_decided_as_it_was(count: int) -> None:
    assert verify(PLAYED[:count]).difference is None


def test_a_resumed_session_with_relaunches_is_decided_as_it_was() -> None:
    book = playbook({"id": "base"}, {"id": "near"}, {"id": "fast"}, launches=3)
    for cuts in ((), (5, 9, 20), (13, 14, 15)):
        world = World(speeds={"base": 100.0, "near": 102.0, "fast": 150.0})
        world.play(book, cuts=cuts)
        assert verify(world.events).difference is None


def changed(kind: type[ev.Event], **changes: Any) -> list[ev.Event]:
    """The events, the first of a kind with other fields."""
    place = next(index for index, event in enumerate(PLAYED) if isinstance(event, kind))
    return [*PLAYED[:place], replace(PLAYED[place], **changes), *PLAYED[place + 1 :]]


def test_a_field_that_differs_is_named() -> None:
    events = changed(ev.StopRequested, why="for fun")
    found = verify(events).difference
    assert found and found.text == (
        f"StopRequested of {events[found.index].launch}: why is recorded as for fun, "  # type: ignore[attr-defined]
        "it would be better is next now"
    )


def test_a_verdict_that_differs_is_named_by_its_word() -> None:
    verdict = next(event for event in PLAYED if isinstance(event, ev.VerdictReached) and event.experiment == "better")
    place = PLAYED.index(verdict)
    other = replace(verdict, parent=replace(verdict.parent, word="no-gain"))
    found = verify([*PLAYED[:place], other, *PLAYED[place + 1 :]])
    assert found.difference and found.difference.index == place
    assert found.difference.text == (
        "VerdictReached of better: parent.word is recorded as no-gain, it would be keep now"
    )
    assert 0 < found.same < verify(PLAYED).same


def test_the_last_digits_of_another_machine_are_no_difference() -> None:
    verdict = next(event for event in PLAYED if isinstance(event, ev.VerdictReached) and event.parent.gain)
    place, gain = PLAYED.index(verdict), verdict.parent.gain
    assert gain is not None
    for factor, same in ((1 + 1e-13, True), (1 + 1e-6, False)):
        other = replace(verdict, parent=replace(verdict.parent, gain=gain * factor))
        assert (verify([*PLAYED[:place], other]).difference is None) is same


def test_another_event_than_the_decided_one() -> None:
    place = next(index for index, event in enumerate(PLAYED) if isinstance(event, ev.LaunchRequested))
    note = ev.Noted(at=PLAYED[place].at, text="first")
    found = verify([*PLAYED[:place], note, *PLAYED[place:]]).difference
    assert found and found.index == place
    assert found.text == "Noted is recorded, LaunchRequested of base would be decided now"


def test_a_decision_that_nobody_would_make() -> None:
    ready = next(index for index, event in enumerate(PLAYED) if isinstance(event, ev.PhaseEntered))
    launch = PLAYED[ready].launch  # type: ignore[attr-defined]
    stop = ev.StopRequested(at=PLAYED[ready].at, launch=launch, why="a whim")
    found = verify([*PLAYED[: ready + 1], stop]).difference
    assert found and found.index == ready + 1
    assert found.text == f"StopRequested of {launch} is recorded, nothing would be decided there now"
