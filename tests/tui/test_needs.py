"""The queue of what waits for a person: a decision is about exactly what is on the screen."""

from contextlib import asynccontextmanager

import pytest

from agent.core import events as ev
from agent.core.needs import Approval, needs
from tests.tui.stage import Recorder, on_stage, until
from tests.tui.states import HOSTILE, begun, ended, play, researched
from tui.screens.needs import NeedsScreen

SIZES = [(80, 24), (100, 30), (120, 40), (200, 60)]
STEPS = [need.needed for need in needs(begun()) if isinstance(need, Approval)]
PLAN = next(need.plan for need in needs(begun()) if isinstance(need, Approval))


@pytest.mark.parametrize("size", SIZES)
async def test_a_step_is_shown_with_all_its_bytes(size):
    async with on_stage(Recorder(researched()), NeedsScreen(), size) as (app, _):
        for word in ("○ approve", "+ accept", "! key", STEPS[0], "local", "venv", "plain words", "creates"):
            assert word in app.text, word


@asynccontextmanager
async def looked_at(source: Recorder, size: tuple[int, int] = (120, 40)):
    """The screen, after a person had a second to read it."""
    async with on_stage(source, NeedsScreen(), size) as (app, pilot):
        source.time = 1001.0
        yield app, pilot


async def test_the_key_that_opened_the_screen_approves_nothing():
    source = Recorder(begun())
    async with on_stage(source, NeedsScreen()) as (_, pilot):
        await pilot.press("y", "y", "d")
        assert source.submitted == []
        source.time += 1.0
        await pilot.press("y")
        assert source.submitted == [ev.ApprovalGiven(at=1001.0, needed=STEPS[0])]


async def test_y_approves_what_is_shown_and_nothing_else():
    source = Recorder(begun())
    async with looked_at(source) as (app, pilot):
        await pilot.press("down")
        await until(pilot, lambda: STEPS[1] in app.text)
        await pilot.press("y")
        assert source.submitted == [ev.ApprovalGiven(at=1001.0, needed=STEPS[1])]


async def test_a_step_that_came_up_by_itself_takes_no_key_at_once():
    source = Recorder(begun())
    async with looked_at(source) as (app, pilot):
        await pilot.press("y")
        app.refresh_state(play(source.state, *source.submitted))
        await until(pilot, lambda: STEPS[1] in app.text)
        await pilot.press("y", "d")
        assert len(source.submitted) == 1
        source.time += 1.0
        await pilot.press("y")
        assert source.submitted[1:] == [ev.ApprovalGiven(at=1002.0, needed=STEPS[1])]


@pytest.mark.parametrize(
    ("keys", "given"),
    [(("y",), [PLAN]), (("n",), []), (("escape",), []), (("enter",), []), (("right", "enter"), [PLAN])],
)
async def test_the_whole_plan_is_shown_before_it_is_approved_by_one_hash(keys, given):
    source = Recorder(begun())
    async with looked_at(source, (80, 24)) as (app, pilot):
        await pilot.press("Y")
        await until(pilot, lambda: all(shown in app.text for shown in (PLAN, *STEPS)))
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(app.screen, NeedsScreen))
        assert source.submitted == [ev.ApprovalGiven(at=1001.0, needed=plan) for plan in given]


async def test_words_that_could_be_misread_are_written_out():
    state = begun("a\nbuild@000000000000  on safe\u202e ")
    async with on_stage(Recorder(state), NeedsScreen()) as (app, pilot):
        assert r"'a\nbuild@000000000000  on safe\u202e '" in app.text
        await pilot.press("Y")
        await until(pilot, lambda: "Approve these 2 steps?" in app.text)
        assert r"a\nbuild@000000000000  on safe\u202e" in app.text


async def test_a_step_that_cannot_be_shown_whole_is_not_approved_here():
    source = Recorder(begun("x" * 9000))
    async with looked_at(source) as (app, pilot):
        assert "too long to be shown whole" in app.text
        await pilot.press("y")
        assert source.submitted == []
        await pilot.press("Y")
        await until(pilot, lambda: "Approve this step?" in app.text)


async def test_a_long_step_is_shown_to_its_end():
    source = Recorder(begun("x" * 7000 + "THE-END"))
    async with looked_at(source) as (app, pilot):
        await pilot.press("enter", "end")
        await until(pilot, lambda: "THE-END" in app.text)


async def test_d_declines_a_step_by_skipping_its_experiment():
    source = Recorder(begun())
    async with looked_at(source) as (app, pilot):
        await pilot.press("d")
        assert source.submitted == [ev.ExperimentSkipped(at=1001.0, experiment="build")]
        app.refresh_state(play(source.state, *source.submitted))
        await until(pilot, lambda: "nothing waits for you" in app.text)
        assert "approve" not in app.text and "back" in app.text, "keys that decide nothing are not shown"
        await pilot.press("y", "Y", "a", "d", "enter", "down")
        assert len(source.submitted) == 1


async def test_a_accepts_flags_that_are_shown_as_a_diff():
    source = Recorder(researched())
    async with looked_at(source) as (app, pilot):
        await pilot.press("a")
        assert source.submitted == []
        await pilot.press("down", "down")
        await until(pilot, lambda: "the source demands" in app.text)
        assert "- --tp 8" in app.text and "+ --tp 2" in app.text and "+ --moe-runner-backend cutlass" in app.text
        await pilot.press("y", "d", "a")
        adds = {"moe-runner-backend": "cutlass", "tp": "2"}
        assert source.submitted == [ev.ExperimentCompleted(at=1001.0, experiment="later", adds=adds, task="later/1")]


async def test_a_question_without_a_key_takes_no_decision():
    source = Recorder(researched())
    async with looked_at(source) as (app, pilot):
        await pilot.press("end")
        await until(pilot, lambda: "was not asked" in app.text)
        await pilot.press("y", "a", "d")
        assert source.submitted == []
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is app.screen.query_one("#need"))
        await pilot.press("escape")
        assert not isinstance(app.screen, NeedsScreen)


async def test_a_recording_decides_nothing():
    source = Recorder(begun(), read_only="a recording")
    async with looked_at(source) as (_, pilot):
        await pilot.press("y", "Y", "a", "d")
        assert source.submitted == []


async def test_the_choice_survives_updates():
    source = Recorder(researched())
    async with looked_at(source) as (app, pilot):
        await pilot.press("down", "down")
        app.refresh_state(play(source.state, ev.ApprovalGiven(at=500.0, needed=STEPS[0])))
        await until(pilot, lambda: STEPS[0] not in app.text)
        assert app.screen.query_one("#queue").chosen == "later/1"
        assert "the source demands" in app.text


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
async def test_text_that_tries_to_act_is_only_text(text):
    source = Recorder(ended(text))
    async with looked_at(source, (80, 24)) as (app, pilot):
        for key in ("down", "down", "down", "enter", "end", "home"):
            await pilot.press(key)
            assert "\x1b" not in app.text and "\u202e" not in app.text
        await pilot.press("Y")
        assert "\x1b" not in app.text
        await pilot.press("n")
        for line in range(1, 22, 3):
            await pilot.click(offset=(20, line))
        assert app.is_running and app.copied == "" and source.submitted == []
