"""Telemetry: asked for once a second while a launch is up, quiet otherwise, gone with the session."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent import telemetry as module
from agent.core.state import State
from agent.core.views.panels import GpuUse
from agent.ports import CommandResult, TargetUnusable
from agent.telemetry import telemetry
from tests.tui.kit import story

ANSWER = b"0, 88064, 97887, 97, 330.10\n"


class Smi:
    """A target that only knows nvidia-smi."""

    def __init__(self, *answers: CommandResult | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def run(self, argv: Sequence[str], *, timeout_s: float, **_: Any) -> CommandResult:
        """The next answer; the last one again and again."""
        assert argv[0] == "nvidia-smi" and timeout_s > 0
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def until(holds: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is too long for a test."""
    monkeypatch.setattr(module, "EVERY_S", 0.005)


async def test_errors_mean_that_nothing_is_known() -> None:
    good = CommandResult(exit_code=0, output=ANSWER)
    target = Smi(
        good,
        TargetUnusable("no such program"),
        CommandResult(exit_code=9, output=ANSWER),
        CommandResult(exit_code=None, output=ANSWER, timed_out=True),
        CommandResult(exit_code=0, output=b"\xff\xfe garbage"),
        good,
    )
    told: list[tuple[GpuUse, ...]] = []
    async with telemetry(target, lambda: story("loading").state, told.append, lambda: True):  # type: ignore[arg-type]
        await until(lambda: len(told) >= 6)
    known = GpuUse(index=0, used_mib=88064, total_mib=97887, busy=0.97, power_w=330.1)
    assert told[:6] == [(known,), (), (), (), (), (known,)]


@pytest.mark.parametrize("moment", ["start", "measuring", "finished"])
async def test_nothing_is_asked_where_nothing_is_up_or_a_round_is_measured(moment: str) -> None:
    target = Smi(CommandResult(exit_code=0, output=ANSWER))
    looked = 0

    def state() -> State:
        nonlocal looked
        looked += 1
        return story(moment).state

    async with telemetry(target, state, lambda _: None, lambda: True):  # type: ignore[arg-type]
        await until(lambda: looked >= 5)
    assert target.asked == 0


async def test_nothing_is_asked_while_nobody_looks() -> None:
    target = Smi(CommandResult(exit_code=0, output=ANSWER))
    looked = 0

    def wanted() -> bool:
        nonlocal looked
        looked += 1
        return False

    async with telemetry(target, lambda: story("loading").state, lambda _: None, wanted):  # type: ignore[arg-type]
        await until(lambda: looked >= 5)
    assert target.asked == 0
