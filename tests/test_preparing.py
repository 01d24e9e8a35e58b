"""A prepare step that has begun is waited for, whatever is there already."""

import asyncio
from pathlib import Path
from typing import Any, cast

from agent.core.commands import Prepare
from agent.core.events import Event, PrepareFinished
from agent.effects import TargetEffects
from agent.playbook.model import PrepareStep
from agent.targets.local import LocalTarget

UNUSED: Any = None


def effects(tmp_path: Path) -> TargetEffects:
    target = LocalTarget("here", workdir=tmp_path / "work", home=tmp_path)
    return TargetEffects(target=target, kind=UNUSED, launcher=UNUSED, researcher=UNUSED, bencher=UNUSED, answers=UNUSED)


def prepare(script: str, creates: str) -> Prepare:
    return Prepare("new", 0, PrepareStep(run=("sh", "-c", script), creates=creates), "s-p01")


async def ended(does: TargetEffects, command: Prepare) -> PrepareFinished:
    told: list[Event] = []
    await does.prepare(command, told.append)
    return cast(PrepareFinished, told[0])


async def until_there(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def test_what_a_step_is_still_making_is_not_made(tmp_path: Path) -> None:
    command = prepare("mkdir ~/made; while [ ! -e ~/go ]; do sleep 0.05; done; touch ~/made/whole", "~/made")
    cut_off = asyncio.create_task(ended(effects(tmp_path), command))
    await until_there(tmp_path / "made")
    cut_off.cancel()
    await asyncio.wait([cut_off])
    again = asyncio.create_task(ended(effects(tmp_path), command))
    done, _ = await asyncio.wait([again], timeout=1.0)
    assert not done, "the folder is there, and the step still at it"
    (tmp_path / "go").touch()
    event = await again
    assert event.ok and (tmp_path / "made" / "whole").exists()


async def test_what_a_step_left_that_failed_is_not_made(tmp_path: Path) -> None:
    command = prepare("mkdir ~/made; echo no room; exit 1", "~/made")
    assert not (await ended(effects(tmp_path), command)).ok
    event = await ended(effects(tmp_path), command)
    assert not event.ok and event.summary == "exit 1: no room"


async def test_what_was_there_before_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    event = await ended(effects(tmp_path), prepare("touch ~/ran", "~/made"))
    assert event.ok and event.summary == "~/made exists already"
    assert not (tmp_path / "ran").exists()
