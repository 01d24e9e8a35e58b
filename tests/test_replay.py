"""A recording: any position is the fold of its prefix, the playing clock skips idle time and lets one read."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent.replay
from agent.core import events as ev
from agent.core.model import Finding
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.replay import READING_S, DoesNotFit, PlayingClock, Recording, Speeds
from agent.review.marks import MarkKind
from tests.core.conftest import World, playbook, started

VERDICTS: frozenset[MarkKind] = frozenset({"verdict", "dead end"})


def played() -> list[ev.Event]:
    """A session with a keep, a worse parent, a failure, a ruled-out one and one not approved.

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
    return world.events


def session() -> list[ev.Event]:
    """The same with progress."""
    events: list[ev.Event] = []
    for event in PLAYED:
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


PLAYED = played()
EVENTS = session()


def folded(events: Sequence[ev.Event], indices: Collection[int]) -> dict[int, State]:
    """The states at these positions, by a fold of everything up to the last of them."""
    start = events[0]
    assert isinstance(start, ev.SessionStarted)
    state, found = initial(start), {}
    for index in range(max(indices) + 1):
        if index:
            state, _ = reduce(state, events[index])
        if index in indices:
            found[index] = state
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(EVENTS) - 1), min_size=1, max_size=6), st.integers(1, 40))
def test_any_position_is_the_fold_of_the_events_up_to_it(indices: list[int], every: int) -> None:
    wanted = folded(EVENTS, indices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent.replay, "SNAPSHOT_EVERY", every)
        recording = Recording(EVENTS)
        for index in indices:
            assert recording.state_at(index) == wanted[index]


def test_twenty_seeks_in_a_session_with_much_progress() -> None:
    events = with_progress(EVENTS, 5_000)
    recording = Recording(events)
    chance = random.Random(1)
    indices = [chance.randrange(len(events)) for _ in range(20)]
    wanted = folded(events, indices)
    for index in indices:
        assert recording.state_at(index) == wanted[index]


def with_progress(events: list[ev.Event], count: int) -> list[ev.Event]:
    """The events with so much progress between them: of each load, in turns with that of a task that runs beside it."""
    entered = [index for index, event in enumerate(events) if isinstance(event, ev.PhaseEntered)]
    running: dict[str, None] = {}
    found: list[ev.Event] = []
    for index, event in enumerate(events):
        found.append(event)
        if isinstance(event, ev.TaskRequested):
            running[event.task.id] = None
        elif isinstance(event, ev.TaskFinished):
            running.pop(event.task, None)
        elif isinstance(event, ev.PhaseEntered):
            share = count // len(entered) + (index == entered[0]) * (count % len(entered))
            found += list(_progress(event, next(iter(running), None), share))
    return found


def _progress(since: ev.PhaseEntered, task: str | None, count: int) -> Iterator[ev.Event]:
    for n in range(count):
        at = since.at + n / (count + 1)
        if task and n % 3 == 2:
            yield ev.TaskProgressed(at=at, task=task, action=f"reads {n}")
        else:
            yield ev.PhaseProgressed(
                at=at, launch=since.launch, phase=since.phase, done=n, total=count, fraction=n / count, remaining_s=1.0
            )


def test_progress_in_turns_is_passed_by() -> None:
    recording = Recording(with_progress(EVENTS, 3_000))
    ticks = [i for i, event in enumerate(recording.events) if isinstance(event, ev.PhaseProgressed)]
    skipped = [index for index in ticks if recording._rewritten[index] <= recording.last]
    assert len(skipped) > 0.9 * len(ticks)


def test_an_event_that_does_not_fit_is_named() -> None:
    ready = next(event for event in EVENTS if isinstance(event, ev.ServerReady))
    recording = Recording([EVENTS[0], ev.Noted(at=101.0, text="fine"), ready, *EVENTS[1:]])
    assert recording.state_at(1).notes == ("fine",)
    with pytest.raises(DoesNotFit, match="event 3, ServerReady, does not fit") as caught:
        recording.state_at(5)
    assert caught.value.index == 2


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
    clock = PlayingClock(Recording(noted(times)).times, ())
    assert clock.offsets == offsets and clock.whole_s == offsets[-1]


def noted(times: list[float]) -> list[ev.Event]:
    start = started(playbook())
    return [
        replace(start, at=start.at + times[0]),
        *(ev.Noted(at=start.at + second, text="") for second in times[1:]),
    ]


def test_the_clock_meets_the_next_event_at_the_end_of_a_gap() -> None:
    clock = Recording(noted([0.0, 100.0, 101.0])).clock
    assert [clock.time_at(0, offset) for offset in (0.0, 1.0, 2.0)] == [100.0, 150.0, 200.0]
    assert [clock.offset_of(0, time) for time in (100.0, 150.0, 200.0)] == [0.0, 1.0, 2.0]
    assert clock.index_at(1.99) == 0 and clock.index_at(2.0) == 1
    assert clock.time_at(2, 99.0) == 201.0 and clock.offset_of(2, 201.0) == clock.whole_s


def test_there_is_time_to_read_a_decision() -> None:
    clock = PlayingClock([0.0, 1.0, 1.0, 2.0], {1, 2, 3})
    assert clock.offsets == [0.0, 1.0, 1.0 + READING_S, 2.0 + 2 * READING_S]
    assert [clock.is_reading(offset) for offset in (0.5, 1.0, 1.5 + READING_S, 1.5 + 2 * READING_S, clock.whole_s)] == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_loads_and_decisions_have_speeds_of_their_own() -> None:
    clock = PlayingClock([0.0, 2.0, 4.0, 6.0], {1})
    speeds = Speeds(loads=4, decisions=2)
    # Two seconds of waiting at 4x, three of reading at 2x, four of waiting at 4x.
    assert clock.played_on(0.0, 0.25, speeds) == 1.0
    assert clock.played_on(0.0, 0.5, speeds) == 2.0
    assert clock.played_on(0.0, 0.5 + 0.5, speeds) == 3.0
    assert clock.played_on(3.0, 1.0 + 0.25, speeds) == 2.0 + READING_S + 1.0
    assert clock.played_on(0.0, 0.5 + 1.5 + 1.0, speeds) == clock.whole_s == clock.played_on(0.0, 99.0, speeds)


SPEEDS = st.builds(Speeds, loads=st.sampled_from([1, 16, 256]), decisions=st.sampled_from([1, 2, 64]))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=12), SPEEDS, st.floats(0, 20), st.floats(0, 20), st.data())
def test_playing_in_two_goes_is_playing_in_one(
    gaps: list[float], speeds: Speeds, one: float, other: float, data: st.DataObject
) -> None:
    times = [sum(gaps[:count]) for count in range(len(gaps) + 1)]
    clock = PlayingClock(times, data.draw(st.sets(st.integers(0, len(gaps)))))
    start = data.draw(st.floats(0, 1)) * clock.whole_s
    at_once = clock.played_on(start, one + other, speeds)
    assert clock.played_on(clock.played_on(start, one, speeds), other, speeds) == pytest.approx(at_once, abs=1e-6)
    assert start - 1e-9 <= at_once <= clock.whole_s
    slowest, fastest = sorted((speeds.loads, speeds.decisions))
    if at_once < clock.whole_s:
        assert (one + other) * slowest - 1e-6 <= at_once - start <= (one + other) * fastest + 1e-6


@given(st.integers(0, len(EVENTS) - 1), st.floats(0, 1))
def test_a_time_and_its_place_on_the_clock(index: int, share: float) -> None:
    recording = Recording(EVENTS)
    following = recording.times[min(index + 1, recording.last)]
    time = recording.times[index] + share * (following - recording.times[index])
    offset = recording.clock.offset_of(index, time)
    assert recording.clock.time_at(index, offset) == pytest.approx(time)


@pytest.mark.parametrize(("time", "index"), [(0.0, 0), (100.0, 0), (199.9, 0), (200.0, 1), (200.5, 1), (9e9, 2)])
def test_a_position_by_time(time: float, index: int) -> None:
    assert Recording(noted([0.0, 100.0, 101.0])).index_at(time) == index
