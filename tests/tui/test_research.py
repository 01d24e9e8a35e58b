"""The research view: what is in the list, what of one task, and its keys."""

import pytest

from agent.core import events as ev
from agent.core.model import Finding
from tests.tui.stage import Recorder, on_stage, until
from tests.tui.states import HOSTILE, begun, play, researched
from tui.screens.research import ResearchScreen

SIZES = [(80, 24), (100, 30), (120, 40), (200, 60)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_list_and_the_first_task_in_full(size):
    async with on_stage(Recorder(researched()), ResearchScreen(), size) as (app, _):
        for word in ("RUNNING", "◐ running", "✔ done", "! needs key", "grep", "sglang:a.py", "build", "later"):
            assert word in app.text, word
        assert all(len(line) <= size[0] for line in app.text.splitlines())


@pytest.mark.parametrize("keys", [("down", "down"), ("j", "j"), ("end",), ("pagedown",)])
async def test_keys_choose_and_the_transcript_follows(keys):
    async with on_stage(Recorder(researched()), ResearchScreen()) as (app, pilot):
        await pilot.press(*keys)
        await until(pilot, lambda: "the source demands" in app.text)
        assert "+ --moe-runner-backend cutlass" in app.text
        assert "assert moe_runner_backend in" in app.text
        await pilot.press("home")
        await until(pilot, lambda: "the source demands" not in app.text)


async def test_enter_goes_to_the_text_and_back():
    async with on_stage(Recorder(researched()), ResearchScreen()) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is app.screen.query_one("#transcript"))
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is app.screen.query_one("#tasks"))
        await pilot.press("escape")
        assert not isinstance(app.screen, ResearchScreen)


async def test_the_choice_survives_updates_wherever_its_task_moves():
    source = Recorder(researched())
    async with on_stage(source, ResearchScreen()) as (app, pilot):
        tasks = app.screen.query_one("#tasks")
        assert tasks.chosen == "idea/1"
        done = ev.TaskFinished(at=500.0, task="idea/1", status="done", finding=Finding(summary="found it"))
        app.refresh_state(play(source.state, done))
        await until(pilot, lambda: "found it" in app.text)
        assert tasks.chosen == "idea/1" and app.focused is tasks
        await pilot.press("down")
        assert tasks.chosen == "build/1"


async def test_x_cancels_a_running_task_only():
    source = Recorder(researched())
    async with on_stage(source, ResearchScreen()) as (_, pilot):
        await pilot.press("x")
        assert source.submitted == [ev.TaskAbandoned(at=1000.0, task="idea/1")]
        await pilot.press("down", "x")
        assert len(source.submitted) == 1


async def test_a_recording_cancels_nothing():
    source = Recorder(researched(), read_only="a recording")
    async with on_stage(source, ResearchScreen()) as (_, pilot):
        await pilot.press("x")
        assert source.submitted == []


async def test_a_click_chooses():
    async with on_stage(Recorder(researched()), ResearchScreen()) as (app, pilot):
        line = next(n for n, text in enumerate(app.text.splitlines()) if "needs key" in text)
        await pilot.click(offset=(6, line))
        await until(pilot, lambda: app.screen.query_one("#tasks").chosen == "build/1")


async def test_nothing_yet():
    async with on_stage(Recorder(begun()), ResearchScreen()) as (app, pilot):
        assert "nothing was looked up yet" in app.text
        await pilot.press("x", "enter", "down", "up")
        app.refresh_state(researched())
        await until(pilot, lambda: "RUNNING" in app.text)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
async def test_text_that_tries_to_act_is_only_text(text):
    source = Recorder(researched(text))
    async with on_stage(source, ResearchScreen(), (80, 24)) as (app, pilot):
        for key in ("down", "down", "enter", "end", "enter", "up"):
            await pilot.press(key)
            assert "\x1b" not in app.text and "\u202e" not in app.text
        for line in range(2, 22, 3):
            await pilot.click(offset=(20, line))
        assert app.is_running and app.copied == "" and source.submitted == []
