"""The screen of a session that runs elsewhere, on a real terminal: it goes, and the session goes on."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.journal.journal import read_journal
from agent.sim.ledger import alive_pids
from tests.control.kit import DEADLINE_S, Home, long_playbook, until
from tests.tui.test_terminal import terminal


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        made = Home(Path(folder))
        made.env["XDG_STATE_HOME"] = str(made.root / "state")
        monkeypatch.setenv("HOME", folder)
        yield made
        made.end_all()


@pytest.mark.long
async def test_a_terminal_that_goes_away_stops_nothing_and_another_one_ends_it(home: Home) -> None:
    book = str(home.playbook(long_playbook()))
    started = await asyncio.to_thread(home.tunebot, "run", book, "--target", "simulated:small", "--detach")
    assert started.returncode == 0, started.stderr
    (folder,) = home.sessions()
    (file,) = (home.root / "state" / "tunebot" / "run").glob("*.json")
    pid = json.loads(file.read_text())["pid"]

    async with terminal(home.root, "attach") as t:
        await t.until("attached")
        await t.until("measuring")
        t.go_away()
        async with asyncio.timeout(DEADLINE_S):
            assert await t.process.wait() == 130, "there is nobody to tell that it goes on"
    seen = len(read_journal(folder))
    await until(lambda: len(read_journal(folder)) > seen)

    async with terminal(home.root, "resume", str(folder)) as t:
        await t.until("read-only")
        t.type(b"p")
        await t.until("another tunebot runs this session")
        t.type(b"q")
        async with asyncio.timeout(DEADLINE_S):
            assert await t.process.wait() == 0

    async with terminal(home.root, "attach", folder.name) as t:
        await t.until("attached")
        t.type(b"q")
        await t.until("End the session")
        t.type(b"e")
        async with asyncio.timeout(DEADLINE_S):
            assert await t.process.wait() == 130
        await t.until("session interrupted after")
    await until(lambda: not Path(f"/proc/{pid}").exists())
    events = read_journal(folder)
    assert isinstance(events[-1], ev.SessionEnded) and events[-1].ending == "interrupted"
    assert sum(isinstance(event, ev.Wish | ev.InterruptRequested) for event in events) == 1
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []
