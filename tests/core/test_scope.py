"""What dead ends stand on, what of it changed, and which dead ends of earlier sessions an experiment is."""

from dataclasses import replace
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.known import changes_of, elsewhere, environments, facts_for, known_for, to_remember
from agent.core.model import Finding, Gpu, Host
from agent.core.plan import config_of
from agent.core.reduce import initial, reduce
from agent.core.scope import UNKNOWN, KnownDeadEnd, standing
from agent.core.state import Stage, State
from agent.core.views.board import board_view
from agent.core.views.dead_ends import dead_end_views, known_notes, known_short, known_text, wish_of
from agent.core.views.details import details
from agent.core.views.lines import line_of
from tests.core.conftest import HOST, World, playbook, started

BIN, CU130 = "~/venv/bin/python3", "~/venvs/cu130/bin/python3"
FACTS = {
    BIN: {
        "sglang": "0.5.9",
        "flashinfer": "0.6.3",
        "torch": "2.9.1 (CUDA 12.8)",
        "NCCL": "2.27.5",
        "packages": "3 (a)",
    },
    CU130: {"sglang": "0.5.23", "flashinfer": "0.7.2", "torch": "2.14.1", "NCCL": "2.28.9", "packages": "3 (b)"},
    "": {"driver options": "none"},
}
FUSION = {
    "list-contains": {"in": "flashinfer:jit/comm.py", "list": "majors", "item": "{gpu.sm_major}", "function": "gen"}
}
BOOK = playbook(
    {"id": "base", "args": {"cuda-graph-max-bs": "128"}},
    {"id": "fusion", "args": {"enable-flashinfer-allreduce-fusion": True}, "preflight": [FUSION]},
    {"id": "deepep", "env": {"A": "1"}, "preflight": [{"module-importable": {"module": "deep_ep"}}]},
    {"id": "linked", "env": {"B": "1"}, "preflight": [{"topology": {"nvlink": "full"}}]},
    {"id": "space", "env": {"C": "1"}, "preflight": [{"disk-free": {"at_least": "9GiB"}}]},
    {"id": "tree", "env": {"NCCL_ALGO": "Tree"}, "preflight": [{"env": {"name": "NCCL_ALGO", "not_in": ["Tree"]}}]},
    {"id": "slow", "args": {"ep-size": "8"}, "env": {"MY_TOKEN": "abcdefgh"}},
    {"id": "cuda13", "server": {"command": [CU130, "-m", "sglang.launch_server"]}, "args": {"cuda-graph-max-bs": None}},
    server={"kind": "sglang", "command": [BIN, "-m", "sglang.launch_server"], "args": {"model-path": "/m", "tp": "8"}},
)
FAILS = Finding(summary="no SM12 in the list", outcome="fails")
RULED_OUT = ("fusion", "deepep", "linked", "space", "tree")


def read(state: State, *environments: str, at: float = 500.0, **changes: str) -> State:
    """The facts of these environments come."""
    for name in environments:
        facts = {**FACTS[name], **{key: value for key, value in changes.items() if key in FACTS[name]}}
        state, _ = reduce(state, ev.FactsRead(at=at, environment=name, facts=facts))
    return state


def played(world: World, book: Any = BOOK, **changes: Any) -> State:
    """A session up to its end; that of what is not wanted is taken back so that more can be done."""
    world.findings = {f"{name}/check1": FAILS for name in RULED_OUT}
    world.speeds = {"base": 100.0, "slow": 50.0, "cuda13": 110.0}
    return replace(world.play(book, **changes), ending=None)


def test_the_scope_is_what_the_check_looked_at(world: World) -> None:
    state = read(played(world), "", BIN)
    scopes = {e.id: dict(e.scope) for e in state.experiments.values()}
    assert scopes["fusion"] == {"flashinfer": "0.6.3", "GPU": "RTX PRO 6000 (SM 12.0)"}
    assert scopes["linked"] == {"GPU": "RTX PRO 6000 (SM 12.0)", "GPUs": "1", "topology": "one GPU"}
    assert scopes["space"] == {"state of the host": UNKNOWN}
    assert scopes["deepep"]["packages"] == "3 (a)" and scopes["tree"] == {"NCCL": "2.27.5"}


def test_what_was_measured_stands_on_everything(world: World) -> None:
    scope = read(played(world), "", BIN).experiments["slow"].scope
    assert scope["model"] == "/m" and scope["driver"] == "580.1" and scope["driver options"] == "none"
    assert scope["flags"].split("\n") == ["--cuda-graph-max-bs 128", "--ep-size 8", "--tp 8", "MY_TOKEN=‹hidden›"]
    assert {name: scope[name] for name in ("sglang", "flashinfer", "torch", "NCCL")} == {
        name: FACTS[BIN][name] for name in ("sglang", "flashinfer", "torch", "NCCL")
    }


def test_facts_that_come_late_are_those_of_the_end_and_later_ones_are_not(world: World) -> None:
    state = played(world)
    assert state.experiments["fusion"].scope["flashinfer"] == UNKNOWN
    state = read(read(state, BIN), BIN, flashinfer="0.6.17")
    assert state.experiments["fusion"].scope["flashinfer"] == "0.6.3"
    view = next(view for view in dead_end_views(state) if view.experiment == "fusion")
    assert (view.holds, view.changed) == ("may not hold", ("flashinfer 0.6.3 → 0.6.17",))
    assert details(state, "fusion", 1.0).dead_end.changed == view.changed  # type: ignore[union-attr]


def test_where_no_version_can_be_read_the_place_of_the_server_counts(world: World) -> None:
    state, _ = reduce(played(world), ev.FactsRead(at=1.0, environment=BIN, facts={}))
    assert state.experiments["slow"].scope["environment"] == BIN
    assert "environment" not in read(state, BIN).experiments["slow"].scope


@pytest.mark.parametrize(
    ("before", "after", "changed", "unknown"),
    [
        ({"torch": "2.9"}, {"torch": "2.9"}, (), ()),
        ({"torch": "2.9"}, {"torch": "2.10", "NCCL": "2"}, ("torch 2.9 → 2.10",), ()),
        ({"torch": UNKNOWN}, {"torch": "2.10"}, (), ("torch",)),
        ({"torch": "2.9"}, {}, (), ("torch",)),
        ({"flags": "--a 1\n--b"}, {"flags": "--b\n--c"}, ("flags: without --a 1, with --c",), ()),
    ],
)
def test_what_nobody_knows_changes_nothing(before: Any, after: Any, changed: Any, unknown: Any) -> None:
    found = standing(before, after)
    assert (tuple(map(str, found.changed)), found.unknown, found.holds) == (changed, unknown, not changed)


def test_another_environment_may_bring_a_dead_end_back(world: World) -> None:
    state = read(played(world), "", BIN, CU130)
    assert list(environments(state)) == [BIN, CU130]
    assert {base: [str(c) for c in found.changed] for base, found in elsewhere(state, state.experiments["fusion"])} == {
        "cuda13": ["flashinfer 0.6.3 → 0.7.2"]
    }
    assert not list(elsewhere(state, state.experiments["linked"])), "the GPUs are connected as they were"
    wish = wish_of(state, "here/fusion", 600.0)
    assert wish == ev.DeadEndReopened(at=600.0, experiment="fusion", base="cuda13")
    after, _ = reduce(state, wish)
    assert after.experiments["fusion@cuda13"].stage is Stage.TODO
    assert after.experiments["fusion"].reopened_as == "fusion@cuda13"
    assert line_of(state, wish, after).endswith("to be tried again by hand as fusion@cuda13")  # type: ignore[union-attr]
    again = next(view for view in dead_end_views(after) if view.experiment == "fusion")
    assert again.does == "it was tried again as fusion@cuda13; r puts fusion in line again"
    assert wish_of(after, "here/fusion", 700.0) == ev.ExperimentRetried(at=700.0, experiment="fusion")


def test_what_holds_everywhere_is_retried_as_it_is(world: World) -> None:
    state = read(played(world), "", BIN, CU130)
    assert wish_of(state, "here/linked", 600.0) == ev.ExperimentRetried(at=600.0, experiment="linked")


def again(known: tuple[KnownDeadEnd, ...], host: Host = HOST, **changes: Any) -> State:
    """Another session on the host, as it begins."""
    return initial(replace(started(BOOK, known=known, **changes), host=host))


def test_a_session_leaves_its_dead_ends(world: World) -> None:
    kept = {known.experiment: known for known in to_remember(read(played(world), "", BIN))}
    assert set(kept) == {*RULED_OUT, "slow"}
    assert kept["slow"].env == {"MY_TOKEN": "‹hidden›"} and kept["slow"].args == {"ep-size": "8"}
    assert kept["fusion"].word == "ruled-out" and kept["fusion"].environment == BIN


def test_what_a_person_ended_is_no_dead_end_for_others(world: World) -> None:
    state = played(world)
    launch = state.experiments["slow"].launches[-1]
    failure = ev.Failure(phase=state.launches[launch].phase, reason="ended by hand", category="stopped")
    state = state.with_launch(launch, failure=failure)
    assert "slow" not in {known.experiment for known in to_remember(state)}


def test_the_next_session_tells_which_hold(world: World) -> None:
    known = tuple(to_remember(read(played(world), "", BIN)))
    before = again(known)
    after = read(before, BIN)
    event = ev.FactsRead(at=500.0, environment=BIN, facts=FACTS[BIN])
    assert line_of(before, event, after).endswith("6 known dead ends hold here")  # type: ignore[union-attr]
    assert line_of(after, event, after) is None, "it is told once"
    changed = read(before, BIN, flashinfer="0.6.17")
    assert known_text(changed) == "3 known dead ends hold here, 3 may not any more"
    assert known_short(changed) == "x 6 known dead ends, 3 may not hold"
    assert known_text(again(())) == known_short(again(())) == ""


def test_a_known_dead_end_is_marked_and_not_ruled_out(world: World) -> None:
    known = tuple(to_remember(read(played(world), "", BIN)))
    state = read(again(known), BIN, flashinfer="0.6.17")
    assert all(e.stage is Stage.TODO for e in state.experiments.values())
    rows = {row.experiment: row.text for section in board_view(state) for row in section.rows}
    assert rows["fusion"].endswith(" · ruled-out 01-01, may not hold")
    assert rows["linked"].endswith(" · ruled-out here 01-01")
    assert known_notes(state, state.experiments["fusion"]) == (
        "it was ruled-out here on 01-01, in session s: would fail: no SM12 in the list",
        "since then: flashinfer 0.6.3 → 0.6.17",
    )
    assert details(state, "fusion", 1.0).known and not details(state, "cuda13", 1.0).known


def test_other_gpus_are_told(world: World) -> None:
    known = tuple(to_remember(read(played(world), "", BIN)))
    gpus = tuple(Gpu(index=n, name="H200", sm_major=9, sm_minor=0, memory_mib=1, driver="580.1") for n in range(2))
    state = read(again(known, Host(name="box", gpus=gpus, links=(("X", "NV18"), ("NV18", "X")))), BIN)
    view = next(view for view in dead_end_views(state) if view.experiment == "linked")
    assert view.changed == ("GPU RTX PRO 6000 (SM 12.0) → H200 (SM 9.0)", "GPUs 1 → 2", "topology one GPU → 1 x NV18")


def test_one_of_another_playbook_comes_back_as_a_new_experiment(world: World) -> None:
    known = tuple(to_remember(read(played(world), "", BIN)))
    other = initial(started(playbook({"id": "mine"}, {"id": "fusion"}), known=known))
    views = {view.experiment: view for view in dead_end_views(other)}
    assert views["fusion"].does == "r adds it as fusion-2, on mine"
    wish = wish_of(other, views["fusion"].key, 600.0)
    assert isinstance(wish, ev.ExperimentAdded)
    after, _ = reduce(other, wish)
    added = after.experiments["fusion-2"]
    assert added.spec.args == {"enable-flashinfer-allreduce-fusion": True} and known_for(after, added)
    assert changes_of(after, added) == ({"enable-flashinfer-allreduce-fusion": True}, {})
    assert "n adds it" in str(wish_of(other, views["slow"].key, 600.0)), "its secret is in no history"


def test_one_that_is_in_line_is_not_put_there_twice(world: World) -> None:
    state = again(tuple(to_remember(read(played(world), "", BIN))))
    keys = {view.experiment: view.key for view in dead_end_views(state)}
    assert wish_of(state, keys["fusion"], 600.0) == "fusion is in line already"


def test_what_ended_otherwise_is_no_dead_end_any_more(world: World) -> None:
    known = tuple(k for k in to_remember(read(played(world), "", BIN)) if k.experiment == "fusion")
    later = World(speeds={"base": 100.0, "fusion": 120.0})
    state = read(replace(later.play(BOOK, known=known), ending=None), "", BIN)
    fusion = next(k for k in to_remember(state) if k.experiment == "fusion")
    assert fusion.lives and fusion.word == "keep"
    assert not [view for view in dead_end_views(state) if view.experiment == "fusion" and view.group == "THIS SESSION"]


def test_a_resumed_session_reads_anew(world: World) -> None:
    state = read(played(world), "", BIN)
    resumed = ev.SessionResumed(at=900.0, host=HOST, approved=(), keep=False, attended=False, version="0")
    after, _ = reduce(replace(state, ending="interrupted"), resumed)
    assert after.facts == {} and after.experiments["fusion"].scope["flashinfer"] == "0.6.3"


def test_in_containers_the_image_stands_for_what_is_in_it(world: World) -> None:
    old, new = (replace(HOST, image=f"lmsysorg/sglang:v{version}") for version in ("0.5.9", "0.5.23"))
    first, _ = reduce(again((), old), ev.ExperimentSkipped(at=1.0, experiment="slow"))
    scope = first.experiments["slow"].scope
    assert scope["image"] == "lmsysorg/sglang:v0.5.9" and scope["sglang"] == UNKNOWN
    changed = standing(scope, facts_for(again((), new), config_of(first, "slow"))).changed
    assert [str(change) for change in changed] == ["image lmsysorg/sglang:v0.5.9 → lmsysorg/sglang:v0.5.23"]
