"""The start screen: what is at hand, and what a key on it chooses."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from textual.pilot import Pilot

from agent.core.views.entries import PlaybookEntry, SessionEntry, Standing
from tui.screens.start import AT_A_TIME, Choice, Entries
from tui.start_app import StartApp

DEMO = PlaybookEntry(file="demo", name="demo-kimi-k2.5", target="simulated", experiments=10, shipped=True)
MINE = PlaybookEntry(file="playbooks/mine.yaml", name="mine", target="gpu8", experiments=3, shipped=False)
BROKEN = PlaybookEntry(file="broken.yaml", name="broken.yaml", target="", experiments=0, shipped=False, problems=2)


def session(number: int, standing: Standing = "completed", name: str = "kimi") -> SessionEntry:
    return SessionEntry(
        folder=f"logs/20261130-{number:06}-kimi-0000",
        name=name,
        when="2026-11-30 10:15",
        standing=standing,
        host="simulated",
        simulated=True,
        lasted_s=127.0,
        ended=12,
        experiments=12,
        best="ep-plain",
        value="101.2 ±0.9 tok/s",
        change="+13.1 %",
        command="NCCL_P2P_LEVEL=SYS python3 -m sglang.launch_server --ep-size 8",
        problem="logs/x/journal.jsonl:3: the record is damaged" if standing == "unreadable" else "",
    )


def app(*sessions: SessionEntry, chosen: str = "") -> StartApp:
    return StartApp([BROKEN, MINE, DEMO], iter(sessions), chosen)


async def until(predicate: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not predicate():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def text(pilot: Pilot[Choice]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def shown(pilot: Pilot[Choice], words: str) -> None:
    await until(lambda: words in text(pilot))


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
async def test_everything_fits_its_line(size: tuple[int, int]) -> None:
    standings: tuple[Standing, ...] = (
        "completed", "interrupted", "target-lost", "running", "not ended", "unreadable",
    )  # fmt: skip
    found = [session(number, standing, "a-name-" * 9) for number, standing in enumerate(standings)]
    async with app(*found).run_test(size=size) as pilot:
        await shown(pilot, "unreadable")
        entries = pilot.app.screen.query_one(Entries)
        # Two headings and the rule between them are one line each, as is every entry.
        assert entries.virtual_size.height == 3 + 3 + len(found)
        for standing in standings:
            assert standing in text(pilot)
        assert ("SIMULATED" if size[0] >= 120 else " sim") in text(pilot)


async def test_enter_runs_a_playbook() -> None:
    start = app(session(1))
    async with start.run_test() as pilot:
        await pilot.press("down", "enter")
        await pilot.pause()
    assert start.return_value == Choice(MINE)


async def test_a_playbook_with_problems_does_not_run() -> None:
    start = app()
    async with start.run_test() as pilot:
        await pilot.press("enter")
        await shown(pilot, "tunebot check broken.yaml")
        await pilot.press("q")
    assert start.return_value is None


async def test_enter_reviews_a_session() -> None:
    start = app(session(1), session(2))
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "completed")
        await pilot.press("j", "j", "j", "j", "k")
        await shown(pilot, "best: ep-plain  101.2 ±0.9 tok/s  +13.1 %  SIMULATED")
        assert "12 of 12 experiments ended" in text(pilot) and "completed after 2:07" in text(pilot)
        await pilot.press("enter")
        await pilot.pause()
    assert start.return_value == Choice(session(1))


async def test_a_click_chooses() -> None:
    start = app()
    async with start.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(Entries, offset=(5, 3))
        await pilot.pause()
    assert start.return_value == Choice(DEMO)


async def test_a_session_without_an_end_says_what_can_be_done() -> None:
    start = app(session(1, "not ended"))
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "not ended")
        await pilot.press("end")
        await shown(pilot, "interrupted without an end; tunebot resume goes on with it")
        await pilot.press("enter")
        await pilot.pause()
    assert start.return_value == Choice(session(1, "not ended"))


async def test_an_unreadable_session_says_why() -> None:
    start = app(session(1, "unreadable"))
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "unreadable")
        await pilot.press("end", "enter")
        await shown(pilot, "the record is damaged")
    assert start.return_value is None


async def test_the_cursor_is_where_one_came_from() -> None:
    start = app(*map(session, range(20)), chosen=f"session {session(15).folder}")
    async with start.run_test() as pilot:
        await shown(pilot, session(15).folder)
        await pilot.press("enter")
        await pilot.pause()
    assert start.return_value == Choice(session(15))


async def test_the_list_is_there_while_sessions_are_read() -> None:
    go_on = threading.Event()

    def slow() -> Iterator[SessionEntry]:
        for number in range(AT_A_TIME + 1):
            if number == AT_A_TIME:
                go_on.wait(10)
            yield session(number)

    start = StartApp([MINE, DEMO], slow())
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "completed")
        entries = pilot.app.screen.query_one(Entries)
        await pilot.press("down")
        place, count = entries.highlighted, entries.option_count
        go_on.set()
        await until(lambda: entries.option_count == count + 1)
        assert entries.highlighted == place, "what is found later moves nothing"


async def test_no_sessions_yet() -> None:
    async with app().run_test() as pilot:
        await shown(pilot, "none yet")


async def test_names_are_no_markup() -> None:
    async with app(session(1, name="[/nope] [red]x")).run_test(size=(120, 40)) as pilot:
        await shown(pilot, "[/nope] [red]x")
        await pilot.press("end")
        await pilot.pause()
        assert text(pilot).count("[/nope] [red]x") == 2


async def test_a_new_size_redraws_the_lines() -> None:
    async with app(session(1)).run_test(size=(80, 24)) as pilot:
        await shown(pilot, " sim")
        await pilot.resize_terminal(130, 40)
        await shown(pilot, "SIMULATED")


@pytest.mark.parametrize(
    ("standing", "key", "what"),
    [
        ("not ended", "r", "resume"),
        ("interrupted", "r", "resume"),
        ("target-lost", "r", "resume"),
        ("running", "a", "attach"),
        ("running", "enter", "open"),
    ],
)
async def test_a_session_that_can_go_on_is_gone_on_with(
    standing: Standing, key: str, what: Literal["open", "resume", "attach"]
) -> None:
    start = app(session(1, standing))
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, standing)
        await pilot.press("end")
        await shown(pilot, f"tunebot {'attach' if standing == 'running' else 'resume'} ")
        await shown(pilot, f" {key} " if key != "enter" else " a attach")
        await pilot.press(key)
        await pilot.pause()
    assert start.return_value == Choice(session(1, standing), what)


@pytest.mark.parametrize("standing", ["completed", "unreadable"])
async def test_what_is_complete_does_not_go_on(standing: Standing) -> None:
    start = app(session(1, standing))
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, standing)
        await pilot.press("end", "r", "a")
        await pilot.pause()
        assert " resume" not in text(pilot).splitlines()[-1] and pilot.app.is_running
        await pilot.press("q")
    assert start.return_value is None
