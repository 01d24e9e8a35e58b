"""The plan is changed from an attached screen; after a resume it is as it was left."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.control.client import HereDoor, attached
from agent.core import events as ev
from agent.core.edit_rules import refusal
from agent.journal.journal import read_journal
from agent.resume import restore
from tests.control import kit
from tests.control.kit import Looker, long_playbook, note_of, until


@pytest.fixture(autouse=True)
def state_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A run folder of its own, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield


async def test_edits_from_elsewhere_are_made_and_kept(tmp_path: Path) -> None:
    looker = Looker()
    edits: list[ev.Event] = [
        ev.ExperimentMoved(at=0.0, experiment="third", past="idea"),
        ev.ExperimentChanged(at=0.0, experiment="idea", args={"ep-size": "1"}, env={"A": "b"}, why="because"),
        ev.NoteWritten(at=0.0, experiment="base", text="the fans were loud"),
        ev.TodoAdded(at=0.0, text="call"),
        ev.TodoTicked(at=0.0, todo=0, done=True),
        ev.DeadEndMarked(at=0.0, experiment="third", reason="no driver"),
    ]
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        await until(lambda: engine.state.measuring)
        async with attached(HereDoor(note_of(engine, folder)), looker) as (session, _):
            for edit in edits:
                session.submit(edit)
            # What is refused is said, and nothing else comes of it.
            session.submit(ev.DeadEndMarked(at=0.0, experiment="base", reason="no"))
            session.submit(ev.NoteWritten(at=0.0, experiment="idea", text="two\nlines"))
            await until(lambda: looker.state and sum("came too late" in note for note in looker.state.notes) == 2)
            session.submit(ev.InterruptRequested(at=0.0, keep=False))
            async with asyncio.timeout(kit.DEADLINE_S):
                state = await session.run()
    assert [type(event) for event in read_journal(folder) if isinstance(event, ev.Wish)] == [type(e) for e in edits]
    kept = restore(folder, None)
    assert list(kept.experiments) == list(state.experiments) == ["base", "third", "idea"]
    assert kept.experiments["idea"].spec.args == {"ep-size": "1"} and kept.experiments["idea"].revision == 1
    assert kept.experiments["third"].given_up == "no driver" and kept.todos[0].done
    assert kept.experiments["base"].notes[0].text == "the fans were loud"
    assert refusal(kept, ev.DeadEndMarked(at=0.0, experiment="third", reason="no")) is not None
