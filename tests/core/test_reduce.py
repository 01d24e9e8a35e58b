"""The reducer: legal moves only, late results harmless, any interleaving safe, the journal a faithful copy."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import commands as do
from agent.core import events as ev
from agent.core.legal import EXPERIMENT_MOVES, IllegalTransition
from agent.core.model import Failure, Finding, Phase
from agent.core.plan import approvals_needed, proposal_digest
from agent.core.reduce import initial, reduce
from agent.core.schedule import missing_approvals, next_decision
from agent.core.state import LaunchStage, Stage, State
from agent.core.verdict import counted
from agent.core.views.lines import line_of
from agent.journal.codec import decode, encode
from agent.playbook.model import AskEntry
from tests.core.conftest import World, metrics, playbook, started

FAILURE = Failure(phase=Phase.SERVING, reason="killed", category="native-crash")


def loading() -> State:
    """A session whose first launch loads."""
    state = initial(started(playbook({"id": "base"}, {"id": "idea"})))
    while (decision := next_decision(state)) is not None:
        state, _ = reduce(state, decision)
    event = ev.LaunchStarted(at=101.0, launch="s-01", pid=1, port=3, argv=())
    return reduce(state, event)[0]


def test_an_illegal_move_names_the_events_that_led_to_it() -> None:
    state = loading()
    with pytest.raises(IllegalTransition, match=r"VerdictReached is not possible for idea.*it saw: nothing"):
        reduce(state, ev.VerdictReached(at=1.0, experiment="idea", parent=None, incumbent=None))  # type: ignore[arg-type]
    with pytest.raises(IllegalTransition, match=r"it saw: LaunchRequested > LaunchStarted"):
        reduce(state, ev.ExperimentNotReached(at=1.0, experiment="base", reason=""))


@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("kind", EXPERIMENT_MOVES, ids=lambda kind: kind.__name__)
def test_the_table_of_experiment_moves_is_kept(kind: type[ev.Event], stage: Stage) -> None:
    state = loading().with_experiment("idea", stage=stage, launches=("s-01",))
    reason = {"reason": "r"} if kind in (ev.ExperimentRuledOut, ev.ExperimentNotReached) else {}
    more: dict[type[ev.Event], dict[str, Any]] = {
        ev.ExperimentRuledOut: {"task": "t", "evidence": ()},
        ev.ExperimentCompleted: {"adds": {}, "task": "t"},
        ev.DeadEndReopened: {"base": "base"},
        ev.ExperimentReopened: {"spec": state.experiments["idea"].spec.model_copy(update={"id": "again"})},
        ev.PrepareRequested: {"step": 0},
        ev.PrepareFinished: {"step": 0, "ok": True, "summary": ""},
        ev.LaunchPlanned: {"of": "base", "number": 2, "cost_s": 600.0, "parent": _verdict(), "incumbent": _verdict()},
        ev.VerdictReached: {"parent": _verdict(), "incumbent": _verdict()},
        ev.ProposalApproved: {"digest": proposal_digest(state, "idea")},
        ev.ResearchAdded: {"entry": AskEntry.model_validate({"ask": "what is it?"})},
    }
    make: Any = kind
    event = make(at=200.0, experiment="idea", **more.get(kind, {}), **reason)
    if kind is ev.ExperimentRetried:
        state = state.with_experiment("idea", parent=replace(_verdict(), word="failed"))
    if kind is ev.PrepareRequested:
        spec = state.experiments["idea"].spec.model_validate({"id": "idea", "prepare": [{"run": ["x"]}]})
        state = state.with_experiment("idea", spec=spec)
    if stage in EXPERIMENT_MOVES[kind]:
        reduce(state, event)
    else:
        with pytest.raises(IllegalTransition):
            reduce(state, event)


def _verdict() -> Any:
    from agent.core.model import Verdict

    return Verdict(word="keep", against="base", reason="")


@pytest.mark.parametrize("stage", [LaunchStage.FAILED, LaunchStage.STOPPING, LaunchStage.STOPPED])
def test_late_results_of_a_launch_that_is_over_change_nothing(stage: LaunchStage) -> None:
    state = loading().with_launch("s-01", stage=stage)
    late: list[ev.Event] = [
        ev.PhaseEntered(at=200.0, launch="s-01", phase=Phase.COMPILE, remaining_s=None),
        ev.ServerReady(at=200.0, launch="s-01", load_s=1.0, flags=()),
        ev.ServerFailed(at=200.0, launch="s-01", failure=FAILURE),
        ev.RoundMeasured(at=200.0, launch="s-01", workload="single", index=0, metrics=metrics(5.0)),
    ]
    for event in late:
        after, commands = reduce(state, event)
        assert after.launches == state.launches and not commands


def test_time_never_goes_back() -> None:
    state = loading()
    after, _ = reduce(state, ev.Noted(at=3.0, text="the clock was set back"))
    assert after.now == state.now


def test_out_of_reach_is_a_state_with_a_clock_that_ends_nothing() -> None:
    state = loading()
    away, commands = reduce(state, ev.LinkLost(at=110.0, reason="no route"))
    still, _ = reduce(away, ev.LinkLost(at=120.0, reason="no answer"))
    assert (away.unreachable_since, still.unreachable_since, commands) == (110.0, 110.0, ())
    assert still.launches == state.launches and next_decision(still) == next_decision(state)
    told = ev.LinkRestored(at=185.0)
    back, _ = reduce(still, told)
    assert back.unreachable_since is None
    line = line_of(still, told, back)
    assert line and "reached again, after 1:15" in line


class Shuffled(World):
    """Answers commands in any order, drops launches dead at any point; a person meddles, and may interrupt."""

    def play_randomly(self, book: Any, data: st.DataObject) -> State:
        attended = data.draw(st.booleans())
        needed = tuple(n for e in book.experiments for n in approvals_needed(book, e))
        start = started(book, approved=() if attended else needed, attended=attended)
        state, self.events = initial(start), [start]
        inbox: list[list[ev.Event]] = []
        interrupt_at = data.draw(st.one_of(st.none(), st.integers(0, 60)))
        for step in range(3_000):
            event = next_decision(state)
            if event is None:
                if state.ending:
                    return state
                action = self._meddle(state, data) if attended and step < 200 else None
                if action is not None:
                    event = action
                elif step == interrupt_at or not inbox:
                    event = ev.InterruptRequested(at=state.now, keep=data.draw(st.booleans()))
                else:
                    event = self._pick(state, inbox, data)
            self.events.append(event)
            state, commands = reduce(state, event)
            check_invariants(state)
            for command in commands:
                inbox += [self._answers(state, command, data)]
        raise AssertionError("the session does not end")

    def _meddle(self, state: State, data: st.DataObject) -> ev.Event | None:
        """What a person at the screen might do; only what the screen offers."""
        at, some = state.now, data.draw(st.sampled_from(sorted(state.experiments)))
        experiment = state.experiments[some]
        running = [t.task.id for t in state.tasks.values() if t.status is None]
        match data.draw(st.integers(0, 25)):
            case 0 if experiment.stage in (Stage.TODO, Stage.NEAR):
                return ev.ExperimentSkipped(at=at, experiment=some)
            case 1 if experiment.stage is Stage.ENDED and experiment.verdict and experiment.verdict.word != "keep":
                return ev.ExperimentRetried(at=at, experiment=some)
            case 2 if len(state.experiments) < 9:
                spec = experiment.spec.model_validate({"id": f"new{len(state.experiments)}", "based_on": some})
                return ev.ExperimentAdded(at=at, spec=spec)
            case 3 if state.current:
                return ev.LaunchAbandoned(at=at, launch=state.current.id)
            case 4:
                entry = AskEntry.model_validate({"ask": "what is it?"})
                return ev.ResearchAdded(at=at, experiment=some, entry=entry)
            case 5 if running:
                return ev.TaskAbandoned(at=at, task=running[0])
            case 6 | 7:
                return ev.PauseSet(at=at, on=not state.paused)
            case 8 if missing := missing_approvals(state, experiment.spec):
                return ev.ApprovalGiven(at=at, needed=missing[0])
            case _:
                return None

    def _pick(self, state: State, inbox: list[list[ev.Event]], data: st.DataObject) -> ev.Event:
        current = state.current
        mortal = current and current.stage in (LaunchStage.LOADING, LaunchStage.READY, LaunchStage.MEASURING)
        if current and mortal and data.draw(st.integers(0, 15)) == 0:
            return ev.ServerFailed(at=state.now, launch=current.id, failure=FAILURE)
        index = data.draw(st.integers(0, len(inbox) - 1))
        event = inbox[index].pop(0)
        if not inbox[index]:
            del inbox[index]
        return event

    def _answers(self, state: State, command: do.Command, data: st.DataObject) -> list[ev.Event]:
        if isinstance(command, do.MeasureRound):
            self.speeds = {state.launches[command.launch].experiment: data.draw(st.sampled_from([50.0, 100.0, 150.0]))}
        if isinstance(command, do.RunTask) and command.task.kind == "preflight":
            outcome: Any = data.draw(st.sampled_from(["fails", "no-effect", "fine", "unknown"]))
            self.findings = {command.task.id: Finding(summary="s", outcome=outcome)}
        if isinstance(command, do.StartServer):
            fails = data.draw(st.integers(0, 3)) == 0
            self.fails = {state.launches[command.launch].experiment: "it broke"} if fails else {}
        return self.answer(state, command, state.now + 1) or [ev.Noted(at=state.now, text="done")]


def check_invariants(state: State) -> None:
    """What must hold after every event."""
    assert sum(launch.is_up for launch in state.launches.values()) <= 1, "one server at a time"
    running = [e for e in state.experiments.values() if e.stage in (Stage.RUNNING, Stage.PREPARING)]
    assert len(running) <= 1
    for experiment in state.experiments.values():
        assert (experiment.stage is Stage.ENDED) == (experiment.verdict is not None)
        if experiment.verdict and experiment.verdict.word in ("ruled-out", "not-reached") and not experiment.overruled:
            assert not experiment.launches, "its load was not paid"
        if experiment.stage is Stage.NEAR:
            assert experiment.planned and counted(state, experiment), "it was measured, and a launch is planned"
    if state.incumbent:
        best = state.experiments[state.incumbent]
        assert best.incumbent and best.incumbent.word == "keep"
    for launch in state.launches.values():
        rounds = [(r.workload, r.index) for r in launch.rounds]
        assert len(rounds) == len(set(rounds)), "no round is measured twice"


def book_for_chaos(launches: int) -> Any:
    check = [{"env": {"name": "X", "not_in": ["1"]}}]
    grep = [{"grep": {"pattern": "x", "in": ["s:a.py"]}}]
    return playbook(
        {"id": "base"},
        {"id": "a", "preflight": check, "research": grep},
        {"id": "b", "based_on": "a", "research": grep * 2},
        {"id": "c", "when": {"any": ["a", "b"], "are": ["worse", "failed", "ruled-out", "not-reached"]}},
        {"id": "d", "prepare": [{"run": ["x"]}, {"run": ["y"]}], "revisit": ["a", "b"]},
        at_end="serve-best",
        launches=launches,
    )


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_order_of_events_keeps_the_invariants(data: st.DataObject) -> None:
    shuffled = Shuffled()
    state = shuffled.play_randomly(book_for_chaos(data.draw(st.sampled_from([1, 3]))), data)
    assert state.ending in ("completed", "interrupted")
    if state.ending == "completed":
        assert state.finished
    first, *rest = [decode(json.loads(json.dumps(encode(event)))) for event in shuffled.events]
    assert isinstance(first, ev.SessionStarted)
    folded = initial(first)
    for event in rest:
        folded, _ = reduce(folded, event)
    assert folded == state, "folding the journal gives the live state"


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_decisions_can_be_computed_again_from_the_journal(data: st.DataObject) -> None:
    shuffled = Shuffled()
    shuffled.play_randomly(book_for_chaos(data.draw(st.sampled_from([1, 3]))), data)
    state = initial(shuffled.events[0])  # type: ignore[arg-type]
    decisions = 0
    for event in shuffled.events[1:]:
        again = next_decision(state)
        if again is not None:
            assert again == event
            decisions += 1
        state, _ = reduce(state, event)
    assert decisions


def test_nothing_happens_after_the_end() -> None:
    state = replace(loading(), ending="completed")
    with pytest.raises(IllegalTransition):
        reduce(state, ev.Noted(at=1.0, text="late"))
