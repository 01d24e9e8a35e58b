"""A recording: any position is the fold of its prefix, the playing clock skips idle time, marks lead to moments."""

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent.replay
from agent.core import events as ev
from agent.core.model import Finding, Phase
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.replay import MarkKind, Recording
from tests.core.conftest import World, playbook, started

VERDICTS: tuple[MarkKind, ...] = ("verdict", "dead end")


def session() -> list[ev.Event]:
    """A session with a keep, a worse parent, a failure, a ruled-out one and one not approved, and with progress.

    Its events are a second apart, but for decisions, which have the time of the event they follow.
    """
    world = World(
        speeds={"base": 100.0, "better": 120.0, "slow": 50.0, "child": 60.0},
        fails={"broken": "CUDA out of memory"},
        findings={"dead/check1": Finding(summary="no SM12 entry", outcome="fails")},
    )
    check = {"table-has-key": {"in": "sglang:a.py", "table": "T", "key": "12"}}
    book = playbook(
        {"id": "base"},
        {"id": "better"},
        {"id": "slow"},
        {"id": "child", "based_on": "slow"},
        {"id": "broken"},
        {"id": "dead", "preflight": [check]},
        {"id": "built", "prepare": [{"run": ["make"]}]},
    )
    world.play(book)
    events: list[ev.Event] = []
    for event in world.events:
        events.append(event)
        if isinstance(event, ev.PhaseEntered):
            events += [
                ev.PhaseProgressed(
                    at=event.at + tick / 10, launch=event.launch, phase=event.phase, done=tick, total=9,
                    fraction=tick / 9, remaining_s=9.0 - tick,
                )
                for tick in range(1, 8)
            ]  # fmt: skip
    return events


EVENTS = session()


def folded(events: list[ev.Event], index: int) -> State:
    start = events[0]
    assert isinstance(start, ev.SessionStarted)
    state = initial(start)
    for event in events[1 : index + 1]:
        state, _ = reduce(state, event)
    return state


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(EVENTS) - 1), min_size=1, max_size=6), st.integers(1, 40))
def test_any_position_is_the_fold_of_the_events_up_to_it(indices: list[int], every: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent.replay, "SNAPSHOT_EVERY", every)
        recording = Recording(EVENTS)
        for index in indices:
            assert recording.state_at(index) == folded(EVENTS, index)


def test_twenty_seeks_in_a_long_session() -> None:
    events = long_session(5_000)
    recording = Recording(events)
    chance = random.Random(1)
    for index in [chance.randrange(len(events)) for _ in range(20)]:
        assert recording.state_at(index) == folded(events, index)


def long_session(count: int) -> list[ev.Event]:
    """As many events, nearly all of them the progress of one load, a second apart."""
    begun = next(index for index, event in enumerate(EVENTS) if isinstance(event, ev.PhaseProgressed))
    first, last = EVENTS[begun], EVENTS[-1]
    ticks = [replace(first, at=first.at + n, done=n) for n in range(count)]  # type: ignore[call-arg]
    rest = [replace(event, at=event.at + count) for event in EVENTS[begun + 1 :]]
    assert isinstance(last, ev.SessionEnded)
    return [*EVENTS[:begun], *ticks, *rest]


def test_a_hundred_thousand_events_open_and_seek_quickly() -> None:
    events = long_session(100_000)
    began = time.process_time()
    recording = Recording(events)
    recording.state_at(recording.last)
    assert time.process_time() - began < 2.0
    began = time.process_time()
    recording.state_at(77_777)
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize("index", [-1, len(EVENTS)])
def test_there_is_nothing_before_and_after(index: int) -> None:
    with pytest.raises(IndexError):
        Recording(EVENTS).state_at(index)


@pytest.mark.parametrize("events", [[], EVENTS[1:]])
def test_what_is_no_session_is_refused(events: list[ev.Event]) -> None:
    with pytest.raises(ValueError, match="start of a session"):
        Recording(events)


@pytest.mark.parametrize(
    ("times", "offsets"),
    [
        ([0.0], [0.0]),
        ([0.0, 0.5, 1.5], [0.0, 0.5, 1.5]),
        ([0.0, 2.0, 602.0, 603.0], [0.0, 2.0, 4.0, 5.0]),
        # A clock that was set back while it ran stands still.
        ([0.0, 5.0, 3.0, 6.0], [0.0, 2.0, 2.0, 3.0]),
    ],
)
def test_idle_time_is_short_on_the_playing_clock(times: list[float], offsets: list[float]) -> None:
    recording = Recording(noted(times))
    assert recording.offsets == offsets and recording.playing_s == offsets[-1]


def noted(times: list[float]) -> list[ev.Event]:
    start = started(playbook())
    return [
        replace(start, at=start.at + times[0]),
        *(ev.Noted(at=start.at + second, text="") for second in times[1:]),
    ]


def test_the_clock_meets_the_next_event_at_the_end_of_a_gap() -> None:
    recording = Recording(noted([0.0, 100.0, 101.0]))
    assert [recording.time_played(0, offset) for offset in (0.0, 1.0, 2.0)] == [100.0, 150.0, 200.0]
    assert recording.index_played(1.99) == 0 and recording.index_played(2.0) == 1
    assert recording.time_played(2, 99.0) == 201.0


@pytest.mark.parametrize(("time", "index"), [(0.0, 0), (100.0, 0), (199.9, 0), (200.0, 1), (200.5, 1), (9e9, 2)])
def test_a_position_by_time(time: float, index: int) -> None:
    assert Recording(noted([0.0, 100.0, 101.0])).index_at(time) == index


def test_the_marks_tell_what_happened() -> None:
    recording = Recording(EVENTS)
    told = [(mark.kind, mark.text) for mark in recording.marks]
    assert ("dead end", "dead ruled-out") in told
    assert ("dead end", "broken failed") in told
    assert ("dead end", "child keep") not in told
    # Worse than its parent, but another is based on it: on the board it is a result.
    assert ("verdict", "slow worse") in told
    assert ("verdict", "better keep") in told
    assert ("launch", "base") in told and ("ready", "base") in told
    assert ("phase", f"base {Phase.LOAD_WEIGHTS}") in told
    for mark in recording.marks:
        assert recording.events[mark.index].at == mark.at


def test_marks_forwards_are_the_marks_backwards() -> None:
    recording = Recording(EVENTS)
    there, index = [], 0
    while (mark := recording.next_mark(index, VERDICTS)) is not None:
        there.append(mark)
        index = mark.index
    back, index = [], recording.last
    while (mark := recording.previous_mark(index, VERDICTS)) is not None:
        back.append(mark)
        index = mark.index
    assert there == back[::-1] and len(there) == 6
    assert recording.mark_before(there[0].index, VERDICTS) == there[0]
    assert recording.mark_before(there[0].index - 1, VERDICTS) is None
