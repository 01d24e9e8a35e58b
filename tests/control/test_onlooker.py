"""A second tunebot on one session: it sees all and changes nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.control import onlooker
from agent.control.onlooker import looking_on
from agent.core import events as ev
from agent.journal.journal import FILE, Journal, JournalError, read_journal
from tests.control import kit
from tests.control.kit import Looker, long_playbook, until
from tests.core.conftest import World, playbook


def same(value: Any) -> Any:
    return value


@pytest.fixture
def events() -> list[ev.Event]:
    world = World(speeds={"base": 100.0, "better": 120.0})
    world.play(playbook({"id": "base"}, {"id": "better"}))
    return world.events


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onlooker, "EVERY_S", 0.01)


async def test_it_follows_what_another_one_writes(tmp_path: Path, events: list[ev.Event]) -> None:
    looker = Looker()
    journal = Journal(tmp_path, same)
    for event in events[:10]:
        journal.append(event)
    async with looking_on(tmp_path, looker) as (session, where):
        assert where == tmp_path and looker.events == events[:10]
        following = asyncio.create_task(session.run())
        for event in events[10:]:
            journal.append(event)
            await asyncio.sleep(0)
        async with asyncio.timeout(kit.DEADLINE_S):
            state = await following
    journal.close()
    assert looker.events == events and state.ending == "completed"
    assert looker.troubles[0] == ""


async def test_a_line_is_taken_when_it_is_whole_and_one_that_was_taken_back_is_forgotten(
    tmp_path: Path, events: list[ev.Event]
) -> None:
    """What the disk did not keep is cut off again, and another event comes in its place."""
    journal = Journal(tmp_path, same)
    for event in events:
        journal.append(event)
    journal.close()
    whole = (tmp_path / FILE).read_bytes()
    lines = whole.splitlines(keepends=True)
    file = tmp_path / FILE
    looker = Looker()
    file.write_bytes(b"".join(lines[:5]) + lines[5][:-9])
    async with looking_on(tmp_path, looker) as (session, _):
        assert looker.events == events[:5]
        following = asyncio.create_task(session.run())
        file.write_bytes(b"".join(lines[:6]))
        await until(lambda: len(looker.events) == 6)
        file.write_bytes(b"".join(lines[:3]))
        await until(lambda: any("is gone" in text for text in looker.troubles))
        file.write_bytes(whole)
        async with asyncio.timeout(kit.DEADLINE_S):
            state = await following
    assert looker.events == events and state.ending == "completed"


async def test_the_second_is_told_and_the_first_is_not_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    looker = Looker()
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        await until(lambda: engine.state.measuring)
        with pytest.raises(JournalError, match="another tunebot"):
            Journal(folder, same)
        async with looking_on(folder, looker) as (session, _):
            session.submit(ev.InterruptRequested(at=0.0, keep=False))
            before = len(looker.events)
            following = asyncio.create_task(session.run())
            await until(lambda: len(looker.events) > before)
            assert not engine.state.interrupted
            engine.submit(ev.InterruptRequested(at=engine.state.now, keep=False))
            async with asyncio.timeout(kit.DEADLINE_S):
                state = await following
    assert state == engine.state and looker.events == read_journal(folder)
