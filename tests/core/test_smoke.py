"""Smoke loads by tables: when one is launched, what it runs, what follows, and what a cut changes."""

from typing import Any

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Finding, Phase
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.smoke import is_wanted, smoke_config
from agent.core.state import State
from agent.core.verdict import counted
from agent.core.views.basics import board
from agent.core.views.board import board_view
from agent.core.views.details import details
from agent.core.views.lines import line_of
from agent.core.views.panels import server_view
from agent.core.views.usual import usual_of
from agent.playbook.model import Playbook
from agent.review.marks import marks_of
from tests.core.conftest import World, playbook, resumed, started

READ = {"read": {"in": "s:server_args.py", "around": "a2a"}}


def launches(world: World) -> list[tuple[str, str]]:
    return [(e.experiment, e.purpose) for e in world.events if isinstance(e, ev.LaunchRequested)]


def requested(world: World) -> list[ev.LaunchRequested]:
    return [e for e in world.events if isinstance(e, ev.LaunchRequested)]


def smoke(*names: str) -> list[tuple[str, str]]:
    return [(name, purpose) for name in names for purpose in ("smoke", "measure")]


def two(**changes: Any) -> Playbook:
    return playbook({"id": "base"}, {"id": "idea"}, **{"smoke": "dummy", **changes})


@pytest.mark.parametrize(
    ("experiments", "top", "wanted"),
    [
        ([{"id": "base"}, {"id": "idea"}], "dummy", smoke("base", "idea")),
        ([{"id": "base"}, {"id": "idea"}], False, [("base", "measure"), ("idea", "measure")]),
        ([{"id": "base", "smoke": False}, {"id": "idea"}], "dummy", [("base", "measure"), *smoke("idea")]),
        ([{"id": "base"}, {"id": "idea", "smoke": "dummy"}], False, [("base", "measure"), *smoke("idea")]),
        # Only the experiment that says so: it is no flag that its children inherit.
        ([{"id": "base", "smoke": "dummy"}, {"id": "idea"}], False, [*smoke("base"), ("idea", "measure")]),
        # Its own weights are dummy ones already: it would be the same load twice.
        ([{"id": "base"}, {"id": "idea", "args": {"load-format": "dummy"}}], "dummy",
         [*smoke("base"), ("idea", "measure")]),
        # Read by their formats alone: a smoke load would fail, and the real one need not.
        ([{"id": "base", "args": {"model-path": "~/models/m.Q4_K_M.gguf"}},
          {"id": "idea", "args": {"model-path": "s3://models/m"}},
          {"id": "plain", "args": {"model-path": "~/models/gguf"}}], "dummy",
         [("base", "measure"), ("idea", "measure"), *smoke("plain")]),
    ],
)  # fmt: skip
def test_which_experiments_have_one(
    world: World, experiments: list[dict[str, Any]], top: object, wanted: list[tuple[str, str]]
) -> None:
    state = world.play(playbook(*experiments, smoke=top))
    assert launches(world) == wanted
    assert state.ending == "completed" and state.experiments["base"].verdict is not None
    assert [len(launch.rounds) for launch in state.launches.values()] == [
        0 if purpose == "smoke" else 3 for _, purpose in wanted
    ]


def test_a_kind_without_dummy_weights_has_none(world: World) -> None:
    server = {"kind": "llamacpp", "command": ["llama-server"]}
    world.play(two(server=server))
    assert launches(world) == [("base", "measure"), ("idea", "measure")]


@pytest.mark.parametrize(
    ("kind", "args", "left"),
    [
        ("sglang", {"tp": "8"}, {"tp": "8", "load-format": "dummy"}),
        ("sglang", {"load-format": "fastsafetensors", "tp": "8"}, {"tp": "8", "load-format": "dummy"}),
        ("sglang", {"model-loader-extra-config": "{}", "speculative-draft-load-format": "auto",
                    "weight-cache-mode": "client"}, {"load-format": "dummy"}),
        ("vllm", {"model-loader-extra-config.pattern": "x", "model-loader-extra-config": "{}", "model": "m"},
         {"model": "m", "load-format": "dummy"}),
    ],
)  # fmt: skip
def test_what_it_runs(world: World, kind: str, args: dict[str, str], left: dict[str, str]) -> None:
    world.play(two(server={"kind": kind, "command": ["serve"], "args": args}))
    first, real = requested(world)[:2]
    assert first.config.args == left and real.config.args == args
    assert smoke_config(real.config) == first.config
    starts = [command.config for command in world.done if isinstance(command, do.StartServer)]
    assert starts[:2] == [first.config, real.config]


def test_one_that_does_not_start_ends_the_experiment_and_says_so(world: World) -> None:
    world.fails = {"s-03": "CUDA out of memory"}
    state = world.play(two())
    assert launches(world) == [*smoke("base"), ("idea", "smoke")]
    idea = state.experiments["idea"]
    assert idea.verdict and idea.verdict.word == "failed" and idea.verdict.against == "base"
    assert idea.reason == "in the smoke load: CUDA out of memory"
    assert next(row.word for row in board(state) if row.experiment == "idea") == "failed"
    told = details(state, "idea", state.now)
    assert not told.started and "dummy" not in told.command, "the command of the experiment, not of its smoke load"
    assert told.dead_end and told.dead_end.reason == idea.reason
    assert idea.scope["flags"] == state.experiments["base"].scope["flags"]


def test_the_baseline_is_no_exception(world: World) -> None:
    world.fails = {"s-01": "no kernel image"}
    state = world.play(two())
    assert launches(world) == [("base", "smoke")]
    words = {e.id: e.verdict.word for e in state.experiments.values() if e.verdict}
    assert words == {"base": "failed", "idea": "not-reached"}
    assert state.incumbent is None and state.ending == "completed"


def ended_in_smoke() -> State:
    """A person looks on, and the smoke load of `idea` has failed."""
    world = World(fails={"s-03": "out of memory"})
    state = world.play(two(), attended=True)
    assert state.experiments["idea"].verdict and state.ending is None
    return state


def test_tried_again_by_hand_it_is_loaded_for_real() -> None:
    state, _ = reduce(ended_in_smoke(), ev.ExperimentRetried(at=500.0, experiment="idea"))
    assert state.current is None
    decision = next_decision(state)
    assert isinstance(decision, ev.LaunchRequested) and decision.purpose == "measure"
    assert "load-format" not in decision.config.args
    again, _ = reduce(state, decision)
    assert [launch.purpose for launch in counted(again, again.experiments["idea"])] == ["measure"]


def test_what_was_never_launched_has_one_when_a_person_overrules_its_check(world: World) -> None:
    check = [{"env": {"name": "X", "not_in": ["1"]}}]
    world.findings = {"idea/check1": Finding(summary="would not start", outcome="fails")}
    book = playbook({"id": "base"}, {"id": "idea", "preflight": check}, smoke="dummy")
    state = world.play(book, attended=True)
    state, _ = reduce(state, ev.ExperimentRetried(at=state.now, experiment="idea"))
    assert is_wanted(state, state.experiments["idea"])


def test_flags_that_are_added_after_it_have_one_of_their_own() -> None:
    """It got ready without the flag that a finding demands, so it said nothing of that."""
    world = World()
    state = initial(started(two()))
    while not any(launch.load_s is not None for launch in state.launches.values()):
        state = step(world, state)
    while state.current is not None:
        state = step(world, state)
    assert not is_wanted(state, state.experiments["base"])
    more = ev.ExperimentCompleted(at=state.now, experiment="base", adds={"ep": "2"}, task="t")
    state, _ = reduce(state, more)
    assert is_wanted(state, state.experiments["base"])


def step(world: World, state: State) -> State:
    """One decision, and all that the world answers to it."""
    decision = next_decision(state)
    assert decision is not None
    after, commands = reduce(state, decision)
    for command in commands:
        for event in world.answer(after, command, after.now):
            after, _ = reduce(after, event)
    return after


def test_further_launches_of_the_same_flags_have_none(world: World) -> None:
    world.speeds = {"idea": 103.0}
    state = world.play(two(launches=3))
    assert [purpose for _, purpose in launches(world)].count("smoke") == 2
    assert len(launches(world)) > 4, "it took more than one launch to decide"
    assert "s-01" not in {launch.id for e in state.experiments.values() for launch in counted(state, e)}
    assert next(e.number for e in world.events if isinstance(e, ev.LaunchPlanned)) == 2


BOOK = playbook(
    {"id": "base"}, {"id": "fast"}, {"id": "bad"}, {"id": "plain", "smoke": False}, smoke="dummy", at_end="serve-best"
)
WHOLE = World(speeds={"fast": 120.0}, fails={"bad": "out of memory"})
RESULT = WHOLE.play(BOOK)


@pytest.mark.parametrize("voids", [False, True])
def test_cut_after_every_event_no_smoke_load_is_paid_twice(voids: bool) -> None:
    for cut in range(1, len(WHOLE.events)):
        world = World(speeds={"fast": 120.0}, fails={"bad": "out of memory"}, voids=voids)
        state = world.play(BOOK, cuts=(cut,))
        real = [(launch.experiment, launch.purpose) for launch in state.launches.values() if not launch.void]
        assert real == launches(WHOLE), f"cut after event {cut}"
        assert {e.id: e.reason for e in state.experiments.values()} == {
            e.id: e.reason for e in RESULT.experiments.values()
        }


def test_a_smoke_load_is_rejoined_as_what_it_is() -> None:
    state = initial(started(two()))
    decision = next_decision(state)
    assert isinstance(decision, ev.LaunchRequested)
    state, _ = reduce(state, decision)
    _, commands = reduce(state, resumed(state))
    rejoin = next(command for command in commands if isinstance(command, do.RejoinServer))
    assert rejoin.config == decision.config and rejoin.config.args["load-format"] == "dummy"


def told(world: World) -> str:
    state, lines = initial(world.events[0]), []  # type: ignore[arg-type]
    for event in world.events[1:]:
        before, (state, _) = state, reduce(state, event)
        lines.append(line_of(before, event, state) or "")
    return "\n".join(lines)


def test_the_lines_and_the_marks_say_which_load_it_is(world: World) -> None:
    world.fails = {"s-03": "out of memory"}
    world.play(two())
    text = told(world)
    for line in (
        "launch 1: smoke load, with dummy weights",
        "loading: smoke load, load-weights",
        "smoke load ready after 1:00",
        "stopping the server: the smoke load got ready, the real one is next",
        "loading: load-weights",
        "smoke load failed in load-weights: out of memory",
    ):
        assert line in text
    assert "launch 3: smoke load" in [mark.word for mark in marks_of(world.events)]


def test_the_screen_says_which_load_it_is() -> None:
    state = initial(started(two()))
    decision = next_decision(state)
    assert decision is not None
    state, _ = reduce(state, decision)
    begun = ev.LaunchStarted(at=101.0, launch="s-01", pid=1, port=2, argv=("python3",))
    phase = ev.PhaseEntered(at=102.0, launch="s-01", phase=Phase.LOAD_WEIGHTS, remaining_s=30.0)
    far = ev.PhaseProgressed(
        at=103.0, launch="s-01", phase=Phase.LOAD_WEIGHTS, done=None, total=None, fraction=0.2, remaining_s=30.0
    )
    seen = []
    for event in (begun, phase, far):
        state, _ = reduce(state, event)
        seen.append(board_view(state)[0].rows[0].text)
    assert seen == ["smoke load  no ETA yet", "smoke load  0:30 left", "smoke load 20 %  0:30 left"]
    assert server_view(state, 104.0).title == "Server: base · launch 1 · smoke load"


def test_its_phases_are_not_what_is_usual(world: World) -> None:
    state = world.play(two())
    first, real, second, _ = state.launches.values()
    assert usual_of(state, real)[0] == {} and usual_of(state, first)[0] == {}
    assert Phase.LOAD_WEIGHTS in usual_of(state, second)[0]
    assert usual_of(state, second)[1] == "the one earlier load of this model in this session"
