"""Verdicts that are near: what is planned, launched again and said, and what must not be compared."""

from dataclasses import replace
from typing import Any

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.contract import contract_of
from agent.core.legal import IllegalTransition
from agent.core.metrics import Hygiene
from agent.core.model import FlagCheck, LaunchNoise, Verdict
from agent.core.reduce import initial, reduce
from agent.core.relaunch import about
from agent.core.schedule import next_decision
from agent.core.state import Stage, State
from agent.core.verdict import Evidence, counted
from agent.core.views.basics import Place, board
from agent.core.views.details import details
from agent.core.views.lines import line_of
from agent.core.views.numbers import measured_of
from agent.headless import replay
from agent.playbook.model import Playbook
from tests.core.campaigns import BUSY, KINDS, Kind, campaigns
from tests.core.conftest import World, playbook, resumed, started

STILL = LaunchNoise(sd=0.003, degrees=20.0, launches=30)
"""What earlier sessions may say of a host whose launches hardly differ."""


def book(*experiments: dict[str, Any], launches: int = 3, **changes: Any) -> Playbook:
    return playbook({"id": "base"}, *experiments, launches=launches, **changes)


def verdict(state: State, name: str = "idea") -> Verdict:
    found = state.experiments[name].verdict
    assert found is not None
    return found


def planned(world: World) -> list[tuple[str, str, int]]:
    """What was planned: for which experiment, of which flag set, the number of the launch."""
    return [(e.experiment, e.of, e.number) for e in world.events if isinstance(e, ev.LaunchPlanned)]


def test_a_loss_far_outside_the_assumed_noise_needs_one_launch(world: World) -> None:
    world.speeds = {"idea": 50.0}
    state = world.play(book({"id": "idea"}))
    assert (verdict(state).word, world.launched()) == ("worse", ["base", "idea"])
    assert "launch noise assumed 1.5%" in verdict(state).reason


def test_where_rounds_differ_much_one_launch_decides_less(world: World) -> None:
    """A host with other work on it: rounds that differ by 17 %, launches of equal flags by 24 %."""
    world.spread, world.speeds = 0.17, {"same": 76.0, "slow": 32.0, "s-04": 80.0}
    objective = {"workload": "single", "min_gain": "20%"}
    workloads = [{"name": "single", "rounds": 28}]
    state = world.play(book({"id": "same"}, {"id": "slow"}, workloads=workloads, objective=objective))
    assert planned(world)[0] == ("same", "base", 2)
    plan = next(e for e in world.events if isinstance(e, ev.LaunchPlanned))
    assert "launch noise assumed 17.2%, as rounds differ by as much" in plan.parent.reason
    assert (verdict(state, "same").word, verdict(state, "slow").word) == ("no-gain", "worse")


def test_no_gain_is_kept_on_an_assumption(world: World) -> None:
    """Where launches of one flag set differ by 15 %, one of each may differ by as much and mean nothing."""
    world.speeds = {"first": 170.0, "second": 170.0}
    state = world.play(book({"id": "first"}, {"id": "second"}))
    plan = next(e for e in world.events if isinstance(e, ev.LaunchPlanned))
    assert (plan.experiment, plan.of, plan.parent.word) == ("first", "base", "inconclusive")
    assert plan.parent.reason.startswith("likely +69.9%") and "assumed" in plan.parent.reason
    assert {verdict(state, name).word for name in ("first", "second")} == {"keep"}
    assert world.launched() == ["base", "first", "second", "base"], "one more launch serves all, and later sessions"


def test_where_the_noise_is_known_a_gain_far_outside_needs_one_launch(world: World) -> None:
    world.speeds = {"idea": 170.0}
    state = world.play(book({"id": "idea"}), noise=STILL)
    assert (verdict(state).word, world.launched()) == ("keep", ["base", "idea"])


def test_with_earlier_sessions_a_small_effect_needs_one_launch(world: World) -> None:
    world.speeds = {"idea": 104.0}
    state = world.play(book({"id": "idea"}), noise=STILL)
    assert (verdict(state).word, world.launched()) == ("keep", ["base", "idea"])
    assert "launch noise measured 0.3% over 30 launches, 30 of them in earlier sessions" in verdict(state).reason


def test_a_near_verdict_waits_for_planned_launches_and_the_queue_does_not(world: World) -> None:
    world.speeds = {"near": 103.0, "s-05": 102.5}
    state = world.play(book({"id": "near"}, {"id": "far", "args": {"x": "1"}}))
    assert world.launched()[:3] == ["base", "near", "far"], "what was never launched comes first"
    assert world.launched()[3] == "base", "a later launch of the reference serves both, and shows drift"
    assert planned(world)[0] == ("near", "base", 2)
    for event, launch in zip(
        (e for e in world.events if isinstance(e, ev.LaunchRequested)), state.launches.values(), strict=True
    ):
        assert event.launch == launch.id
    assert max(len(counted(state, e)) for e in state.experiments.values()) <= 3
    used = [e.of for e in world.events if isinstance(e, ev.LaunchPlanned)]
    assert set(world.launched()[3:]) <= set(used), "nothing is launched again that was not planned"


def test_what_three_launches_cannot_decide_says_what_another_would_cost(world: World) -> None:
    world.speeds = {"idea": 102.4, "s-03": 98.0, "s-04": 105.0, "s-05": 102.0, "s-06": 99.0}
    state = world.play(book({"id": "idea"}))
    found = verdict(state)
    assert found.word == "inconclusive"
    assert len(state.launches) == 6 and found.gain is not None
    assert f"likely {found.gain:+.1%}" in found.reason
    assert "over 6 launches" in found.reason and " of each " in found.reason
    table = list(measured_of(state, state.experiments["idea"]))
    assert [part.title for part in table] == [f"single · launch {n}" for n in (1, 2, 3)]


def test_with_one_launch_granted_nothing_is_launched_again(world: World) -> None:
    world.speeds = {"idea": 102.5}
    state = world.play(book({"id": "idea"}, launches=1))
    assert world.launched() == ["base", "idea"]
    assert verdict(state).word == "keep" and "noise" not in verdict(state).reason


def at_first_plan(world: World, of: Playbook, **changes: Any) -> State:
    """The state right after the first launch was planned."""
    world.play(of, **changes)
    state = initial(started(of, **changes))
    for event in world.events[1:]:
        state, _ = reduce(state, event)
        if isinstance(event, ev.LaunchPlanned):
            return state
    raise AssertionError("nothing was planned")


def test_the_board_and_the_lines_say_what_is_planned(world: World) -> None:
    world.speeds = {"idea": 103.0}
    state = at_first_plan(world, book({"id": "idea"}))
    row = next(row for row in board(state) if row.experiment == "idea")
    assert (row.place, row.word, row.glyph) == ("RESULTS", "near", "≈")
    assert row.reason == "likely +3.0%, launch 2 of 3 of base is planned, about 63 s"
    event = state.experiments["idea"].planned
    assert event is not None and event.cost_s == 63.0
    page = details(state, "idea", state.now)
    assert (page.word, page.now, page.verdicts) == ("near", row.reason, (event.parent,))
    assert "launch noise assumed 1.5%" in page.verdicts[0].reason
    line = line_of(state, event, state)
    assert line is not None and line.endswith(f"near: {row.reason}")
    lines: list[str] = []
    replay(world.events, lines.append)
    assert any("launch 3, 2 of 3 of these flags" in text for text in lines)


def test_a_reference_that_is_launched_again_stands_under_now_meanwhile(world: World) -> None:
    world.speeds = {"idea": 103.0}
    world.play(book({"id": "idea"}))
    state, places = initial(started(book({"id": "idea"}))), []
    for event in world.events[1:]:
        state, _ = reduce(state, event)
        if len(state.launches) == 3:
            places.append(next(row.place for row in board(state) if row.experiment == "base"))
    first, *_, last = places
    assert (first, last) == ("NOW", "RESULTS") and places.index(Place.RESULTS) > 5


def test_a_person_may_skip_the_further_launches(world: World) -> None:
    world.speeds = {"idea": 103.0}
    state = at_first_plan(world, book({"id": "idea"}))
    state, _ = reduce(state, ev.ExperimentSkipped(at=state.now, experiment="idea"))
    assert verdict(state).word == "inconclusive" and "no further launch is wanted" in verdict(state).reason
    assert state.finished


def test_a_relaunch_that_fails_leaves_the_experiment_measured_and_is_named(world: World) -> None:
    world.speeds = {"idea": 103.0}
    world.fails = {"s-04": "out of memory"}
    state = world.play(book({"id": "idea"}))
    assert state.launches["s-04"].experiment == "idea"
    assert verdict(state).word != "failed" and not state.experiments["idea"].evidence
    assert "launch 2 does not count: out of memory" in verdict(state).reason
    assert len(counted(state, state.experiments["idea"])) == 3, "it uses up one of its launches"


def test_a_reference_whose_relaunch_fails_keeps_its_verdict(world: World) -> None:
    world.speeds = {"idea": 103.0}
    world.fails = {"s-03": "out of memory"}
    state = world.play(book({"id": "idea"}))
    assert state.launches["s-03"].experiment == "base"
    assert verdict(state, "base").word == "keep" and state.ending == "completed"


def test_a_reference_that_moves_is_named(world: World) -> None:
    world.speeds = {"idea": 103.0, "s-03": 85.0}
    state = world.play(book({"id": "idea"}), noise=STILL)
    assert world.launched()[2:3] == []
    world.speeds = {"idea": 101.5, "s-03": 85.0}
    state = world.play(book({"id": "idea"}), noise=replace(STILL, sd=0.008))
    assert state.launches["s-03"].experiment == "base"
    assert "drift? the launches of base differ by" in verdict(state).reason


def test_the_cut_off_launch_of_an_interrupted_session_does_not_count(world: World) -> None:
    world.speeds = {"idea": 103.0}
    state = at_first_plan(world, book({"id": "idea"}))
    inbox: list[ev.Event] = []
    while not (state.current and len(state.launches) == 3 and state.current.rounds):
        event = next_decision(state) or inbox.pop(0)
        state, commands = reduce(state, event)
        inbox += [told for command in commands for told in world.answer(state, command, state.now)]
    state, _ = reduce(state, ev.InterruptRequested(at=state.now, keep=False))
    while not state.ending:
        event = next_decision(state) or ev.ServerStopped(at=state.now, launch="s-03", exit_code=0, left=())
        state, _ = reduce(state, event)
    state, _ = reduce(state, resumed(state))
    decision = next_decision(state)
    assert isinstance(decision, ev.LaunchRequested) and decision.experiment == "base"
    state, _ = reduce(state, decision)
    assert len(counted(state, state.experiments["base"])) == 2


BOOK = book({"id": "near"}, {"id": "fast"}, {"id": "bad"})
SPEEDS = {"near": 103.0, "fast": 160.0, "s-06": 101.0}


def test_cut_after_any_event_it_comes_to_the_same() -> None:
    whole = World(speeds=SPEEDS, fails={"bad": "no"})
    result = whole.play(BOOK)
    assert len(result.launches) > 6
    for cut in range(1, len(whole.events), 3):
        world = World(speeds=SPEEDS, fails={"bad": "no"})
        state = world.play(BOOK, cuts=(cut,))
        assert [e.verdict for e in state.experiments.values()] == [e.verdict for e in result.experiments.values()]
        starts = [command.launch for command in world.done if isinstance(command, do.StartServer)]
        assert len(starts) == len(set(starts)) and len(state.launches) == len(result.launches)


def test_a_void_relaunch_is_launched_anew() -> None:
    voids = [World(speeds=SPEEDS, fails={"bad": "no"}, voids=True) for _ in range(2)]
    result = voids[0].play(BOOK)
    relaunch = [n for n, e in enumerate(voids[0].events, 1) if isinstance(e, ev.LaunchRequested)][4]
    state = voids[1].play(BOOK, cuts=(relaunch,))
    assert any(launch.void for launch in state.launches.values())
    words = [[e.verdict.word for e in s.experiments.values() if e.verdict] for s in (result, state)]
    assert words[0] == words[1]


def test_another_client_version_is_not_compared_and_the_reference_is_launched_again() -> None:
    whole = World(speeds={"idea": 160.0})
    of = book({"id": "idea"})
    whole.play(of)
    cut = next(n for n, e in enumerate(whole.events, 1) if isinstance(e, ev.VerdictReached))

    def upgraded(launches: int) -> State:
        world = World(speeds={"idea": 160.0})
        state, inbox = initial(started(of.model_copy(update={"launches": launches}))), []
        for event in whole.events[1:cut]:
            state, _ = reduce(state, event)
        state, commands = reduce(state, resumed(state, version="1"))
        while not state.ending:
            inbox += [told for command in commands for told in world.answer(state, command, state.now)]
            state, commands = reduce(state, next_decision(state) or inbox.pop(0))
        return state

    once, again = upgraded(1), upgraded(3)
    assert verdict(once).word == "inconclusive" and "not comparable" in verdict(once).reason
    assert verdict(again).word == "keep"
    assert [launch.experiment for launch in again.launches.values()] == ["base", "idea", "base", "base"]


def test_a_contract_is_the_workload_and_the_client() -> None:
    workload = book().workloads[0]
    assert contract_of(workload, "1") == contract_of(workload.model_copy(), "1")
    others = [contract_of(workload, "2"), contract_of(workload.model_copy(update={"input_len": 7}), "1")]
    assert contract_of(workload, "1") not in others


class Spoilt(World):
    """The launch `s-02` has something against it."""

    hygiene: tuple[Hygiene, ...] = ()
    flags: tuple[FlagCheck, ...] = ()

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        events: list[ev.Event] = []
        for event in super().answer(state, command, at):
            if isinstance(event, ev.RoundMeasured) and event.launch == "s-02":
                event = replace(event, metrics=replace(event.metrics, hygiene=self.hygiene))
            if isinstance(event, ev.ServerReady) and event.launch == "s-02":
                event = replace(event, flags=self.flags)
            events.append(event)
        return events


@pytest.mark.parametrize("launches", [1, 3])
def test_numbers_that_hygiene_spoils_are_not_compared(launches: int) -> None:
    world = Spoilt(speeds={"idea": 160.0})
    world.hygiene = (Hygiene(name="client", level="bad", text="the client was the limit"),)
    state = world.play(book({"id": "idea"}, launches=launches))
    assert verdict(state).word == "inconclusive"
    assert verdict(state).reason == "not comparable: the client was the limit"
    assert state.incumbent == "base"


def test_a_relaunch_under_other_flags_does_not_count() -> None:
    world = Spoilt(speeds={"idea": 160.0})
    world.flags = (FlagCheck(flag="tp", requested="8", effective="4", status="contradicted"),)
    state = world.play(book({"id": "idea"}))
    assert verdict(state).word == "invalid" and world.launched() == ["base", "idea"]


def test_a_metric_that_was_not_measured_is_said(world: World) -> None:
    objective = {"workload": "single", "metric": "e2e_p99_ms", "min_gain": "2%"}
    of = book({"id": "idea"}).model_copy(update={"objective": type(book().objective).model_validate(objective)})
    state = world.play(of)
    assert verdict(state).word == "inconclusive" and "e2e_p99_ms" in verdict(state).reason


def test_less_time_is_a_gain() -> None:
    objective = {"workload": "single", "metric": "tpot_ms", "min_gain": "2%"}
    for speed, word, gain in ((160.0, "keep", 0.375), (50.0, "worse", -1.0)):
        state = World(speeds={"idea": speed}).play(
            playbook({"id": "base"}, {"id": "idea"}, launches=3, objective=objective)
        )
        assert verdict(state).word == word and verdict(state).gain == pytest.approx(gain, abs=0.01)


def test_tried_again_by_hand_an_inconclusive_one_gets_one_more_launch(world: World) -> None:
    world.speeds = {"idea": 102.4, "s-03": 98.0, "s-04": 105.0, "s-05": 102.0, "s-06": 99.0}
    state = world.play(book({"id": "idea"}))
    again = replace(state, ending=None, attended=True)
    again, _ = reduce(again, ev.ExperimentRetried(at=again.now, experiment="idea"))
    assert again.experiments["idea"].stage is Stage.TODO
    assert len(counted(again, again.experiments["idea"])) == 3
    kept = World(speeds={"idea": 50.0}).play(book({"id": "idea"}))
    anew, _ = reduce(replace(kept, ending=None), ev.ExperimentRetried(at=kept.now, experiment="idea"))
    assert counted(anew, anew.experiments["idea"]) == []


def test_nothing_that_has_ended_is_launched_again_while_no_verdict_is_near(world: World) -> None:
    state = replace(world.play(book()), ending=None)
    config = state.launches["s-01"].config
    request = ev.LaunchRequested(at=state.now, launch="s-09", experiment="base", purpose="measure", config=config)
    with pytest.raises(IllegalTransition):
        reduce(state, request)


def test_the_noise_of_a_session_is_what_its_relaunches_differed_by(world: World) -> None:
    world.speeds = {"idea": 103.0, "s-03": 102.0}
    state = world.play(book({"id": "idea"}))
    found = Evidence(state).measured_noise()
    assert found is not None and found.launches >= 4 and 0.001 < found.sd < 0.03


def test_durations_in_words() -> None:
    assert (about(42.4), about(660.0)) == ("about 42 s", "about 11 min")


@pytest.mark.parametrize("kind", [*KINDS, BUSY], ids=str)
def test_campaigns_keep_their_promise(kind: Kind) -> None:
    tally = campaigns(10, kind)
    assert tally.false_keeps <= 0.05 and tally.false_losses <= 0.05
    assert kind.launch_sd > 0.015 or tally.missed <= 0.1
    assert sum(tally.launches) < 10 * 21
