"""Cut off after any event and resumed, a session comes to the same result, and does nothing twice."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import commands as do
from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.model import Finding
from agent.core.plan import approvals_needed
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import LaunchStage, State
from tests.core.conftest import World, playbook, resumed, started

STEP = {"run": ["pip", "install", "x"], "creates": "~/x"}
BOOK = playbook(
    {"id": "base", "research": [{"grep": {"pattern": "x", "in": ["sglang"]}}]},
    {"id": "fast", "preflight": [{"module-importable": {"python": "python3", "module": "x"}}]},
    {"id": "bad"},
    {"id": "wrong"},
    {"id": "other", "prepare": [STEP], "revisit": ["bad"]},
    at_end="serve-best",
    guard={"answers": "builtin"},
)
APPROVED = tuple(needed for spec in BOOK.experiments for needed in approvals_needed(BOOK, spec))


def new_world(**changes: Any) -> World:
    speeds = {"fast": 120.0, "other": 80.0, "wrong": 130.0}
    return World(speeds=speeds, fails={"bad": "out of memory"}, wrong=frozenset({"wrong"}), **changes)


def words(state: State) -> dict[str, str]:
    return {e.id: e.verdict.word if e.verdict else "open" for e in state.experiments.values()}


WHOLE = new_world()
RESULT = WHOLE.play(BOOK, approved=APPROVED)
EVENTS = len(WHOLE.events)


def check(world: World, state: State) -> None:
    assert state.ending == "completed"
    assert words(state) == words(RESULT)
    starts = Counter(command.launch for command in world.done if isinstance(command, do.StartServer))
    assert set(starts.values()) == {1}, "no launch id is started twice"
    for launch in state.launches.values():
        rounds = [(r.workload, r.index) for r in launch.rounds]
        assert len(rounds) == len(set(rounds)), "no round is measured again after it was acknowledged"
    seeds = [command.seed for command in world.done if isinstance(command, do.MeasureRound)]
    assert len(seeds) == len(set(seeds)), "every round has prompts of its own"
    real = [launch for launch in state.launches.values() if not launch.void]
    assert len(real) == len(RESULT.launches)
    measured = [launch.experiment for launch in real if len(launch.rounds) == 3]
    assert len(measured) == len(set(measured)), "no experiment is run twice"


def test_the_session_has_all_that_can_be_cut() -> None:
    assert words(RESULT) == {
        "base": "keep", "fast": "keep", "bad": "failed", "wrong": "invalid", "other": "worse", "bad@other": "keep"
    }  # fmt: skip
    seen = {type(event) for event in WHOLE.events}
    assert {ev.PrepareRequested, ev.TaskRequested, ev.ServerFailed, ev.RoundMeasured, ev.GuardEnded} <= seen


@pytest.mark.parametrize("voids", [False, True])
def test_cut_after_every_event(voids: bool) -> None:
    for cut in range(1, EVENTS):
        world = new_world(voids=voids)
        check(world, world.play(BOOK, cuts=(cut,), approved=APPROVED))


@given(st.sets(st.integers(1, EVENTS), max_size=12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_cut_again_and_again(cuts: set[int], voids: bool) -> None:
    world = new_world(voids=voids)
    check(world, world.play(BOOK, cuts=cuts, approved=APPROVED))


def until(kind: type[ev.Event], **changes: Any) -> State:
    """The state right after the first event of a kind."""
    world = new_world(**changes)
    world.play(BOOK, approved=APPROVED)
    state = initial(started(BOOK, approved=APPROVED))
    for event in world.events[1:]:
        state, _ = reduce(state, event)
        if isinstance(event, kind):
            return state
    raise AssertionError(kind)


def test_a_round_that_was_cut_off_is_discarded_and_gets_new_prompts() -> None:
    state = until(ev.RoundRequested)
    first = next(event for event in WHOLE.events if isinstance(event, ev.RoundRequested))
    state, _ = reduce(state, resumed(state))
    assert state.current and state.current.stage is LaunchStage.READY and state.current.rounds == ()
    while not isinstance(again := next_decision(state), ev.RoundRequested):
        assert again is not None
        state, _ = reduce(state, again)
    assert (again.workload, again.index) == (first.workload, first.index)
    assert again.seed != first.seed


def test_tasks_and_steps_that_were_cut_off_are_asked_for_again() -> None:
    state = until(ev.TaskRequested)
    _, commands = reduce(state, resumed(state))
    assert [c.task.id for c in commands if isinstance(c, do.RunTask)] == [
        name for name, task in state.tasks.items() if task.status is None
    ]
    state = until(ev.PrepareRequested)
    first = next(command for command in WHOLE.done if isinstance(command, do.Prepare))
    _, commands = reduce(state, resumed(state))
    assert [c for c in commands if isinstance(c, do.Prepare)] == [first], "under the same id, so that it runs once"


def test_an_interrupted_session_can_go_on_and_a_complete_one_cannot() -> None:
    state = until(ev.ServerReady)
    state, _ = reduce(state, ev.InterruptRequested(at=state.now, keep=True))
    end = next_decision(state)
    assert isinstance(end, ev.SessionEnded)
    state, _ = reduce(state, end)
    state, commands = reduce(state, resumed(state, approved=("x@1",)))
    assert state.ending is None and not state.interrupted and "x@1" in state.approved
    rejoin = next(command for command in commands if isinstance(command, do.RejoinServer))
    assert rejoin.seen.stage is LaunchStage.READY and rejoin.away_s == 60.0
    with pytest.raises(IllegalTransition):
        reduce(RESULT, resumed(RESULT))


def test_a_lost_target_is_tried_again_and_a_pause_is_over() -> None:
    state = until(ev.LaunchRequested)
    state, _ = reduce(state, ev.PauseSet(at=state.now, on=True))
    state, _ = reduce(state, ev.TargetLost(at=state.now, reason="held by another"))
    end = next_decision(state)
    assert isinstance(end, ev.SessionEnded) and end.ending == "target-lost"
    state, _ = reduce(state, end)
    state, commands = reduce(state, resumed(state))
    assert state.lost is None and not state.paused
    assert any(isinstance(command, do.RejoinServer) for command in commands)


def test_a_failed_finding_is_not_asked_twice() -> None:
    state = until(ev.TaskFinished)
    done = {name for name, task in state.tasks.items() if task.status is not None}
    assert done and all(isinstance(state.tasks[name].finding, Finding) for name in done)
    _, commands = reduce(state, resumed(state))
    assert not done & {c.task.id for c in commands if isinstance(c, do.RunTask)}
