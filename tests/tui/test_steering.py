"""The keys with which a person changes the plan: each of them, at both sizes, and why not where it cannot be."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from agent.core import events as ev
from agent.core.model import Finding
from agent.core.views.flag_help import FlagFacts
from tests.core.conftest import playbook
from tests.tui.kit import Session, story, until
from tests.tui.stage import UNSET, Recorder, on_stage, type_text
from tests.tui.states import begun
from tests.tui.test_run_screen import Shown, shown
from tui.dialogs.confirm import ConfirmDialog
from tui.dialogs.line import LineDialog
from tui.dialogs.new import ChangeDialog, NewDialog
from tui.screens.details import DetailsScreen
from tui.screens.run import RunScreen

SMALL = (80, 24)
FLAGS = (("tp", "tensor-parallel-size"), ("cuda-graph-max-bs",), ("moe-a2a-backend",), ("ep-size",))


def text_of(s: Shown) -> str:
    strips = s.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def write(s: Shown, words: str) -> None:
    """Type into the dialog that comes up, and press enter."""
    await until(s.pilot, lambda: isinstance(s.app.screen, LineDialog))
    field = s.app.screen.query_one(Input)
    field.value = words
    await s.press("enter")
    await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
    await s.drawn()


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_order_is_changed_and_the_cursor_stays(size: tuple[int, int]) -> None:
    async with shown(story("loading"), size) as s:
        await s.at("ep-plain")
        await s.press("K")
        assert s.session.submitted == [ev.ExperimentMoved(at=s.session.now(), experiment="ep-plain", past="eagle3")]
        await s.drawn()
        rows = [row.experiment for section in s.board._sections for row in section.rows]
        assert s.board.cursor == "ep-plain" and rows[:4] == ["baseline", "ep-plain", "eagle3", "cuda13"]
        await s.press("K")
        assert s.told == ["ep-plain stands at the end of the line"]
        await s.press("J", "J")
        assert list(s.session.state.experiments)[-1] == "ep-plain"


@pytest.mark.parametrize(
    ("experiment", "key", "told"),
    [
        ("baseline", "J", "baseline has ended: r tries it again"),
        ("baseline", "E", "baseline has ended: n makes another one"),
        ("baseline", "d", "baseline is the baseline: all others are compared with it"),
        ("ep-plain", "K", "ep-plain has begun"),
        ("ep-plain", "E", "ep-plain has begun: n makes another one"),
        ("ep-plain", "d", "ep-plain runs: e ends its launch"),
        ("eagle3", "d", "eagle3 is a dead end already: m adds a note"),
        ("cuda13", "space", "space ticks off what t wrote down"),
    ],
)
async def test_what_cannot_be_done_is_said(experiment: str, key: str, told: str) -> None:
    async with shown(story("third")) as s:
        await s.at(experiment)
        await s.press(key)
        assert s.session.submitted == [] and s.told == [told]


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_words_to_do_are_written_down_and_ticked_off(size: tuple[int, int]) -> None:
    async with shown(story("third"), size) as s:
        await s.press("t")
        await write(s, "check power limits  [b]tonight[/b]")
        await s.at("todo:0")
        assert "☐ check power limits [b]tonight[/b]" in text_of(s)
        for key in ("enter", "s", "E", "J", "d", "m"):
            await s.press(key)
        assert set(s.told) == {"these are words, no experiment: space ticks them off"}
        await s.press("space")
        await s.drawn()
        assert "☑ done: check power limits" in text_of(s)
        await s.press("space")
        await s.drawn()
        assert "☐ check power limits" in text_of(s) and s.board.cursor == "todo:0"
        assert [type(event) for event in s.session.submitted] == [ev.TodoAdded, ev.TodoTicked, ev.TodoTicked]


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_a_dead_end_by_hand_and_back(size: tuple[int, int]) -> None:
    async with shown(story("third"), size) as s:
        await s.at("cuda13")
        await s.press("d")
        await write(s, "no driver for it")
        assert s.session.submitted[-1] == ev.DeadEndMarked(
            at=s.session.now(), experiment="cuda13", reason="no driver for it"
        )
        assert "✖ cuda13" in text_of(s) and "by hand" in text_of(s) and s.board.cursor == "cuda13"
        await s.press("enter")
        await until(s.pilot, lambda: isinstance(s.app.screen, DetailsScreen))
        await until(s.pilot, lambda: "by hand  no driver for it" in text_of(s))
        await s.press("escape", "r")
        await s.drawn()
        assert "○ cuda13" in text_of(s)


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_a_note_is_marked_on_the_board_and_shown_on_the_page(size: tuple[int, int]) -> None:
    async with shown(story("third"), size) as s:
        await s.at("baseline")
        await s.press("m")
        await write(s, "the fans were loud")
        assert "baseline ✎" in text_of(s)
        await s.press("enter")
        await until(s.pilot, lambda: "Notes" in text_of(s) and "the fans were loud" in text_of(s))


async def test_nothing_is_written_without_words() -> None:
    async with shown(story("third"), SMALL) as s:
        await s.press("m")
        await until(s.pilot, lambda: isinstance(s.app.screen, LineDialog))
        await s.press("space", "enter")
        await until(s.pilot, lambda: "a few words are needed" in text_of(s))
        await s.press("escape")
        await until(s.pilot, lambda: isinstance(s.app.screen, RunScreen))
        assert s.session.submitted == []


# --- the form


@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_the_form_is_filled_with_what_an_experiment_has(size: tuple[int, int]) -> None:
    state = begun()
    async with on_stage(Recorder(state), ChangeDialog("idea", state, FLAGS), size) as (app, pilot):
        assert "Change idea, based on base" in app.text and "✖" not in app.text
        assert "-cuda-graph-max-bs" in app.text and "plain words" in app.text
        await pilot.press("enter")
        await until(pilot, lambda: "✖ nothing is changed yet" in app.text)
        await pilot.press("end")
        await type_text(pilot, " ep-size=2")
        await until(pilot, lambda: "+ --ep-size" in app.text)
        await pilot.press("enter")
        await until(pilot, lambda: app.result is not UNSET)
        args = {**state.experiments["idea"].spec.args, "ep-size": "2"}
        assert app.result == ev.ExperimentChanged(at=1000.0, experiment="idea", args=args, env={}, why="plain words")


async def test_help_for_the_flag_that_is_typed() -> None:
    facts = FlagFacts(names=("tp",), takes="int", choices=(), default="1", help="How many [b]GPUs[/b].")
    source = Recorder(begun(), flag_facts=lambda name: facts if name == "tp" else None)
    async with on_stage(source, NewDialog("base", source.state, FLAGS), SMALL) as (app, pilot):
        await type_text(pilot, "moe")
        await until(pilot, lambda: "moe-a2a-backend" in app.text)
        await type_text(pilot, "-a2a-backend=x tp=4")
        await until(pilot, lambda: "tp takes int; default 1" in app.text and "How many [b]GPUs[/b]." in app.text)
        await pilot.press("home")
        await until(pilot, lambda: "moe-a2a-backend is a flag of this server" in app.text)


async def test_what_began_meanwhile_is_not_changed() -> None:
    state = begun()
    source = Recorder(state)
    async with on_stage(source, ChangeDialog("idea", state, FLAGS), SMALL) as (app, pilot):
        source.state = state.with_experiment("idea", prepared=1)
        await pilot.press("end")
        await type_text(pilot, " ep-size=2")
        await pilot.press("enter")
        await until(pilot, lambda: "✖ idea has begun" in app.text)
        assert app.result is UNSET


async def test_a_secret_is_not_shown_in_a_form() -> None:
    book = playbook({"id": "baseline"}, {"id": "later", "env": {"API_KEY": "very-secret-value"}})
    async with shown(Session(book).begin()) as s:
        await s.at("later")
        await s.press("E")
        assert s.told == ["later holds a secret: change it in the playbook"]


# --- the editor


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for a person's editor: it runs the Python in this file, with the text in `text`."""
    script, program = tmp_path / "edit.py", tmp_path / "editor.py"
    program.write_text(
        f"""
import pathlib, sys
file = pathlib.Path(sys.argv[1])
assert file.stat().st_mode & 0o077 == 0
scope = {{"text": file.read_text()}}
exec(pathlib.Path({str(script)!r}).read_text(), scope)
file.write_text(scope["text"])
"""
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {program}")
    monkeypatch.setattr("textual.app.App.suspend", lambda app: nullcontext())
    return script


async def test_the_editor_has_the_yaml_and_what_it_says_is_taken(editor: Path) -> None:
    editor.write_text("text = text.replace(\"tp: '4'\", 'tp: 2')")
    state = begun()
    async with on_stage(Recorder(state, known_flags=FLAGS), ChangeDialog("idea", state, FLAGS), SMALL) as (app, pilot):
        await pilot.press("ctrl+e")
        await until(pilot, lambda: app.result is not UNSET)
        assert isinstance(app.result, ev.ExperimentChanged) and app.result.args["tp"] == "2"


async def test_a_new_one_in_the_editor_begins_with_what_was_typed(editor: Path) -> None:
    editor.write_text("text = text.replace('ep-size: ', 'tp: 2\\n    ep-size: ')")
    state = begun()
    async with on_stage(Recorder(state, known_flags=FLAGS), NewDialog("base", state, FLAGS), SMALL) as (app, pilot):
        await type_text(pilot, "ep-size=4")
        await pilot.press("ctrl+e")
        await until(pilot, lambda: app.result is not UNSET)
        assert isinstance(app.result, ev.ExperimentAdded)
        assert (app.result.spec.id, app.result.spec.args) == ("ep-size-4", {"tp": "2", "ep-size": "4"})


async def test_problems_are_shown_by_line_and_the_editor_comes_again(editor: Path) -> None:
    editor.write_text("text = text.replace('tpp:', 'ep-size:') if 'tpp:' in text else text.replace('tp:', 'tpp:')")
    state = begun()
    async with on_stage(Recorder(state, known_flags=FLAGS), ChangeDialog("idea", state, FLAGS), SMALL) as (app, pilot):
        await pilot.press("ctrl+e")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog) and "Discard" in app.text)
        assert "sglang has no flag 'tpp'; did you mean 'tp'?" in app.text and "Discard what you wrote?" in app.text
        await pilot.press("enter")
        await until(pilot, lambda: app.result is not UNSET)
        assert isinstance(app.result, ev.ExperimentChanged) and "ep-size" in app.result.args


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("pass", None),
        ("text = ''", None),
        ("raise SystemExit(3)", "ended with status 3: nothing is changed"),
    ],
)
async def test_an_editor_that_changes_nothing_changes_nothing(editor: Path, program: str, told: str | None) -> None:
    editor.write_text(program)
    state = begun()
    async with on_stage(Recorder(state), ChangeDialog("idea", state), SMALL) as (app, pilot):
        await pilot.press("ctrl+e")
        await until(pilot, lambda: not list(app.workers))
        assert app.result is UNSET and isinstance(app.screen, ChangeDialog)
        messages = [note.message for note in app._notifications]
        assert messages == [] if told is None else told in messages[0]


@pytest.mark.parametrize(
    ("visual", "told"),
    [("/nowhere/editor", "cannot be run"), ("'", "is no command"), ("vi", "cannot be lent to an editor")],
)
async def test_an_editor_that_is_none(visual: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", visual)
    if visual != "vi":
        monkeypatch.setattr("textual.app.App.suspend", lambda app: nullcontext())
    state = begun()
    async with on_stage(Recorder(state), ChangeDialog("idea", state), SMALL) as (app, pilot):
        await pilot.press("ctrl+e")
        await until(pilot, lambda: bool(list(app._notifications)))
        assert told in next(iter(app._notifications)).message


async def test_what_cannot_be_typed_is_edited_in_the_editor_at_once(editor: Path) -> None:
    editor.write_text("text = text.replace('why: one', 'why: two')")
    book = playbook({"id": "baseline"}, {"id": "odd", "why": "one", "args": {"moe-a2a-backend": "a\nb"}})
    async with shown(Session(book).begin()) as s:
        await s.at("odd")
        await s.press("E")
        await until(s.pilot, lambda: s.session.submitted)
        assert isinstance(event := s.session.submitted[0], ev.ExperimentChanged) and event.why == "two"


def test_a_check_of_a_changed_experiment_is_told_on_its_page() -> None:
    session = story("begun")
    session.finish_tasks(nccl_tree=Finding(summary="fine", outcome="fine"))
    change: dict[str, Any] = {"args": {}, "env": {"NCCL_ALGO": "allreduce:tree"}, "why": ""}
    session.give(ev.ExperimentChanged(at=session.at, experiment="nccl-tree", **change))
    assert "nccl-tree/check1.2" in session.state.tasks
