"""Spoilt rounds: which are repeated, how often, and what is said of them."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core import repeats
from agent.core.metrics import Hygiene, Level
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.core.views.details import details
from agent.core.views.lines import line_of
from agent.core.views.panels import server_view
from agent.journal.codec import decode, encode
from agent.report.record_facts import TOLD
from agent.review.verify import verify
from tests.core.conftest import World, playbook

LAG = Hygiene(name="loop lag", level="bad", text="the client woke up to 1200.0 ms late (p99)")
LOAD = Hygiene(name="host load", level="warn", text="others used 95% of the client's host")
CACHED = Hygiene(name="prefix cache", level="bad", text="25% of the prompt tokens were in the prefix cache")


class Busy(World):
    """The measurements of the launch `of` with these numbers, from 1, have something against them."""

    of = "s-01"
    numbers: Iterable[int] = ()
    hygiene: tuple[Hygiene, ...] = (LAG,)
    count = 0

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        events = super().answer(state, command, at)
        if isinstance(command, do.MeasureRound) and command.launch == self.of:
            self.count += 1
            (event,) = events
            assert isinstance(event, ev.RoundMeasured)
            against = self.hygiene if self.count in self.numbers else ()
            return [replace(event, metrics=replace(event.metrics, hygiene=against))]
        return events

    def told(self, kind: type[ev.Event]) -> list[int]:
        """The rounds, from 1, that events of a kind are about, in the launch `of`."""
        return [e.index + 1 for e in self.events if isinstance(e, kind) and e.launch == self.of]  # type: ignore[attr-defined]


def busy(*numbers: int, of: str = "s-01", hygiene: tuple[Hygiene, ...] = (LAG,)) -> Busy:
    world = Busy(speeds={"idea": 120.0})
    world.of, world.numbers, world.hygiene = of, numbers, hygiene
    return world


@pytest.mark.parametrize(
    ("spoilt", "rounds", "ends_well"),
    [
        ((), [1, 2, 3], True),
        ((3,), [1, 2, 3, 3], True),
        ((1,), [1, 2, 3, 1], True),
        ((1, 3), [1, 2, 3, 1, 3], True),
        ((1, 2, 3), [1, 2, 3, 1, 2, 3], True),
        ((1, 4, 5), [1, 2, 3, 1, 1, 1], True),
        ((1, 4, 5, 6), [1, 2, 3, 1, 1, 1], False),
        (range(1, 7), [1, 2, 3, 1, 2, 3], False),
    ],
)
def test_spoilt_rounds_are_repeated_as_often_as_there_are_rounds(
    spoilt: Iterable[int], rounds: list[int], ends_well: bool
) -> None:
    world = busy(*spoilt)
    state = world.play(playbook({"id": "base"}, {"id": "idea"}))
    assert world.told(ev.RoundRequested) == world.told(ev.RoundMeasured) == rounds
    assert len(world.told(ev.RoundSpoilt)) == len(state.launches["s-01"].spoilt) == len(rounds) - 3
    verdict = state.experiments["idea"].verdict
    assert verdict and verdict.word == ("keep" if ends_well else "inconclusive")
    base = state.experiments["base"].verdict
    assert base and base.reason == ("the baseline" if ends_well else f"not comparable: {LAG.text}")
    seeds = [c.seed for c in world.done if isinstance(c, do.MeasureRound)]
    assert len(seeds) == len(set(seeds)) == len(rounds) + 3
    assert verify(world.events).difference is None


@pytest.mark.parametrize("hygiene", [(CACHED,), (CACHED, LAG), (replace(LAG, level="warn"), LOAD)])
def test_what_would_be_the_same_again_or_is_only_a_warning_is_not_repeated(hygiene: tuple[Hygiene, ...]) -> None:
    world = busy(1, 2, 3, hygiene=hygiene)
    world.play(playbook({"id": "base"}, {"id": "idea"}))
    assert world.told(ev.RoundRequested) == [1, 2, 3] and not world.told(ev.RoundSpoilt)


@pytest.mark.parametrize("name", ["client CPU", "loop lag", "schedule", "host load"])
@pytest.mark.parametrize(("level", "repeated"), [("bad", True), ("warn", False)])
def test_what_may_pass(name: str, level: Level, repeated: bool) -> None:
    world = busy(2, hygiene=(Hygiene(name=name, level=level, text="x"),))
    world.play(playbook({"id": "base"}))
    assert bool(world.told(ev.RoundSpoilt)) is repeated


def test_each_workload_has_its_own_rounds_to_repeat() -> None:
    workloads = [{"name": "single", "rounds": 2}, {"name": "many", "rounds": 1}]
    world = busy(1, 2, 3, 4, 5)
    world.play(playbook({"id": "base"}, workloads=workloads))
    asked = [(e.workload, e.index) for e in world.events if isinstance(e, ev.RoundRequested)]
    assert asked == [("single", 0), ("single", 1), ("single", 0), ("single", 1), ("many", 0), ("many", 0)]


def test_an_experiment_whose_spoilt_round_is_repeated_is_judged_by_the_repetition() -> None:
    world = busy(1, 2, of="s-02")
    state = world.play(playbook({"id": "base"}, {"id": "idea"}))
    verdict = state.experiments["idea"].verdict
    assert verdict and verdict.word == "keep"
    assert [r.index for r in state.launches["s-02"].rounds] == [2, 0, 1]


def test_the_relaunch_of_a_reference_repeats_too() -> None:
    """It has its verdict already, and another's waits for it."""
    world = busy(1, 3, of="s-03")
    state = world.play(playbook({"id": "base"}, {"id": "idea"}, launches=3))
    assert state.launches["s-03"].experiment == "base"
    assert world.told(ev.RoundRequested) == [1, 2, 3, 1, 3]
    assert state.ending == "completed" and not any(
        "not comparable" in e.verdict.reason for e in state.experiments.values() if e.verdict
    )


def test_the_guard_asks_when_all_is_repeated() -> None:
    world = busy(2)
    world.play(playbook({"id": "base"}, guard={"answers": "builtin"}))
    kinds = [type(e) for e in world.events if isinstance(e, ev.RoundSpoilt | ev.RoundMeasured | ev.GuardRequested)]
    assert kinds == [ev.RoundMeasured] * 3 + [ev.RoundSpoilt, ev.RoundMeasured, ev.GuardRequested]


def test_a_cut_anywhere_changes_nothing_of_it() -> None:
    book = playbook({"id": "base"}, {"id": "idea"})
    whole = busy(1, 3)
    expected = {e.id: e.verdict.word for e in whole.play(book).experiments.values() if e.verdict}
    for cut in range(1, len(whole.events)):
        world = busy(1, 3)
        state = world.play(book, cuts={cut})
        assert {e.id: e.verdict.word for e in state.experiments.values() if e.verdict} == expected, cut
        assert len(state.launches["s-01"].spoilt) <= 3
        seeds = [c.seed for c in world.done if isinstance(c, do.MeasureRound)]
        assert len(seeds) == len(set(seeds)), cut


def fold(events: list[ev.Event]) -> State:
    start = events[0]
    assert isinstance(start, ev.SessionStarted)
    state = initial(start)
    for event in events[1:]:
        state, _ = reduce(state, event)
    return state


def test_a_journal_of_a_version_that_repeated_nothing_folds_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy(2)
    with monkeypatch.context() as older:
        older.setattr(repeats, "next_spoilt", lambda state, launch: None)
        state = world.play(playbook({"id": "base"}, {"id": "idea"}))
    assert fold(world.events) == state
    base = state.experiments["base"].verdict
    assert base and base.reason == f"not comparable: {LAG.text}"
    assert [r.index for r in state.launches["s-01"].rounds] == [0, 1, 2]
    told = verify(world.events).difference
    assert told and "RoundSpoilt" in told.text


def test_it_is_told_where_people_look() -> None:
    world = busy(3, hygiene=(LAG, LOAD))
    state = world.play(playbook({"id": "base"}, {"id": "idea"}))
    place = next(n for n, event in enumerate(world.events) if isinstance(event, ev.RoundSpoilt))
    event = world.events[place]
    assert decode(encode(event)) == event
    before, after = fold(world.events[:place]), fold(world.events[: place + 1])
    line = line_of(before, event, after)
    assert line and line.endswith(f"single round 3 spoilt: {LAG.text}; {LOAD.text}; repeated")
    reason = f"{LAG.text}; {LOAD.text}"
    told = TOLD[ev.RoundSpoilt](event, after)
    assert told == {"launch": "s-01", "workload": "single", "round": 3, "reason": reason}

    during = fold(world.events[: place + 2])
    assert details(during, "base", during.now).now == "measuring single round 3 again"
    panel = server_view(during, during.now)
    assert panel.status == "measures single, round 3 again" and panel.tone == "warn"
    assert panel.note == f"! single round 3 was spoilt: {LAG.text}"

    (measured,) = details(state, "base", state.now).measured
    assert [numbers.label for numbers in measured.rounds] == ["round 1", "round 2", "round 3"]
    (doubt,) = measured.doubts
    assert (doubt.word, doubt.text) == ("repeated", f"round 3: {LAG.text}")
