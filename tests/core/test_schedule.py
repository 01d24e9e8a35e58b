"""Whole sessions of the pure core, by tables: what is launched, what is ruled out, how each experiment ends."""

from typing import Any

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Finding
from agent.core.plan import approvals_needed, config_of
from agent.core.state import State
from tests.core.conftest import World, playbook

NO_KEY = Finding(summary="TABLE has no key 12", outcome="fails")
NO_EFFECT = Finding(summary="only warns", outcome="no-effect")
CHECK = [{"env": {"name": "X", "not_in": ["1"]}}]


def words(state: State) -> dict[str, str]:
    return {e.id: e.verdict.word if e.verdict else "open" for e in state.experiments.values()}


@pytest.mark.parametrize(
    ("speed", "word"),
    [(110.0, "keep"), (100.5, "no-gain"), (90.0, "worse"), (99.0, "no-gain"), (102.5, "keep")],
)
def test_a_measured_experiment_is_judged_against_its_parent(world: World, speed: float, word: str) -> None:
    world.speeds = {"idea": speed}
    state = world.play(playbook({"id": "base"}, {"id": "idea"}))
    assert words(state) == {"base": "keep", "idea": word}
    assert state.incumbent == ("idea" if word == "keep" else "base")


def test_the_incumbent_is_judged_apart_from_the_parent(world: World) -> None:
    world.speeds = {"slow": 60.0, "mended": 80.0}
    state = world.play(playbook({"id": "base"}, {"id": "slow"}, {"id": "mended", "based_on": "slow"}))
    mended = state.experiments["mended"]
    assert mended.parent and mended.parent.word == "keep" and mended.parent.against == "slow"
    assert mended.incumbent and mended.incumbent.word == "worse" and mended.incumbent.against == "base"
    assert state.incumbent == "base"


@pytest.mark.parametrize("finding", [NO_KEY, NO_EFFECT])
def test_a_preflight_saves_the_load(world: World, finding: Finding) -> None:
    world.findings = {"idea/check1": finding}
    state = world.play(playbook({"id": "base"}, {"id": "idea", "preflight": CHECK}))
    assert words(state)["idea"] == "ruled-out"
    assert finding.summary in state.experiments["idea"].reason
    assert world.launched() == ["base"]


def test_an_unknown_preflight_never_rules_out(world: World) -> None:
    world.findings = {"idea/check1": Finding(summary="no such file", outcome="unknown")}
    world.play(playbook({"id": "base"}, {"id": "idea", "preflight": CHECK}))
    assert world.launched() == ["base", "idea"]


def test_all_preflights_and_research_ahead_start_during_the_first_load(world: World) -> None:
    grep = {"grep": {"pattern": "x", "in": ["s:a.py"]}}
    ideas = [{"id": f"idea{n}", "preflight": CHECK, "research": [grep]} for n in range(3)]
    world.play(playbook({"id": "base"}, *ideas))
    first_ready = next(i for i, e in enumerate(world.events) if isinstance(e, ev.ServerReady))
    started = [e.task.id for e in world.events[:first_ready] if isinstance(e, ev.TaskRequested)]
    assert started == [f"idea{n}/check1" for n in range(3)] + [f"idea{n}/1" for n in range(3)]


def test_what_the_source_demands_completes_the_experiment_before_its_launch(world: World) -> None:
    read = {"read": {"in": "s:server_args.py", "around": "a2a"}}
    needs = Finding(summary="needs it", requires={"moe-runner-backend": "flashinfer_cutlass"})
    world.findings = {"ep/1": needs}
    book = playbook({"id": "base"}, {"id": "ep", "args": {"moe-a2a-backend": "flashinfer"}, "research": [read]})
    state = world.play(book)
    launch = state.launches[state.experiments["ep"].launches[0]]
    assert launch.config.args["moe-runner-backend"] == "flashinfer_cutlass"
    unaccepted = World(findings=world.findings).play(book.model_copy(update={"accept": None}))
    assert "moe-runner-backend" not in config_of(unaccepted, "ep").args


@pytest.mark.parametrize(
    ("when", "speeds", "word"),
    [
        ({"all": ["a", "b"], "are": ["worse", "no-gain"]}, {"a": 50.0, "b": 100.0}, "keep"),
        ({"all": ["a", "b"], "are": ["worse"]}, {"a": 50.0, "b": 100.0}, "not-reached"),
        ({"any": ["a", "b"], "are": ["keep"]}, {"a": 50.0, "b": 150.0}, "worse"),
        ({"any": ["a", "b"], "are": ["failed"]}, {"a": 50.0, "b": 150.0}, "not-reached"),
    ],
)
def test_when(world: World, when: dict[str, Any], speeds: dict[str, float], word: str) -> None:
    world.speeds = {**speeds, "last": 60.0 if word == "worse" else 120.0}
    state = world.play(playbook({"id": "base"}, {"id": "last", "when": when}, {"id": "a"}, {"id": "b"}))
    assert words(state)["last"] == word


def test_a_child_of_what_cannot_run_is_not_reached(world: World) -> None:
    world.fails = {"base": "out of memory"}
    state = world.play(playbook({"id": "base"}, {"id": "a"}, {"id": "b", "based_on": "a"}))
    assert words(state) == {"base": "failed", "a": "not-reached", "b": "not-reached"}
    assert state.incumbent is None
    assert state.ending == "completed"


def test_a_step_that_changes_the_host_waits_for_its_very_bytes_to_be_approved(world: World) -> None:
    steps = [{"run": ["pip", "install", "x"]}]
    book = playbook({"id": "base"}, {"id": "cuda13", "prepare": steps})
    refused = world.play(book)
    assert words(refused)["cuda13"] == "not-reached"
    (needed,) = approvals_needed(book, book.experiments[1])
    assert needed in refused.experiments["cuda13"].reason
    other = playbook({"id": "base"}, {"id": "cuda13", "prepare": [{"run": ["pip", "install", "y"]}]})
    assert words(World().play(other, approved=(needed,)))["cuda13"] == "not-reached"
    accepted = World()
    assert words(accepted.play(book, approved=(needed,)))["cuda13"] == "no-gain"
    assert any(isinstance(command, do.Prepare) for command in accepted.done)


def test_a_failed_preparation_is_a_dead_end(world: World) -> None:
    book = playbook({"id": "base"}, {"id": "cuda13", "prepare": [{"run": ["false"]}]})
    world.prepare_ok = False
    state = world.play(book, approved=tuple(approvals_needed(book, book.experiments[1])))
    assert words(state)["cuda13"] == "failed"
    assert world.launched() == ["base"]


def test_revisit_tries_a_dead_end_again_on_the_new_base(world: World) -> None:
    world.findings = {"symm/check1": NO_KEY}
    world.speeds = {"cuda13": 94.0, "symm@cuda13": 120.0}
    symm = {"id": "symm", "args": {"enable-torch-symm-mem": True}, "preflight": CHECK}
    state = world.play(playbook({"id": "base"}, symm, {"id": "cuda13", "revisit": ["symm"]}))
    assert words(state) == {"base": "keep", "symm": "ruled-out", "cuda13": "worse", "symm@cuda13": "keep"}
    again = state.experiments["symm@cuda13"]
    assert again.spec.based_on == "cuda13" and again.spec.args == {"enable-torch-symm-mem": True}


@pytest.mark.parametrize(
    ("at_end", "serving", "launched"),
    [
        ("stop", None, ["base", "fast", "slow"]),
        ("keep", "slow", ["base", "fast", "slow"]),
        ("serve-best", "fast", ["base", "fast", "slow", "fast"]),
        ("baseline", "base", ["base", "fast", "slow", "base"]),
    ],
)
def test_at_end(world: World, at_end: str, serving: str | None, launched: list[str]) -> None:
    world.speeds = {"fast": 120.0, "slow": 80.0}
    state = world.play(playbook({"id": "base"}, {"id": "fast"}, {"id": "slow"}, at_end=at_end))
    assert world.launched() == launched
    end = world.events[-1]
    assert isinstance(end, ev.SessionEnded)
    assert (state.launches[end.serving].experiment if end.serving else None) == serving


def test_nothing_runs_in_the_background_while_a_round_is_measured(world: World) -> None:
    grep = {"grep": {"pattern": "x", "in": ["s:a.py"]}}
    world.play(playbook({"id": "base"}, *({"id": f"i{n}", "research": [grep] * 9} for n in range(4))))
    quiet = False
    for command in world.done:
        if isinstance(command, do.SetQuiet):
            quiet = command.on
        if isinstance(command, do.RunTask):
            assert not quiet
        if isinstance(command, do.MeasureRound):
            assert quiet


def test_a_probe_with_a_gpu_runs_between_launches(world: World) -> None:
    probe = {"probe": {"run": ["nvidia-smi"], "gpu": True}}
    world.play(playbook({"id": "base"}, {"id": "idea", "research": [probe]}))
    lane = [c for c in world.done if isinstance(c, do.StartServer | do.StopServer | do.RunTask)]
    assert [type(c).__name__ for c in lane] == ["RunTask", "StartServer", "StopServer", "StartServer", "StopServer"]


def test_every_round_has_prompts_of_its_own(world: World) -> None:
    world.play(playbook({"id": "base"}, {"id": "a"}, {"id": "b"}))
    seeds = [c.seed for c in world.done if isinstance(c, do.MeasureRound)]
    assert len(seeds) == 9 == len(set(seeds))
