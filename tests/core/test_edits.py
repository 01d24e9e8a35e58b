"""What a person changes in the plan while it runs: who may, what becomes of it, and that it stays a plan."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import commands as do
from agent.core import events as ev
from agent.core.edit_rules import LONGEST, cannot_change_places, neighbour, refusal
from agent.core.legal import IllegalTransition, Refused
from agent.core.model import Finding, Verdict
from agent.core.needs import needs
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import Stage, State
from agent.core.views.basics import Place, board, place_of
from agent.core.views.board import BoardRow, board_view
from agent.core.views.details import details
from agent.core.views.lines import line_of
from agent.journal.codec import decode, encode
from agent.playbook.model import Playbook
from tests.core.conftest import World, playbook, started
from tests.core.test_reduce import Shuffled, book_for_chaos

AT = 150.0


def plan(*experiments: dict[str, Any], **changes: Any) -> State:
    """A session with a person at the screen, before anything was decided."""
    return initial(started(playbook({"id": "base"}, *experiments, **changes), attended=True))


def three() -> State:
    return plan({"id": "a"}, {"id": "b"}, {"id": "c"})


def play(state: State, *events: ev.Event) -> State:
    for event in events:
        state, _ = reduce(state, event)
    return state


def settle(state: State) -> tuple[State, list[do.Command]]:
    """All decisions that are due."""
    asked: list[do.Command] = []
    while (decision := next_decision(state)) is not None:
        state, commands = reduce(state, decision)
        asked += commands
    return state, asked


def ended(state: State, name: str, word: Any) -> State:
    verdict = Verdict(word=word, against="base", reason="so it is")
    return state.with_experiment(name, stage=Stage.ENDED, parent=verdict, incumbent=verdict, reason="so it is")


def move(name: str, past: str) -> ev.ExperimentMoved:
    return ev.ExperimentMoved(at=AT, experiment=name, past=past)


def change(name: str, why: str = "", env: Any = None, **args: Any) -> ev.ExperimentChanged:
    return ev.ExperimentChanged(at=AT, experiment=name, args=args, env=env or {}, why=why)


def give_up(name: str, reason: str = "it swaps") -> ev.DeadEndMarked:
    return ev.DeadEndMarked(at=AT, experiment=name, reason=reason)


def note(name: str, text: str = "the fans were loud") -> ev.NoteWritten:
    return ev.NoteWritten(at=AT, experiment=name, text=text)


# --- order


def test_two_change_places_and_are_launched_in_that_order() -> None:
    state = play(three(), move("b", "a"))
    assert list(state.experiments) == ["base", "b", "a", "c"]
    assert [row.experiment for row in board(state)] == ["base", "b", "a", "c"]
    world = World()
    world.play(state.playbook)
    assert world.launched() == ["base", "a", "b", "c"]
    launched = launches_of(state)
    assert launched == ["base", "b", "a", "c"]


def launches_of(state: State) -> list[str]:
    """Play a state on to its end, as a session without a person; the order of its launches."""
    world, inbox, order = World(), list[ev.Event](), []
    state = replace(state, attended=False)
    for _ in range(2_000):
        event = next_decision(state) or (inbox.pop(0) if inbox else None)
        if event is None:
            return order
        if isinstance(event, ev.LaunchRequested):
            order.append(event.experiment)
        state, commands = reduce(state, event)
        for command in commands:
            inbox += world.answer(state, command, state.now + 1)
    raise AssertionError("the session does not end")


def test_others_stay_where_they_are() -> None:
    state = ended(three(), "b", "no-gain")
    assert neighbour(state, "a", 1) == "c" and neighbour(state, "base", -1) is None
    moved = play(state, move("a", "c"))
    assert list(moved.experiments) == ["base", "c", "b", "a"]
    assert [row.experiment for row in board(moved) if row.place is Place.RESULTS] == ["b"]


def test_a_move_that_would_change_nothing_says_so() -> None:
    state = plan(
        {"id": "a"}, {"id": "child", "based_on": "a"}, {"id": "last", "when": {"any": ["child"], "are": ["keep"]}}
    )
    assert (
        cannot_change_places(state, "child", "a") == "child waits for a wherever it stands: moving it changes nothing"
    )
    assert cannot_change_places(state, "a", "child") == cannot_change_places(state, "child", "a")
    assert "last waits for a" in str(cannot_change_places(state, "last", "a")), "also through others"
    groups = [{"id": "one", "members": ["a"], "then": "two"}, {"id": "two", "members": ["b"]}]
    strategies = plan({"id": "a"}, {"id": "b"}, groups=groups)
    assert "b waits for a" in str(cannot_change_places(strategies, "b", "a")), "also by strategy"
    overruled = state.with_experiment("last", overruled=True)
    assert cannot_change_places(overruled, "last", "a") is None, "it does not wait any more"


def test_what_changes_nothing_does_no_harm_in_a_journal() -> None:
    state = play(plan({"id": "a"}, {"id": "child", "based_on": "a"}), move("child", "a"), change("child"))
    assert launches_of(state) == ["base", "a", "child"]


@pytest.mark.parametrize(
    ("stage", "why"),
    [
        (Stage.PROPOSED, "a is proposed: y shows what it would run"),
        (Stage.RUNNING, "a has begun"),
        (Stage.PREPARING, "a has begun"),
        (Stage.NEAR, "a has begun"),
        (Stage.ENDED, "a has ended: r tries it again"),
    ],
)
def test_only_what_is_in_line_can_be_moved(stage: Stage, why: str) -> None:
    state = three().with_experiment("a", stage=stage)
    assert refusal(state, move("a", "b")) == why
    assert refusal(state, move("b", "a")) == "a is not in line any more"
    assert refusal(state, move("b", "b")) == "b stands at the end of the line"
    assert refusal(state, move("b", "nope")) == "nope is not in line any more"


# --- other flags

CHECKED: dict[str, Any] = {
    "preflight": [{"env": {"name": "X", "not_in": ["1"]}}],
    "research": [{"grep": {"pattern": "x", "in": ["s:a.py"]}, "needed": True}, {"ask": "does it fit?"}],
}


def finished(state: State, **outcomes: Any) -> State:
    """Every task ends; `outcomes` are findings by the task's id with _ for /."""
    while running := [t.task.id for t in state.tasks.values() if t.status is None]:
        task = running[0]
        finding = outcomes.get(task.replace("/", "_").replace(".", "_"), Finding(summary="3 hits"))
        state = play(state, ev.TaskFinished(at=AT, task=task, status="done", finding=finding))
        state, _ = settle(state)
    return state


def held(*experiments: dict[str, Any], **changes: Any) -> State:
    """The baseline is being launched; tasks of all others have begun."""
    return settle(plan(*experiments, **changes))[0]


def test_a_changed_experiment_is_looked_at_again_and_so_is_what_is_based_on_it() -> None:
    state = finished(held({"id": "a", **CHECKED}, {"id": "child", "based_on": "a", **CHECKED}, {"id": "b", **CHECKED}))
    before = set(state.tasks)
    state, _ = settle(play(state, change("a", tp="4")))
    assert set(state.tasks) - before == {f"{name}/{key}.2" for name in ("a", "child") for key in ("check1", "1")}
    assert {name for name, task in state.tasks.items() if task.stale} == {
        f"{name}/{key}" for name in ("a", "child") for key in ("check1", "1")
    }
    assert (
        state.tasks["a/check1.2"].task.config.args["tp"] == "4" == state.tasks["child/check1.2"].task.config.args["tp"]
    )
    state, _ = settle(play(finished(state), change("a", tp="2")))
    assert "child/check1.3" in state.tasks and state.tasks["a/check1.2"].stale


def test_what_runs_for_the_flags_of_before_is_cancelled() -> None:
    state = held({"id": "a", **CHECKED})
    running = {t.task.id for t in state.tasks.values() if t.status is None and t.task.kind != "ask"}
    _, commands = reduce(state, change("a", tp="4"))
    assert (
        {command.task for command in commands if isinstance(command, do.CancelTask)} == running == {"a/check1", "a/1"}
    )


def test_a_check_of_the_flags_of_before_rules_nothing_out() -> None:
    fails = Finding(summary="no", outcome="fails")
    state = held({"id": "a", **CHECKED})
    state, _ = settle(play(state, change("a", tp="4")))
    late, _ = settle(play(state, ev.TaskFinished(at=AT, task="a/check1", status="done", finding=fails)))
    assert late.experiments["a"].stage is Stage.TODO
    views = {view.id: view.summary for view in details(late, "a", AT).preflights}
    assert views["a/check1"] == "before the flags were changed: no"
    assert finished(late, a_check1_2=fails).experiments["a"].verdict is not None


def test_flags_that_were_added_for_the_former_ones_are_gone() -> None:
    state = held({"id": "a", "args": {"moe-a2a-backend": "flashinfer"}, **CHECKED}, accept=None)
    demand = Finding(summary="needs it", requires={"moe-runner-backend": "x"})
    state = finished(state, a_1=demand)
    assert [need.experiment for need in needs(state) if hasattr(need, "adds")] == ["a"]
    state = play(state, ev.ExperimentCompleted(at=AT, experiment="a", adds=demand.requires, task="a/1"))
    state, _ = settle(play(state, change("a", tp="4")))
    assert state.experiments["a"].added == {} and not needs(state)


def test_another_reason_alone_is_looked_up_by_nobody() -> None:
    state = finished(held({"id": "a", "args": {"tp": "4"}, **CHECKED}))
    after, _ = settle(play(state, change("a", tp="4", why="because")))
    assert after.experiments["a"].spec.why == "because" and after.tasks == state.tasks


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stage": Stage.PROPOSED}, "a is proposed: y shows what it would run"),
        ({"stage": Stage.RUNNING}, "a has begun: n makes another one"),
        ({"launches": ("s-01",)}, "a has begun: n makes another one"),
        ({"prepared": 1}, "a has begun: n makes another one"),
        ({"stage": Stage.ENDED}, "a has ended: n makes another one"),
    ],
)
def test_what_has_begun_keeps_its_flags(changes: dict[str, Any], why: str) -> None:
    state = three().with_experiment("a", **changes)
    assert refusal(state, change("a", tp="4")) == why
    assert refusal(state, change("base", tp="4")) == "base is the baseline: n makes one on top of it"


# --- dead ends


def row_of(state: State, name: str) -> BoardRow:
    return next(row for section in board_view(state) for row in section.rows if row.experiment == name)


@pytest.mark.parametrize("word", ["no-gain", "inconclusive", "invalid"])
def test_what_was_measured_keeps_its_verdict_as_a_dead_end(word: Any) -> None:
    state = play(ended(three(), "a", word), give_up("a"))
    a = state.experiments["a"]
    assert place_of(state, a) is Place.DEAD_ENDS
    assert (row_of(state, "a").word, row_of(state, "a").glyph, row_of(state, "a").text) == ("by hand", "✖", "it swaps")
    page = details(state, "a", AT)
    assert page.word == "by hand" and [v.word for v in page.verdicts] == [word]
    assert page.dead_end and page.dead_end.by_hand and page.dead_end.reason == "it swaps"
    again = play(state, ev.ExperimentRetried(at=AT, experiment="a")).experiments["a"]
    assert (again.stage, again.given_up) == (Stage.TODO, "")


def test_what_was_not_launched_ends_without_a_launch_and_so_does_what_is_based_on_it() -> None:
    state = plan({"id": "a"}, {"id": "child", "based_on": "a"})
    state, _ = settle(play(state, give_up("a")))
    verdict = state.experiments["a"].verdict
    assert verdict and (verdict.word, verdict.reason) == ("not-reached", "by hand: it swaps")
    assert place_of(state, state.experiments["a"]) is Place.DEAD_ENDS
    assert state.experiments["child"].reason == "it is based on a, which is not-reached"
    again = play(state, ev.ExperimentRetried(at=AT, experiment="a")).experiments["a"]
    assert again.stage is Stage.TODO and not again.overruled, "its checks count as they did"


def test_one_that_was_near_keeps_what_it_measured() -> None:
    near = Verdict(word="inconclusive", against="base", reason="likely +1%", gain=0.01)
    planned = ev.LaunchPlanned(at=1.0, experiment="a", of="a", number=2, cost_s=60.0, parent=near, incumbent=near)
    state = three().with_experiment("a", stage=Stage.NEAR, planned=planned)
    verdict = play(state, give_up("a")).experiments["a"].verdict
    assert verdict == replace(near, reason="likely +1%; given up by hand")


@pytest.mark.parametrize(
    ("state", "name", "why"),
    [
        (three(), "base", "base is the baseline: all others are compared with it"),
        (three().with_experiment("a", stage=Stage.RUNNING), "a", "a runs: e ends its launch"),
        (three().with_experiment("a", stage=Stage.PROPOSED), "a", "a is proposed: s drops it"),
        (ended(three(), "a", "keep"), "a", "a is kept: m notes what speaks against it"),
        (ended(three(), "a", "failed"), "a", "a is a dead end already: m adds a note"),
        (ended(three(), "a", "worse"), "a", "a is a dead end already: m adds a note"),
        (play(three(), give_up("a")), "a", "a is a dead end already: m adds a note"),
    ],
)
def test_what_cannot_be_given_up(state: State, name: str, why: str) -> None:
    assert refusal(state, give_up(name)) == why
    with pytest.raises(Refused, match=why.partition(":")[0]):
        reduce(state, give_up(name))


def test_a_worse_one_with_heirs_is_a_result_until_it_is_given_up() -> None:
    state = ended(plan({"id": "a"}, {"id": "child", "based_on": "a"}), "a", "worse")
    assert place_of(state, state.experiments["a"]) is Place.RESULTS
    state = play(state, give_up("a"))
    assert place_of(state, state.experiments["a"]) is Place.DEAD_ENDS


# --- words


def test_notes_are_kept_in_their_order_and_marked_on_the_board() -> None:
    state = play(three(), note("a", "one"), replace(note("a", "two"), at=220.0))
    assert [(n.at_s, n.text) for n in details(state, "a", 300.0).notes] == [(50.0, "one"), (120.0, "two")]
    assert row_of(state, "a").noted and not row_of(state, "b").noted


def test_a_note_is_taken_back_once() -> None:
    before = play(three(), note("a", "one"), replace(note("a", "two"), at=220.0))
    back = ev.NoteTakenBack(at=230.0, experiment="a", written_at=220.0)
    state = play(before, back)
    assert [n.text for n in details(state, "a", 300.0).notes] == ["one"]
    assert refusal(before, replace(back, experiment="b")) == "b has no such note any more"
    with pytest.raises(Refused, match="no such note any more"):
        reduce(state, back)
    state = play(state, replace(back, written_at=AT))
    assert not row_of(state, "a").noted


def test_what_is_to_do_in_words_holds_up_nothing() -> None:
    state = play(three(), ev.TodoAdded(at=AT, text="check power limits tonight"), ev.TodoAdded(at=AT, text="call"))
    assert launches_of(state) == ["base", "a", "b", "c"]
    assert [(r.glyph, r.text, r.todo) for r in board_view(state)[0].rows][-2:] == [
        ("☐", "check power limits tonight", 0),
        ("☐", "call", 1),
    ]
    done = play(state, ev.TodoTicked(at=AT, todo=1, done=True))
    assert [(r.glyph, r.text) for r in board_view(done)[0].rows][-1] == ("☑", "done: call")
    assert play(done, ev.TodoTicked(at=AT, todo=1, done=False)) == state
    all_ended = done
    for name in done.experiments:
        all_ended = ended(all_ended, name, "no-gain")
    assert all_ended.finished and [s.place for s in board_view(all_ended)] == [Place.TODO, Place.RESULTS]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (note("a", ""), "one line"),
        (note("a", "two\nlines"), "one line"),
        (note("a", "x" * (LONGEST + 1)), f"at most {LONGEST}"),
        (give_up("a", " "), "one line"),
        (note("nope"), "there is no experiment nope"),
        (ev.TodoAdded(at=AT, text="\x1b[31m"), "one line"),
        (ev.TodoTicked(at=AT, todo=0, done=False), "it is open already"),
        (ev.TodoTicked(at=AT, todo=7, done=True), "no such thing"),
        (ev.TodoTicked(at=AT, todo=-1, done=True), "no such thing"),
    ],
)
def test_words_that_are_none_are_refused(edit: ev.Event, why: str) -> None:
    state = play(three(), ev.TodoAdded(at=AT, text="call"))
    assert why in str(refusal(state, edit))
    with pytest.raises(IllegalTransition, match=why):
        reduce(state, edit)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (move("b", "a"), "moved by hand, before a"),
        (move("a", "b"), "moved by hand, behind b"),
        (change("a", tp="4", env={"API_KEY": "hunter2hunter2"}), "changed by hand: --tp 4 API_KEY=‹hidden›"),
        (give_up("a"), "a dead end by hand: it swaps"),
        (note("a"), "note: the fans were loud"),
        (ev.TodoAdded(at=AT, text="call"), "to do                    call"),
    ],
)
def test_each_edit_has_a_line(edit: ev.Event, line: str) -> None:
    state = three()
    assert line in str(line_of(state, edit, play(state, edit)))


# --- all of it at once


class Edited(Shuffled):
    """A person who edits the plan whenever there is time to; what is refused is refused in words."""

    def _meddle(self, state: State, data: st.DataObject) -> ev.Event | None:
        if data.draw(st.integers(0, 2)) == 0:
            return super()._meddle(state, data)
        edit = data.draw(edits(state))
        if (reason := refusal(state, edit)) is None:
            return edit
        assert reason and "\n" not in reason
        with pytest.raises(Refused):
            reduce(state, edit)
        return None


def _noted(state: State) -> list[float]:
    """When notes were written that are still there, and a time when none was."""
    return [0.0, *(note.at for experiment in state.experiments.values() for note in experiment.notes)]


def edits(state: State) -> st.SearchStrategy[ev.Event]:
    """Any edit, possible or not."""
    name, at = st.sampled_from(sorted(state.experiments)), st.just(state.now)
    args = st.dictionaries(st.sampled_from(["tp", "ep-size"]), st.sampled_from(["1", "2", None]))
    words = st.sampled_from(["", "some words"])
    todo = st.integers(-1, 2)
    return st.one_of(
        st.builds(ev.ExperimentMoved, at=at, experiment=name, past=name),
        st.builds(ev.ExperimentChanged, at=at, experiment=name, args=args, env=st.just({}), why=words),
        st.builds(ev.DeadEndMarked, at=at, experiment=name, reason=words),
        st.builds(ev.NoteWritten, at=at, experiment=name, text=words),
        st.builds(ev.NoteTakenBack, at=at, experiment=name, written_at=st.sampled_from(_noted(state))),
        st.builds(ev.TodoAdded, at=at, text=words),
        st.builds(ev.TodoTicked, at=at, todo=todo, done=st.booleans()),
    )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_edits_at_any_time_leave_a_plan_that_ends_and_a_journal_that_tells_it(data: st.DataObject) -> None:
    edited = Edited()
    book: Playbook = book_for_chaos(data.draw(st.sampled_from([1, 3])))
    state = edited.play_randomly(book, data)
    assert state.ending in ("completed", "interrupted")
    for experiment in state.experiments.values():
        assert not experiment.given_up or experiment.stage is Stage.ENDED
    first, *rest = [decode(json.loads(json.dumps(encode(event)))) for event in edited.events]
    assert isinstance(first, ev.SessionStarted)
    folded = initial(first)
    for event in rest:
        folded, _ = reduce(folded, event)
    assert folded == state and list(folded.experiments) == list(state.experiments)
    assert board_view(folded) == board_view(state)
