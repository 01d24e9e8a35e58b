"""The dialogs: by keyboard alone, with safe answers first, at 80x24."""

import pytest

from agent.core import events as ev
from agent.playbook.model import AskEntry, GrepEntry
from tests.tui.stage import UNSET, Recorder, on_stage, type_text, until
from tests.tui.states import HOSTILE, begun, ended, loading, play
from tui.dialogs import AskDialog, ConfirmDialog, DetachDialog, GrepDialog, NewDialog, QuitDialog

SMALL = (80, 24)
FLAGS = (("tp", "tensor-parallel-size"), ("cuda-graph-max-bs",), ("enable-torch-compile",))


async def given(app, pilot):
    await until(pilot, lambda: app.result is not UNSET)
    return app.result


@pytest.mark.parametrize(
    "make",
    [
        lambda s: AskDialog("base"),
        lambda s: GrepDialog("base", s),
        lambda s: NewDialog("base", s),
        lambda s: QuitDialog(s),
        lambda s: DetachDialog(s),
    ],
)
async def test_escape_changes_nothing(make):
    state = begun()
    async with on_stage(Recorder(state), make(state), SMALL) as (app, pilot):
        await pilot.press("escape")
        assert await given(app, pilot) is None


async def test_a_question():
    async with on_stage(Recorder(begun()), AskDialog("idea"), SMALL) as (app, pilot):
        assert "idea" in app.text
        await type_text(pilot, "x")
        await pilot.press("enter")
        await until(pilot, lambda: "at least three characters" in app.text)
        await type_text(pilot, "yz [b]?")
        await pilot.press("enter")
        entry = AskEntry.model_validate({"ask": "xyz [b]?"})
        assert await given(app, pilot) == ev.ResearchAdded(at=1000.0, experiment="idea", entry=entry)


async def test_a_search_in_all_sources_or_in_some():
    state = begun()
    async with on_stage(Recorder(state), GrepDialog("idea", state), SMALL) as (app, pilot):
        assert "sglang: flashinfer:" in app.text
        await pilot.press("enter")
        await until(pilot, lambda: "a pattern is needed" in app.text)
        await type_text(pilot, "a2a|b")
        await pilot.press("tab", "end")
        await type_text(pilot, "srt nope:")
        await pilot.press("enter")
        await until(pilot, lambda: "there is no source 'nope'" in app.text)
        await pilot.press(*["backspace"] * 6, "enter")
        entry = GrepEntry.model_validate({"grep": {"pattern": "a2a|b", "in": ["sglang:", "flashinfer:srt"]}})
        assert await given(app, pilot) == ev.ResearchAdded(at=1000.0, experiment="idea", entry=entry)


async def test_a_new_experiment_with_its_problems_and_its_diff_as_one_types():
    state = begun()
    async with on_stage(Recorder(state), NewDialog("base", state, FLAGS), SMALL) as (app, pilot):
        await type_text(pilot, "tpp=4")
        await until(pilot, lambda: "did you mean 'tp'?" in app.text)
        await pilot.press("enter")
        assert app.result is UNSET
        await pilot.press(*["backspace"] * 3)
        await type_text(pilot, "=4 -cuda-graph-max-bs ENV:A=b")
        await until(pilot, lambda: "~ --tp" in app.text and "4 was 8" in app.text)
        assert "- --cuda-graph-max-bs" in app.text and "+ A" in app.text
        await until(pilot, lambda: "tp-4-no-cuda-graph-max-bs-a-b" in app.text)
        await pilot.press("tab", "home", "ctrl+k")
        await type_text(pilot, "base")
        await until(pilot, lambda: "an experiment 'base' already" in app.text)
        await type_text(pilot, "-2")
        await pilot.press("tab")
        await type_text(pilot, "because")
        await pilot.press("enter")
        result = await given(app, pilot)
        assert isinstance(result, ev.ExperimentAdded)
        assert (result.spec.id, result.spec.based_on, result.spec.why) == ("base-2", "base", "because")
        assert (result.spec.args, result.spec.env) == ({"tp": "4", "cuda-graph-max-bs": None}, {"A": "b"})
        play(state, result)


async def test_an_id_that_a_person_wrote_stays():
    state = begun()
    async with on_stage(Recorder(state), NewDialog("base", state), SMALL) as (app, pilot):
        await pilot.press("tab", "home", "ctrl+k")
        await type_text(pilot, "mine")
        await pilot.press("shift+tab")
        await type_text(pilot, "tp=4")
        await pilot.press("enter")
        assert (await given(app, pilot)).spec.id == "mine"


async def test_an_id_that_was_taken_meanwhile_is_a_problem():
    state = begun()
    source = Recorder(state)
    async with on_stage(source, NewDialog("base", state), SMALL) as (app, pilot):
        await type_text(pilot, "tp=4")
        spec = state.experiments["idea"].spec.model_copy(update={"id": "tp-4"})
        source.state = play(state, ev.ExperimentAdded(at=101.0, spec=spec))
        await pilot.press("enter")
        await until(pilot, lambda: "an experiment 'tp-4' already" in app.text)
        assert app.result is UNSET


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("enter",), False),
        (("escape",), False),
        (("n",), False),
        (("y",), True),
        (("right", "enter"), True),
        (("tab", "enter"), True),
        (("right", "left", "enter"), False),
        (("pagedown", "pageup", "enter"), False),
    ],
)
async def test_yes_is_never_the_first_answer(keys, answer):
    async with on_stage(Recorder(begun()), ConfirmDialog("Skip it?"), SMALL) as (app, pilot):
        assert "Skip it?" in app.text
        await pilot.press(*keys)
        assert await given(app, pilot) is answer


async def test_a_long_question_scrolls_and_keeps_its_buttons():
    text = "\n".join(f"line {n}" for n in range(200))
    async with on_stage(Recorder(begun()), ConfirmDialog(text), SMALL) as (app, pilot):
        assert "Yes" in app.text and "line 199" not in app.text
        await pilot.press(*["pagedown"] * 20)
        await until(pilot, lambda: "line 199" in app.text and "Yes" in app.text)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("k",), True),
        (("s",), False),
        (("enter",), None),
        (("escape",), None),
        (("c",), None),
        (("right", "enter"), True),
        (("right", "right", "enter"), False),
        (("tab", "tab", "enter"), False),
    ],
)
async def test_leaving_with_a_server_up(keys, answer):
    state = loading(begun(), "base", "s-01", 110.0)
    async with on_stage(Recorder(state), QuitDialog(state), SMALL) as (app, pilot):
        assert "The server of base is up" in app.text and "Keep" in app.text
        await pilot.press(*keys)
        assert await given(app, pilot) is answer


@pytest.mark.parametrize(
    ("keys", "answer"), [(("enter",), None), (("l",), False), (("k", "escape"), None), (("right", "enter"), False)]
)
async def test_leaving_without_a_server_asks_nothing_about_one(keys, answer):
    state = ended()
    async with on_stage(Recorder(state), QuitDialog(state), SMALL) as (app, pilot):
        assert "Keep" not in app.text and "2 experiments have not ended" in app.text
        await pilot.press(*keys)
        assert await given(app, pilot) is answer


async def test_leaving_with_nothing_at_stake_asks_nothing():
    state = play(begun(), ev.SessionEnded(at=200.0, ending="interrupted", serving=None))
    async with on_stage(Recorder(state), QuitDialog(state), SMALL) as (app, pilot):
        assert await given(app, pilot) is False


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (("enter",), False),
        (("d",), False),
        (("e",), True),
        (("escape",), None),
        (("n",), None),
        (("right", "enter"), True),
        (("right", "right", "enter"), None),
    ],
)
async def test_leaving_a_session_that_runs_elsewhere_stops_nothing_at_first(keys, answer):
    state = loading(begun(), "base", "s-01", 110.0)
    async with on_stage(Recorder(state), DetachDialog(state), SMALL) as (app, pilot):
        assert "The server of base is up" in app.text and "the session goes on" in app.text
        assert "cancelled" not in app.text
        await pilot.press(*keys)
        assert await given(app, pilot) is answer


ALL_HOSTILE = " ".join(text[:5000] for text in HOSTILE)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: ConfirmDialog(ALL_HOSTILE),
        lambda s: QuitDialog(s),
        lambda s: DetachDialog(s),
        lambda s: GrepDialog("base", s),
        lambda s: NewDialog("idea", s),
    ],
)
async def test_text_that_tries_to_act_is_only_text(make):
    state = loading(begun(ALL_HOSTILE), "base", "s-01", 110.0)
    async with on_stage(Recorder(state), make(state), SMALL) as (app, pilot):
        for line in range(4, 16, 2):
            assert "\x1b" not in app.text and "\u202e" not in app.text
            await pilot.click(offset=(12, line))
        assert app.is_running and app.copied == ""
