"""Strategies: one is given up when all of it has ended without a keep, and only then the next one is tried."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.model import Finding
from agent.core.pivots import Standing
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import State
from agent.core.views.board import board_view
from agent.core.views.lines import line_of
from agent.core.views.strategy import strategies, strategy_lines, strategy_title
from agent.playbook.model import Playbook
from agent.review.marks import marks_of
from tests.core.conftest import World, playbook

CHECK = [{"env": {"name": "X", "not_in": ["1"]}}]
DOOMED = Finding(summary="no such kernel", outcome="fails")
GROUPS = [
    {"id": "ar", "name": "all-reduce replacements", "members": ["a1", "a2"], "then": "ep"},
    {"id": "ep", "name": "expert parallelism", "members": ["e1", "e2"]},
]


def book(groups: Sequence[dict[str, Any]] = GROUPS, **changes: Any) -> Playbook:
    ideas = [{"id": name, "preflight": CHECK} for name in ("a1", "a2", "e1", "e2")]
    return playbook({"id": "base"}, *ideas, groups=groups, **changes)


def pivots(world: World) -> list[tuple[str, str]]:
    return [(event.group, event.to) for event in world.events if isinstance(event, ev.PivotReached)]


def state_before(world: World, kind: type[ev.Event]) -> State:
    first = world.events[0]
    assert isinstance(first, ev.SessionStarted)
    state = initial(first)
    for event in world.events[1:]:
        if isinstance(event, kind):
            return state
        state, _ = reduce(state, event)
    raise AssertionError(kind)


def test_a_strategy_whose_members_are_all_no_use_is_given_up_for_the_next(world: World) -> None:
    world.findings = {"a1/check1": DOOMED}
    world.speeds = {"a2": 50.0, "e1": 120.0}
    state = world.play(book())
    assert pivots(world) == [("ar", "ep")]
    (pivot,) = state.pivots
    assert [(tried.experiment, tried.word) for tried in pivot.trail] == [("a1", "ruled-out"), ("a2", "worse")]
    assert "no such kernel" in pivot.trail[0].reason
    # e2 is of the same strategy as e1: a keep does not end it.
    assert world.launched() == ["base", "a2", "e1", "e2"]
    assert [one.standing for one in strategies(state)] == [Standing.GIVEN_UP, Standing.KEPT]


def test_what_comes_after_a_strategy_that_works_is_not_reached(world: World) -> None:
    world.speeds = {"a1": 120.0, "a2": 50.0}
    state = world.play(book())
    assert pivots(world) == []
    assert world.launched() == ["base", "a1", "a2"]
    reason = "expert parallelism is for where all-reduce replacements does not work, and a1 is keep"
    assert {state.experiments[name].reason for name in ("e1", "e2")} == {reason}
    assert [one.standing for one in strategies(state)] == [Standing.KEPT, Standing.NOT_REACHED]


def test_the_members_wait_until_the_strategy_before_is_given_up_whatever_the_order_of_the_playbook(
    world: World,
) -> None:
    groups = [{"id": "late", "members": ["a1", "a2"]}, {"id": "first", "members": ["e1", "e2"], "then": "late"}]
    world.play(book(groups))
    assert world.launched() == ["base", "e1", "e2", "a1", "a2"]
    assert pivots(world) == [("first", "late"), ("late", "")]


def test_a_strategy_that_nothing_comes_before_does_not_wait(world: World) -> None:
    world.speeds = {"a1": 120.0}
    groups = [{"id": "ar", "members": ["a1"]}, {"id": "ep", "members": ["e1"]}]
    world.play(book(groups))
    assert world.launched() == ["base", "a1", "a2", "e1", "e2"]
    assert pivots(world) == [("ep", "")]


def test_checks_of_a_strategy_that_waits_are_done_ahead(world: World) -> None:
    world.findings = {"e1/check1": DOOMED, "e2/check1": DOOMED}
    state = world.play(book())
    assert pivots(world) == [("ar", "ep"), ("ep", "")]
    ended = [event.experiment for event in world.events if isinstance(event, ev.ExperimentRuledOut)]
    assert ended == ["e1", "e2"]
    assert state.ending == "completed"


def test_a_third_strategy_is_not_reached_where_the_first_works(world: World) -> None:
    groups = [
        {"id": "one", "members": ["a1"], "then": "two"},
        {"id": "two", "members": ["a2"], "then": "three"},
        {"id": "three", "members": ["e1", "e2"]},
    ]
    world.speeds = {"a1": 120.0}
    state = world.play(book(groups))
    assert state.experiments["e1"].reason == "three is for where one does not work, and a1 is keep"


def test_a_condition_on_a_member_that_is_never_tried_ends_too(world: World) -> None:
    ideas = [{"id": "a"}, {"id": "e"}, {"id": "last", "when": {"all": ["e"], "are": ["worse"]}}]
    groups = [{"id": "one", "members": ["a"], "then": "two"}, {"id": "two", "members": ["e"]}]
    world.speeds = {"a": 120.0}
    state = world.play(playbook({"id": "base"}, *ideas, groups=groups))
    assert state.experiments["last"].reason == "e is not-reached, not worse"
    assert state.ending == "completed"


def test_a_person_runs_a_member_that_waits_or_was_not_reached(world: World) -> None:
    world.speeds = {"a1": 120.0}
    state = world.play(book(), attended=True)
    state, _ = reduce(state, ev.ExperimentRetried(at=state.now, experiment="e1"))
    decision = next_decision(state)
    assert isinstance(decision, ev.StopRequested | ev.LaunchRequested)


def test_a_strategy_is_given_up_once(world: World) -> None:
    state = world.play(book())
    assert len(state.pivots) == 2
    with pytest.raises(IllegalTransition):
        reduce(initial_of(world, state.pivots[0]), state.pivots[0])


def initial_of(world: World, pivot: ev.PivotReached) -> State:
    """The state right after a pivot."""
    first = world.events[0]
    assert isinstance(first, ev.SessionStarted)
    state = initial(first)
    for event in world.events[1:]:
        state, _ = reduce(state, event)
        if event is pivot:
            break
    return state


def test_a_line_tells_the_trail_and_where_the_board_moves(world: World) -> None:
    world.findings = {"a1/check1": DOOMED}
    world.speeds = {"a2": 50.0}
    state = world.play(book())
    before = state_before(world, ev.PivotReached)
    line = line_of(before, state.pivots[0], state)
    assert line and line.endswith(
        "all-reduce replacements is given up (a1 ruled-out, a2 worse); next: expert parallelism"
    )
    marks = [mark.text for mark in marks_of(world.events) if mark.kind == "plan" and not mark.experiment]
    assert marks == ["ar is given up, next ep", "ep is given up"]


def test_the_board_says_which_strategy_is_tried_and_what_the_others_wait_for(world: World) -> None:
    world.speeds = {"a2": 50.0}
    state = world.play(book())
    before = state_before(world, ev.PivotReached)
    assert strategy_title(before) == "strategy: all-reduce replacements"
    rows = {row.experiment: row.text for section in board_view(before) for row in section.rows}
    assert rows["e1"] == "fallback of all-reduce replacements"
    assert strategy_title(initial_of(world, state.pivots[0])) == (
        "strategy: expert parallelism, after ✖ all-reduce replacements"
    )
    assert strategy_title(state) == "strategies: ✖ all-reduce replacements, ✖ expert parallelism"
    lines = strategy_lines(state, "a1")
    assert lines[0] == "all-reduce replacements: ✖ given up"
    assert lines[1].startswith("a2 worse: ") and lines[-1] == "where it is given up: expert parallelism"
    assert strategy_lines(state, "base") == ()


IDS = ("x0", "x1", "x2", "x3", "x4", "x5", "x6")


@st.composite
def plans(draw: st.DrawFn) -> tuple[Playbook, World, set[int]]:
    """Acyclic plans: what is based on, waits for or comes after another always stands later in the playbook."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    groups: list[dict[str, Any]] = []
    free = list(IDS)
    for number, size in enumerate(sizes):
        members, free = free[:size], free[size:]
        if members:
            groups.append({"id": f"g{number}", "members": members})
    for group, after in pairwise(groups):
        if draw(st.booleans()):
            group["then"] = after["id"]
    ideas = []
    for number, name in enumerate(IDS):
        idea: dict[str, Any] = {"id": name, "preflight": CHECK}
        if number and draw(st.booleans()):
            idea["based_on"] = draw(st.sampled_from(IDS[:number]))
        if number and draw(st.integers(0, 3)) == 0:
            idea["when"] = {"any": [draw(st.sampled_from(IDS[:number]))], "are": ["worse", "ruled-out"]}
        if draw(st.booleans()):
            idea["removes"] = {"t": draw(st.integers(1, 50))}
        ideas.append(idea)
    world = World(
        speeds={name: draw(st.sampled_from((50.0, 100.0, 130.0))) for name in IDS},
        fails={name: "broken" for name in IDS if draw(st.integers(0, 4)) == 0},
        findings={f"{name}/check1": DOOMED for name in IDS if draw(st.integers(0, 3)) == 0},
    )
    made = playbook({"id": "base"}, *ideas, groups=groups, terms={"t": {"count": 50, "each": "40us"}})
    return made, world, set(draw(st.lists(st.integers(1, 120), max_size=3)))


@settings(max_examples=60, deadline=None)
@given(plans())
def test_every_plan_ends_with_at_most_one_pivot_a_group_also_through_resumes(
    plan: tuple[Playbook, World, set[int]],
) -> None:
    made, world, cuts = plan
    state = world.play(made, cuts=cuts)
    assert state.ending == "completed" and state.finished
    told = [group for group, _ in pivots(world)]
    assert len(told) == len(set(told)) and told == [pivot.group for pivot in state.pivots]
    ended = {name: e.verdict.word for name, e in state.experiments.items() if e.verdict}
    after = {group.then: group for group in made.groups if group.then}
    for group in made.groups:
        kept = any(ended[name] == "keep" for name in group.members)
        assert not (kept and group.id in told)
        if group.id in after and after[group.id].id not in told:
            launched = {launch.experiment for launch in state.launches.values()}
            assert not launched & set(group.members)
