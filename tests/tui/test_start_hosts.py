"""The machines on the start screen: asked only when a person wants it, and never in the way of a key."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from textual.pilot import Pilot

from agent.core.scope import KnownDeadEnd
from agent.core.views.entries import HostAnswer, HostEntry
from tests.test_dead_ends import FUSION
from tests.tui.test_start_screen import DEMO, MINE, session, shown, text
from tui.screens.known import KnownScreen
from tui.screens.start import Choice, Hosts
from tui.start_app import StartApp

LOCAL = HostEntry(name="local", kept="local", where="this machine")
GPU8 = HostEntry(name="gpu8", kept="gpu8", where="ssh root@gpu8", file="targets.yaml", dead_ends=6)
BROKEN = HostEntry(name="targets.yaml", problem="has problems: targets.yaml:3:5: unknown key")


class Machines:
    """Answers when the test says so."""

    def __init__(self, *answers: HostAnswer) -> None:
        self.asked: list[str] = []
        self.answers = list(answers)
        self.go_on = asyncio.Event()

    async def ask(self, name: str) -> HostAnswer:
        self.asked.append(name)
        await self.go_on.wait()
        return self.answers.pop(0)

    def app(self, **changes: Any) -> StartApp:
        def known(name: str) -> Sequence[KnownDeadEnd]:
            return (FUSION,) if name == "gpu8" else ()

        hosts = Hosts(entries=(LOCAL, GPU8, BROKEN), ask=self.ask, known=known)
        return StartApp([MINE, DEMO], iter([session(1)]), hosts=hosts, **changes)


async def to_gpu8(pilot: Pilot[Choice]) -> None:
    await shown(pilot, "gpu8")
    await pilot.press("home", "down", "down", "down")
    await shown(pilot, "gpu8  ssh root@gpu8")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_nothing_is_asked_before_a_person_asks(size: tuple[int, int]) -> None:
    machines = Machines()
    async with machines.app().run_test(size=size) as pilot:
        await to_gpu8(pilot)
        await shown(pilot, "not asked yet: enter asks it")
        assert machines.asked == [] and text(pilot).count("not asked yet") == 3
        assert "has problems: targets.yaml:3:5" in text(pilot)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HostAnswer(usable=True, text="8 x RTX PRO 6000; nobody holds any"), "can be used: 8 x RTX PRO 6000"),
        (HostAnswer(usable=False, text="Connection refused [/x]"), "cannot be used: Connection refused [/x]"),
    ],
)
async def test_keys_work_while_it_is_asked(answer: HostAnswer, words: str) -> None:
    machines = Machines(answer)
    async with machines.app().run_test(size=(120, 40)) as pilot:
        await to_gpu8(pilot)
        await pilot.press("enter")
        await shown(pilot, "◐ gpu8")
        await pilot.press("enter", "up")
        await shown(pilot, "no known dead ends")
        machines.go_on.set()
        await shown(pilot, "✔ gpu8" if answer.usable else "✖ gpu8")
        await pilot.press("down")
        await shown(pilot, words)
        assert machines.asked == ["gpu8"]


async def test_one_may_leave_while_it_is_asked() -> None:
    machines = Machines()
    start = machines.app()
    async with start.run_test(size=(120, 40)) as pilot:
        await to_gpu8(pilot)
        await pilot.press("enter")
        await shown(pilot, "◐ gpu8")
        await pilot.press("q")
    assert start.return_value is None


async def test_x_shows_the_dead_ends_of_a_machine() -> None:
    async with Machines().app().run_test(size=(80, 24)) as pilot:
        await to_gpu8(pilot)
        await pilot.press("x")
        await shown(pilot, "Dead ends on gpu8")
        await shown(pilot, "would fail: no SM12")
        assert isinstance(pilot.app.screen, KnownScreen)
        await pilot.press("escape")
        await shown(pilot, "PLAYBOOKS")


async def test_y_copies_the_best_command_of_a_session() -> None:
    machines = Machines()
    start = machines.app()
    copied: list[str] = []
    start.copy_to_clipboard = copied.append  # type: ignore[method-assign]
    async with start.run_test(size=(120, 40)) as pilot:
        await shown(pilot, "completed")
        await pilot.press("y")
        assert copied == [], "a playbook has none"
        await pilot.press("end")
        await shown(pilot, "python3 -m sglang")
        await pilot.press("y")
        assert [note.message for note in start._notifications] == ["the best launch command is in the clipboard"]
    assert copied == [session(1).command]
