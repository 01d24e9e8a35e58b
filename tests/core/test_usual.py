"""The phases of a load against earlier loads: what is slow, by which threshold, and what it stands on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core import events as ev
from agent.core.model import Failure, Phase
from agent.core.plan import config_of
from agent.core.state import Launch, LaunchStage, State
from agent.core.views.panels import server_view
from agent.core.views.usual import LEAST_S, LEAST_SHARE, SLOW, loads_against, slow_now, usual_of
from agent.journal.codec import decode, encode
from tests.core.conftest import resumed
from tests.tui.states import begun, loading, play

USUAL = {Phase.LAUNCH: 1.0, Phase.LOAD_WEIGHTS: 412.0, Phase.GRAPH_CAPTURE: 45.0, Phase.WARMUP: 0.4}
AT = 1000.0


def launch(number: int, phases: Mapping[Phase, float], **changes: Any) -> Launch:
    """A launch of `base` whose phases took so long, one after the other; it is ready unless `changes` say otherwise."""
    at = AT + 10_000.0 * number
    marks, now = [], at + 1.0
    for phase, seconds in phases.items():
        marks.append((phase, now))
        now += seconds
    fields: dict[str, Any] = {"stage": LaunchStage.READY, "load_s": now - at, "usual_s": USUAL, **changes}
    if fields["load_s"] is not None:
        marks.append((Phase.READY, now))
    config = config_of(begun(), "base")
    return Launch(
        id=f"s-{number}",
        experiment="base",
        purpose="measure",
        config=config,
        requested_at=at,
        phases=tuple(marks),
        **fields,
    )


def state_of(*launches: Launch) -> State:
    state = begun()
    state = state.with_experiment("base", launches=tuple(one.id for one in launches))
    return replace(state, launches={one.id: one for one in launches})


def slow_words(*launches: Launch, now: float = 0.0) -> list[str]:
    state = state_of(*launches)
    return [phase.slow for load in loads_against(state, state.experiments["base"], now) for phase in load.phases]


@pytest.mark.parametrize(
    ("phase", "took_s", "words"),
    [
        (Phase.LOAD_WEIGHTS, 412.0, ""),
        (Phase.LOAD_WEIGHTS, 600.0, ""),
        (
            Phase.LOAD_WEIGHTS,
            860.0,
            "load-weights 14:20, 2.1x the usual 6:52: cold page cache, slow disk?",
        ),
        (Phase.GRAPH_CAPTURE, 67.0, ""),
        (Phase.GRAPH_CAPTURE, 90.0, "graph-capture 1:30, 2.0x the usual 0:45: more sizes, or kernels compiled anew?"),
        (Phase.WARMUP, 10.0, ""),
        (Phase.WARMUP, 60.0, "warmup 1:00, usually under a second"),
        (Phase.COMPILE, 600.0, ""),
    ],
)
def test_a_phase_is_slow_where_anybody_would_say_so(phase: Phase, took_s: float, words: str) -> None:
    found = slow_words(launch(0, {phase: took_s}))
    assert [one for one in found if one] == ([words] if words else [])


def seconds_of(launch: float, config: float, dist: float, weights: float, capture: float) -> dict[Phase, float]:
    phases = (Phase.LAUNCH, Phase.CONFIG, Phase.DIST_INIT, Phase.LOAD_WEIGHTS, Phase.GRAPH_CAPTURE)
    return dict(zip(phases, (launch, config, dist, weights, capture), strict=True))


TP2 = seconds_of(9.0, 10.5, 2.5, 1.7, 3.3)
"""A small model on two GPUs, as SGLang was recorded there."""


@pytest.mark.parametrize(
    ("took", "usual", "words"),
    [
        (seconds_of(8.7, 12.6, 2.8, 1.9, 3.1), TP2, []),
        (seconds_of(8.7, 10.5, 2.5, 1.7, 5.5), TP2, []),
        (seconds_of(11.5, 11.9, 4.7, 2.1, 3.3), TP2, []),
        (seconds_of(9.0, 9.7, 21.3, 1.6, 3.4), TP2, ["dist-init 0:21, 8.5x the usual 0:02"]),
        (
            seconds_of(19.0, 20.2, 1.5, 5.6, 74.5),
            seconds_of(21.8, 19.9, 1.3, 5.9, 6.8),
            ["graph-capture 1:14, 11.0x the usual 0:07: more sizes, or kernels compiled anew?"],
        ),
    ],
    ids=["again", "ep2", "busy host", "first custom all-reduce", "first start"],
)
def test_real_loads(took: dict[Phase, float], usual: dict[Phase, float], words: list[str]) -> None:
    first = took.pop(Phase.LAUNCH)
    one = launch(0, took, usual_s=usual)
    shifted = tuple((phase, at + first - 1.0) for phase, at in one.phases)
    assert [told for told in slow_words(replace(one, phases=shifted)) if told] == words


def test_a_compile_that_was_there_before_and_takes_longer_asks_for_its_cache() -> None:
    (words,) = filter(None, slow_words(launch(0, {Phase.COMPILE: 300.0}, usual_s={Phase.COMPILE: 30.0})))
    assert words.endswith("10.0x the usual 0:30: empty compile cache?")


def test_parts_of_a_phase_are_added_up_and_stand_beside_the_usual() -> None:
    one = launch(0, {Phase.LOAD_WEIGHTS: 400.0, Phase.KV_CACHE: 2.0})
    marks = (*one.phases[:-1], (Phase.LOAD_WEIGHTS, AT + 403.0), (Phase.READY, AT + 415.0))
    state = state_of(replace(one, phases=marks))
    (load,) = loads_against(state, state.experiments["base"], 0.0)
    assert [(p.phase, p.took_s, p.usual_s) for p in load.phases] == [
        ("launch", 1.0, 1.0),
        ("load-weights", 412.0, 412.0),
        ("kv-cache", 2.0, None),
    ]


@pytest.mark.parametrize("after_s", [100.0, 617.0, 620.0, 900.0])
def test_a_phase_that_runs_is_told_once_it_is_slow(after_s: float) -> None:
    one = launch(0, {Phase.LOAD_WEIGHTS: 0.0}, stage=LaunchStage.LOADING, load_s=None)
    state, now = state_of(one), AT + 1.0 + after_s
    found = slow_now(state, one, now)
    assert (found is not None) == (after_s >= SLOW * 412.0)
    view = server_view(state, now)
    present = next(step for step in view.steps if step.stands == "present")
    if found:
        assert view.note == f"! {found[0]}" and view.tone == "warn"
        assert "load-weights " in view.note and present.detail.endswith(f"!slow {after_s / 412.0:.1f}x")
    else:
        assert "slow" not in present.detail and view.tone == "muted"


def test_what_broke_is_not_slow() -> None:
    failure = Failure(phase=Phase.LOAD_WEIGHTS, reason="OOM", category="oom")
    changes: dict[str, Any] = {"stage": LaunchStage.STOPPED, "load_s": None, "failure": failure}
    one = launch(0, {Phase.LOAD_WEIGHTS: 0.0}, ended_at=AT + 5_000.0, **changes)
    state = state_of(one)
    (load,) = loads_against(state, state.experiments["base"], AT + 9_000.0)
    assert [(p.status, p.slow) for p in load.phases] == [("done", ""), ("failed", "")]
    assert slow_now(state, one, AT + 9_000.0) is None


def test_without_a_history_the_loads_of_the_session_count() -> None:
    plain = {Phase.LOAD_WEIGHTS: 100.0}
    first, second = launch(0, plain, usual_s={}), launch(1, {Phase.LOAD_WEIGHTS: 110.0}, usual_s={})
    third = launch(2, {Phase.LOAD_WEIGHTS: 300.0}, usual_s={})
    state = state_of(first, second, third)
    assert usual_of(state, first)[0] == {}
    assert usual_of(state, second) == (
        {Phase.LAUNCH: 1.0, **plain},
        "the one earlier load of this model in this session",
    )
    usual, basis = usual_of(state, third)
    assert usual[Phase.LOAD_WEIGHTS] == 105.0 and basis.startswith("2 earlier loads")
    assert [load.number for load in loads_against(state, state.experiments["base"], 0.0)] == [2, 3]


@pytest.mark.parametrize("odd", ["kind", "model", "unwatched", "failed"])
def test_what_is_no_load_of_the_same_kind_does_not_count(odd: str) -> None:
    first, second = (launch(n, {Phase.LOAD_WEIGHTS: 100.0}, usual_s={}) for n in range(2))
    config = first.config
    changed = {
        "kind": replace(first, config=replace(config, kind="vllm")),
        "model": replace(first, config=replace(config, args={**config.args, "model-path": "/other"})),
        "unwatched": replace(first, unwatched=True),
        "failed": replace(first, load_s=None),
    }
    assert usual_of(state_of(changed[odd], second), second)[0] == {}


def test_a_load_that_nobody_watched_is_not_compared() -> None:
    one = launch(0, {Phase.LOAD_WEIGHTS: 9_000.0}, unwatched=True)
    assert slow_words(one) == []
    assert slow_now(state_of(one), replace(one, stage=LaunchStage.LOADING, load_s=None), AT + 9_999.0) is None


def test_a_loss_of_the_link_and_a_resume_leave_a_load_unwatched() -> None:
    state = loading(begun(), "base", "s-01", 1000.0)
    assert not state.launches["s-01"].unwatched
    lost = play(state, ev.LinkLost(at=1010.0, reason="no route"))
    assert slow_now(lost, replace(lost.launches["s-01"], usual_s=USUAL), 9_000.0) is None
    assert slow_now(state, replace(state.launches["s-01"], usual_s=USUAL), 9_000.0) is not None
    assert play(lost, ev.LinkRestored(at=1015.0)).launches["s-01"].unwatched
    again = play(state, resumed(state))
    assert again.launches["s-01"].unwatched
    ready = play(state, ev.ServerReady(at=1020.0, launch="s-01", load_s=19.0, flags=()))
    lost = play(ready, ev.LinkLost(at=1030.0, reason="no route"), ev.LinkRestored(at=1040.0))
    assert not lost.launches["s-01"].unwatched


def test_what_the_history_said_is_journalled_and_old_journals_load() -> None:
    event = ev.LaunchStarted(at=1.0, launch="s", pid=1, port=2, argv=("a",), usual_s={Phase.LOAD_WEIGHTS: 412.3})
    record = encode(event)
    assert decode(record) == event
    del record["data"]["usual_s"]
    assert decode(record) == replace(event, usual_s={})
    state = begun()
    requested = ev.LaunchRequested(
        at=101.0, launch="s", experiment="base", purpose="measure", config=config_of(state, "base")
    )
    assert play(state, requested, event).launches["s"].usual_s == {Phase.LOAD_WEIGHTS: 412.3}


_SECONDS = st.floats(0.0, 5_000.0)


@given(
    st.dictionaries(st.sampled_from(list(Phase)[:12]), _SECONDS, min_size=1),
    _SECONDS,
    st.sampled_from(list(Phase)[1:12]),
)
def test_slow_is_never_said_below_the_thresholds(usual: dict[Phase, float], took_s: float, phase: Phase) -> None:
    for words in slow_words(launch(0, {phase: took_s}, usual_s=usual)):
        if words and words.startswith(str(phase)):
            assert took_s >= SLOW * usual[phase]
            assert took_s - usual[phase] >= max(LEAST_S, LEAST_SHARE * sum(usual.values())) - 1e-6
