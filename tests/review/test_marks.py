"""The marks of a recording: what they say, the trails that they make, and what is about one experiment."""

from typing import Any

import pytest

from agent.core import events as ev
from agent.core.model import Failure, Finding, Phase, Task
from agent.playbook.model import Experiment
from agent.replay import Recording
from agent.review.marks import DECISIONS, Mark, Trail, marks_of, positions_about
from tests.core.conftest import World, playbook, started
from tests.test_replay import EVENTS, VERDICTS

RECORDING = Recording(EVENTS)


def test_the_marks_tell_what_happened() -> None:
    told = [(mark.kind, mark.text) for mark in RECORDING.marks]
    assert ("dead end", "dead ruled-out") in told
    assert ("dead end", "broken failed") in told
    assert ("dead end", "child keep") not in told
    # Worse than its parent, but another is based on it: on the board it is a result.
    assert ("verdict", "slow worse") in told
    assert ("verdict", "better keep") in told
    assert ("launch", "base launch 1") in told and ("ready", "base ready") in told
    assert ("phase", f"base {Phase.LOAD_WEIGHTS}") in told
    assert ("phase", f"broken failed in {Phase.LOAD_WEIGHTS}") in told
    assert ("check", "dead preflight fails") in told
    assert ("round", "base single round 1") in told
    assert ("plan", "built not-reached") in told
    for mark in RECORDING.marks:
        assert RECORDING.events[mark.index].at == mark.at


def test_forwards_is_backwards() -> None:
    trail = RECORDING.trail(VERDICTS)
    there, index = [], 0
    while (mark := trail.after(index)) is not None:
        there.append(mark)
        index = mark.index
    back, index = [], RECORDING.last
    while (mark := trail.before(index)) is not None:
        back.append(mark)
        index = mark.index
    assert there == back[::-1] == list(trail.marks) and len(there) == 6
    assert trail.reached(there[0].index) == 1 and trail.reached(there[0].index - 1) == 0
    assert trail.reached(RECORDING.last) == 6


def test_decisions_are_what_the_scheduler_or_a_person_decided() -> None:
    decisions = RECORDING.trail(DECISIONS).marks
    assert {mark.kind for mark in decisions} == {"launch", "verdict", "dead end", "plan"}
    launches = sum(isinstance(event, ev.LaunchRequested) for event in EVENTS)
    assert len(decisions) == launches + 6 + 1


def test_all_that_became_of_one() -> None:
    trail = RECORDING.trail(None, "better")
    assert [mark.word for mark in trail.marks] == [
        "in the playbook",
        "launch 2",
        "load-weights",
        "ready",
        "single round 1",
        "single round 2",
        "single round 3",
        "keep",
    ]
    assert {mark.experiment for mark in trail.marks} == {"better"}
    assert RECORDING.trail(VERDICTS, "better").marks == trail.marks[-1:]
    assert RECORDING.trail(None, "better") is trail, "the screen asks twenty times a second"


def test_what_is_about_one_experiment() -> None:
    about = positions_about(EVENTS, "broken")
    launch = next(e.launch for e in EVENTS if isinstance(e, ev.LaunchRequested) and e.experiment == "broken")
    wanted = {
        n
        for n, e in enumerate(EVENTS)
        if "broken" in (getattr(e, "experiment", ""),) or getattr(e, "launch", "") == launch
    }
    assert about == wanted | {0}
    assert any(isinstance(EVENTS[n], ev.PhaseProgressed) for n in about)
    assert any(isinstance(EVENTS[n], ev.StopRequested) for n in about)


def after(*events: ev.Event) -> list[Mark]:
    """What is told of events that come first in a session of the experiments `a` and `b`."""
    start = started(playbook({"id": "a"}, {"id": "b"}))
    return [mark for mark in marks_of([start, *events]) if mark.index > 0]


WISHES: list[tuple[ev.Event, str]] = [
    (ev.ApprovalGiven(at=1.0, needed="a@1234"), "a approved"),
    (ev.ExperimentAdded(at=1.0, spec=Experiment(id="mine", based_on="a")), "mine added"),
    (ev.ProposalApproved(at=1.0, experiment="a", digest="1"), "a approved"),
    (ev.ExperimentSkipped(at=1.0, experiment="b"), "b skipped"),
    (ev.ExperimentRetried(at=1.0, experiment="b"), "b tried again"),
    (ev.DeadEndReopened(at=1.0, experiment="a", base="b"), "a reopened as a@b"),
    (ev.PauseSet(at=1.0, on=True), "paused"),
    (ev.PauseSet(at=1.0, on=False), "goes on"),
    (ev.InterruptRequested(at=1.0, keep=False), "interrupted"),
    (ev.LaunchAbandoned(at=1.0, launch="unknown"), "ended by hand"),
    (ev.TaskAbandoned(at=1.0, task="unknown"), "task cancelled"),
]


@pytest.mark.parametrize(("event", "text"), WISHES, ids=[type(event).__name__ for event, _ in WISHES])
def test_what_a_person_wanted_is_a_decision(event: ev.Event, text: str) -> None:
    mark = after(event)[0]
    assert (mark.kind, mark.text) == ("wish", text)


def test_every_wish_is_a_decision() -> None:
    for kind in (kind for kind in ev.Event.kinds.values() if issubclass(kind, ev.Wish) and kind is not ev.Wish):
        values: dict[str, Any] = dict.fromkeys(kind.__slots__, "x")
        if "spec" in values:
            values["spec"] = Experiment(id="mine", based_on="a")
        marks = after(kind(at=1.0, **values))
        assert marks and marks[0].kind == "wish" and marks[0].word, kind.__name__


def test_a_dead_end_that_is_tried_again_is_told_of_both() -> None:
    spec = Experiment(id="a@b", based_on="b")
    old, new = after(ev.ExperimentReopened(at=1.0, experiment="a", spec=spec))
    assert (old.kind, old.text) == ("plan", "a reopened as a@b")
    assert (new.kind, new.text) == ("start", "a@b a again")


def test_a_proposal_has_the_name_that_it_has_on_the_board() -> None:
    """Two proposals of one name, and one on top of nothing."""
    world = World(
        findings={
            f"{name}/1": Finding(summary="try it", proposal=Experiment(id="idea", based_on=base))
            for name, base in (("base", "base"), ("other", "base"), ("third", "nowhere"))
        }
    )
    ask = [{"ask": "what next?"}]
    state = world.play(
        playbook({"id": "base", "research": ask}, {"id": "other", "research": ask}, {"id": "third", "research": ask})
    )
    proposed = [mark.experiment for mark in marks_of(world.events) if mark.word == "proposed"]
    assert proposed == ["idea", "idea-2"] and set(proposed) < set(state.experiments)


def test_what_a_load_and_a_step_come_to() -> None:
    config = next(event.config for event in EVENTS if isinstance(event, ev.LaunchRequested))
    task = Task(id="b/1", experiment="b", kind="ask", title="?", entry=None, config=config, needed=False)
    failure = Failure(phase=Phase.KV_CACHE, reason="no", category="oom")
    told = after(
        ev.LaunchRequested(at=1.0, launch="l", experiment="a", purpose="serve", config=config),
        ev.LoadDoubted(at=2.0, launch="l", text="silent"),
        ev.LoadDoubted(at=3.0, launch="l", text=""),
        ev.ServerFailed(at=4.0, launch="l", failure=failure),
        ev.LaunchVoid(at=5.0, launch="l", reason="cut off"),
        ev.RoundFailed(at=6.0, launch="l", workload="w", index=0, reason="no"),
        ev.GuardEnded(at=7.0, launch="l"),
        ev.PrepareRequested(at=8.0, experiment="b", step=0),
        ev.PrepareFinished(at=9.0, experiment="b", step=0, ok=True, summary=""),
        ev.PrepareFinished(at=10.0, experiment="b", step=1, ok=False, summary=""),
        ev.TaskRequested(at=11.0, task=task),
        ev.TaskFinished(at=12.0, task="b/1", status="needs-key", finding=Finding(summary="")),
        ev.TargetLost(at=13.0, reason="gone"),
        ev.ExperimentCompleted(at=14.0, experiment="b", adds={}, task="b/1"),
        ev.PivotReached(at=15.0, group="one", to="two", trail=()),
        ev.PivotReached(at=16.0, group="two", to="", trail=()),
    )
    assert [(mark.kind, mark.text) for mark in told] == [
        ("launch", "a launch 1 to serve"),
        ("doubt", "a suspect"),
        ("doubt", "a goes on"),
        ("phase", "a failed in kv-cache"),
        ("phase", "a nothing was started"),
        ("round", "a w round 1 failed"),
        ("round", "a guard"),
        ("step", "b prepare step 1"),
        ("step", "b prepare step 1 done"),
        ("dead end", "b failed"),
        ("needs", "b needs a key"),
        ("needs", "the target is lost"),
        ("plan", "b completed"),
        ("plan", "one is given up, next two"),
        ("plan", "two is given up"),
    ]


def test_a_verdict_that_waits_for_a_launch() -> None:
    world = World(speeds={"base": 100.0, "near": 102.0})
    world.play(playbook({"id": "base"}, {"id": "near"}, launches=2))
    words = [mark.text for mark in marks_of(world.events) if mark.kind == "plan"]
    assert any(word.startswith("near near: another launch") for word in words), words


def test_an_empty_trail() -> None:
    trail = Trail(())
    assert trail.after(0) is None and trail.before(9) is None and trail.reached(9) == 0


@pytest.mark.parametrize("count", [1, 2, 17, 40, len(EVENTS)])
def test_the_beginning_of_a_session_has_the_same_marks(count: int) -> None:
    assert marks_of(EVENTS[:count]) == tuple(mark for mark in RECORDING.marks if mark.index < count)
