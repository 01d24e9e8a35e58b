"""A session on another machine, through a real sshd: seen, steered, out of reach and back, its logs copied."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from agent.control import client, remote
from agent.control.client import attached
from agent.control.doors import door_to
from agent.control.places import open_place, run_folder, socket_of
from agent.core import events as ev
from agent.diagnostics import UserError
from agent.journal.journal import read_journal
from agent.ports import TargetUnreachable, TargetUnusable
from tests.control import kit
from tests.control.kit import DEADLINE_S, Home, Looker, long_playbook, note_of, until
from tests.sshd import Sshd, start_sshd


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """The account here and there, which is the same machine; what is there is told by `env` of targets.yaml."""
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        made = Home(Path(folder))
        for name in ("CONFIG", "CACHE"):
            made.env[f"XDG_{name}_HOME"] = str(made.root / f".{name.lower()}")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, made.env[name])
        yield made
        made.end_all()


@pytest.fixture
def box(home: Home) -> Iterator[Sshd]:
    """`box` is a name of targets.yaml, and of ~/.ssh/config."""
    sshd = start_sshd(home.root / "sshd")
    (home.root / ".ssh").mkdir()
    (home.root / ".ssh" / "config").write_text(sshd.config.read_text())
    entry = {"kind": "ssh", "host": "box", "env": {"XDG_STATE_HOME": home.env["XDG_STATE_HOME"]}}
    file = home.root / ".config" / "tunebot" / "targets.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"box": entry, "here": {"kind": "local"}}))
    yield sshd
    sshd.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LONGEST_PAUSE_S", 0.3)
    monkeypatch.setattr(remote, "COPY_EVERY_S", 0.05)


async def test_it_is_as_if_one_were_there(box: Sshd, home: Home) -> None:
    looker = Looker()
    async with kit.running(home.root / "logs", long_playbook()) as (engine, folder), AsyncExitStack() as looking:
        door, others = await looking.enter_async_context(door_to(None, "box", looker.tell_trouble))
        assert door.note == note_of(engine, folder) and others == [door.note]
        async with attached(door, looker) as (session, where):
            assert where.is_relative_to(home.root / ".cache" / "tunebot" / "attached")
            await until(lambda: looker.saw(ev.ServerReady))
            session.submit(ev.PauseSet(at=0.0, on=True))
            await until(lambda: engine.state.paused)
            launch = next(iter(engine.state.launches))
            copy = where / "launches" / f"{launch}.log"
            await until(lambda: copy.exists() and b"SIMULATED" in copy.read_bytes())
            assert oct(copy.stat().st_mode & 0o777) == "0o600"
            session.submit(ev.InterruptRequested(at=0.0, keep=False))
            async with asyncio.timeout(DEADLINE_S):
                state = await session.run()
    assert state == engine.state and looker.events == read_journal(folder)
    assert (folder / "launches" / copy.name).read_bytes().startswith(copy.read_bytes())


async def test_a_broken_link_is_told_and_heals_without_a_gap(box: Sshd, home: Home) -> None:
    looker = Looker()
    async with kit.running(home.root / "logs", long_playbook()) as (engine, folder), AsyncExitStack() as looking:
        door, _ = await looking.enter_async_context(door_to(None, "box", looker.tell_trouble))
        session, _ = await looking.enter_async_context(attached(door, looker))
        for _ in range(3):
            await until(lambda: looker.troubles and looker.troubles[-1] == "")
            told = len(looker.troubles)
            box.signal_connections(signal.SIGKILL)
            await until(lambda told=told: any("out of reach" in text for text in looker.troubles[told:]))
            await until(lambda: looker.troubles[-1] == "")
        assert not engine.state.interrupted
        box.stop()
        await until(lambda: "out of reach" in looker.troubles[-1])
        session.submit(ev.PauseSet(at=0.0, on=True))
        assert "what you just did was not sent" in looker.troubles[-1]
        seen = len(looker.events)
        await until(lambda: len(read_journal(folder)) > seen)
        box.start()
        await until(lambda: len(looker.events) > seen and looker.troubles[-1] == "")
        assert not engine.state.paused
        engine.submit(ev.InterruptRequested(at=engine.state.now, keep=False))
        async with asyncio.timeout(DEADLINE_S):
            state = await session.run()
    assert state == engine.state
    assert looker.events == read_journal(folder), "each event once, in order"


async def test_a_session_that_ends_while_out_of_reach_is_read_to_its_end(box: Sshd, home: Home) -> None:
    looker = Looker()
    async with AsyncExitStack() as looking:
        async with kit.running(home.root / "logs", long_playbook()) as (_, folder):
            door, _ = await looking.enter_async_context(door_to(None, "box", looker.tell_trouble))
            session, _ = await looking.enter_async_context(attached(door, looker))
            await until(lambda: looker.saw(ev.RoundMeasured))
            box.stop()
        box.start()
        async with asyncio.timeout(DEADLINE_S):
            state = await session.run()
    assert state.ending == "interrupted" and looker.events == read_journal(folder)


async def test_what_a_crash_left_there_is_passed_over(box: Sshd, home: Home) -> None:
    looker = Looker()
    with pytest.raises(UserError, match="no session runs on box"):
        async with door_to(None, "box", looker.tell_trouble):
            pass
    async with kit.running(home.root / "logs", long_playbook()) as (engine, folder):
        note = note_of(engine, folder)
        stale = kit.Note(session="zz", folder="/nowhere", pid=1, started=note.started + 9, name="x")
        open_place(socket_of(home.root), stale).close()
        (run_folder() / "0123456789ab.json").write_text("{")
        async with door_to(None, "box", looker.tell_trouble) as (door, others):
            assert door.note == note and others == [note]
        with pytest.raises(UserError, match="no session that runs on box is zz"):
            async with door_to("zz", "box", looker.tell_trouble):
                pass


async def test_hosts_that_cannot_be_used_say_why(box: Sshd, home: Home) -> None:
    async def fails(host: str) -> Exception:
        with pytest.raises((UserError, TargetUnusable)) as told:
            async with door_to(None, host, print):
                pass
        return told.value

    assert "leave --host out" in getattr(await fails("here"), "hint", "")
    async with kit.running(home.root / "logs", long_playbook()):
        box.stop()
        assert isinstance(await fails("box"), TargetUnreachable)
        box.start("AllowStreamLocalForwarding no")
        assert "AllowStreamLocalForwarding" in getattr(await fails("box"), "hint", "")
        box.known_hosts.write_text("")
        assert "is not known" in str(await fails("box"))


def test_the_command_prints_what_happens_there(box: Sshd, home: Home) -> None:
    started = home.tunebot("run", str(home.playbook(long_playbook())), "--target", "simulated:small", "--detach")
    assert started.returncode == 0, started.stderr
    (folder,) = home.sessions()
    output = home.root / "attached"
    with output.open("w") as file:
        reading = subprocess.Popen(home.command("attach", "--host", "box"), cwd=home.root, env=home.env, stdout=file)
    try:
        while "ready after" not in output.read_text():
            assert reading.poll() is None
        there = home.tunebot("attach", "--host", "box", "nope")
        assert there.returncode == 2 and folder.name in there.stderr
    finally:
        (note,) = (json.loads(path.read_text()) for path in home.run_folder.glob("*.json"))
        os.kill(note["pid"], signal.SIGTERM)
    assert reading.wait(DEADLINE_S) == 130
    assert output.read_text() == home.tunebot("replay", str(folder), "--headless").stdout
