"""A session that runs, looked at and steered through its socket: what is seen there is what happened here."""

import asyncio
import json
import os
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.control import client, server
from agent.control.client import HereDoor, attached
from agent.control.places import LONGEST_PATH, answers, check_place, open_place, pick, running, socket_of
from agent.core import events as ev
from agent.diagnostics import UserError
from agent.journal.journal import read_journal
from agent.playbook.model import Experiment
from agent.ports import TargetUnreachable
from agent.targets.places import Unfit
from tests.control import kit
from tests.control.kit import Looker, long_playbook, note_of, until
from tests.session.kit import small_playbook


@pytest.fixture(autouse=True)
def state_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test has a run folder of its own, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield Path(folder) / "tunebot" / "run"


@asynccontextmanager
async def line_client(folder: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client that speaks the protocol by hand."""
    reader, writer = await asyncio.open_unix_connection(socket_of(folder), limit=1 << 22)
    try:
        yield reader, writer
    finally:
        writer.close()


async def line_with(reader: asyncio.StreamReader, key: str) -> dict[str, object]:
    async with asyncio.timeout(kit.DEADLINE_S):
        while True:
            record = json.loads(await reader.readline())
            if key in record:
                return dict(record)


async def test_what_is_seen_is_what_is_journalled_and_what_is_wished_is_done(tmp_path: Path) -> None:
    looker = Looker()
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        await until(lambda: engine.state.measuring)
        async with attached(HereDoor(note_of(engine, folder)), looker) as (session, where):
            assert where == folder.resolve() and looker.saw(ev.RoundRequested)
            assert looker.state is not None and looker.state.host == engine.state.host
            assert abs(looker.ahead_s) < 1.0
            session.submit(ev.PauseSet(at=0.0, on=True))
            await until(lambda: looker.state and looker.state.paused)
            session.submit(ev.ExperimentSkipped(at=0.0, experiment="third"))
            spec = Experiment(id="mine", based_on="base", args={"ep-size": "2"})
            session.submit(ev.ExperimentAdded(at=0.0, spec=spec))
            await until(lambda: looker.state and "mine" in looker.state.experiments)
            paused = next(event for event in looker.events if isinstance(event, ev.PauseSet))
            assert abs(paused.at - time.time()) < kit.DEADLINE_S, "its time is that of the session"
            session.submit(ev.InterruptRequested(at=0.0, keep=False))
            async with asyncio.timeout(kit.DEADLINE_S):
                state = await session.run()
        assert state.ending == "interrupted"
    assert looker.events == read_journal(folder) and engine.state == state
    assert set(looker.troubles) == {""}


async def test_several_look_on_and_leaving_stops_nothing(tmp_path: Path) -> None:
    one, two, late = Looker(), Looker(), Looker()
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        door = HereDoor(note_of(engine, folder))
        async with attached(door, one), attached(door, two) as (session, _):
            await until(lambda: one.saw(ev.ServerReady) and two.saw(ev.ServerReady))
        await until(lambda: engine.state.launches and engine.state.measuring)
        assert not engine.state.interrupted
        async with attached(door, late) as (session, _):
            # It begins at the beginning, and knows all that the others saw.
            assert late.events[: len(two.events)] == two.events
            session.submit(ev.InterruptRequested(at=0.0, keep=False))
            async with asyncio.timeout(kit.DEADLINE_S):
                await session.run()
    assert late.events == read_journal(folder)


async def test_gpus_are_looked_at_while_somebody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.telemetry.EVERY_S", 0.05)
    looker = Looker()
    async with (
        kit.running(tmp_path / "logs", long_playbook()) as (engine, folder),
        attached(HereDoor(note_of(engine, folder)), looker),
    ):
        await until(lambda: any(looker.gpus))
    seen = next(gpus for gpus in looker.gpus if gpus)
    assert len(seen) == 2 and all(gpu.total_mib == 97_887 for gpu in seen)


async def test_what_troubles_the_session_is_told(tmp_path: Path) -> None:
    looker = Looker()
    async with (
        kit.running(tmp_path / "logs", long_playbook()) as (engine, folder),
        attached(HereDoor(note_of(engine, folder)), looker),
    ):
        engine.trouble = "the disk is \x1b[31mfull"
        await until(lambda: "the disk is full" in looker.troubles)
        engine.trouble = ""
        await until(lambda: looker.troubles[-1] == "")


async def test_wrong_lines_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        async with line_client(folder) as (reader, writer):
            hello = await line_with(reader, "tunebot")
            assert hello["session"] == engine.state.session and hello["folder"] == str(folder.resolve())
            await line_with(reader, "present")
            for line in (b"nonsense\n", b'{"event": "TargetLost", "data": {"reason": "x"}}\n', b"\n"):
                writer.write(line)
                assert (await line_with(reader, "refused"))["refused"]
            writer.write(b'{"event": "PauseSet", "data": {"on": true, "at": "no"}}\n')
            await until(lambda: engine.state.paused)
            writer.write(b" " * 300_000)
            assert "262144 bytes" in str((await line_with(reader, "refused"))["refused"])
            assert await reader.read() == b"", "who does not keep to lines is left alone"
        assert engine.state.lost is None and not engine.state.interrupted


async def test_half_a_line_is_no_wish(tmp_path: Path) -> None:
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        async with line_client(folder) as (reader, writer):
            await line_with(reader, "present")
            writer.write(b'{"event": "InterruptRequested", "data": {"keep": false}}')
            writer.write_eof()
            async with asyncio.timeout(kit.DEADLINE_S):
                await reader.read()
        assert not engine.state.interrupted


async def test_a_client_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    """One that never reads, one that does: hundreds of long events reach the second at once, and nobody waits."""
    looker = Looker()
    async with kit.running(tmp_path / "logs", small_playbook()) as (engine, folder):
        stuck = socket.socket(socket.AF_UNIX)
        stuck.connect(str(socket_of(folder)))
        async with attached(HereDoor(note_of(engine, folder)), looker):
            longest = 0.0
            for number in range(300):
                began = time.monotonic()
                engine.submit(ev.Noted(at=time.time(), text=f"{number} " + "x" * 5000))
                await asyncio.sleep(0)
                longest = max(longest, time.monotonic() - began)
            await until(lambda: sum(isinstance(event, ev.Noted) for event in looker.events) >= 300)
            engine.submit(ev.InterruptRequested(at=time.time(), keep=False))
            await until(lambda: engine.state.ending)
            began = time.monotonic()
    assert time.monotonic() - began < server.FAREWELL_S + 5.0, "it is left when the session ends"
    assert longest < 1.0
    stuck.close()


async def test_the_socket_is_its_owners_and_goes_with_the_session(tmp_path: Path, state_folder: Path) -> None:
    async with kit.running(tmp_path / "logs", small_playbook()) as (engine, folder):
        path = socket_of(folder)
        assert path.parent == state_folder
        assert [oct(place.stat().st_mode & 0o777) for place in (state_folder, path, path.with_suffix(".json"))] == [
            "0o700", "0o600", "0o600",
        ]  # fmt: skip
        assert running() == [note_of(engine, folder)]
    assert list(state_folder.iterdir()) == [] and running() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_another_user_gets_no_word(tmp_path: Path) -> None:
    """Even where the folder and the socket are open to all: the kernel says who is there."""
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        path = socket_of(folder)
        path.chmod(0o666)
        path.parent.chmod(0o711)
        # Deep in folders of root's: the other one gets a descriptor of the last.
        fd = os.open(path.parent, os.O_PATH)
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            os.setgid(65534)
            os.setuid(65534)
            said = b"?"
            try:
                with socket.socket(socket.AF_UNIX) as foreign:
                    foreign.settimeout(20)
                    os.fchdir(fd)
                    foreign.connect(path.name)
                    foreign.sendall(b'{"event": "InterruptRequested", "data": {"keep": false}}\n')
                    said = foreign.recv(100)
            except ConnectionError:
                said = b""
            except OSError as error:
                said = f"{error}".encode()
            finally:
                os.write(writing, struct.pack("i", len(said)) + said)
                os._exit(0)
        os.close(writing)
        answer = await asyncio.to_thread(os.read, reading, 4096)
        await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(reading)
        os.close(fd)
        assert answer == struct.pack("i", 0)
        await asyncio.sleep(0)
        assert not engine.state.interrupted


async def test_what_a_crash_left_is_swept_and_replaced(tmp_path: Path, state_folder: Path) -> None:
    left = tmp_path / "gone"
    left.mkdir()
    async with kit.running(tmp_path / "logs", small_playbook()) as (engine, folder):
        note = note_of(engine, folder)
        open_place(socket_of(left), note).close()
        assert socket_of(left).exists() and not answers(socket_of(left))
        assert running() == [note]
        assert {path.stem for path in state_folder.iterdir()} == {socket_of(folder).stem}
        open_place(socket_of(left), note).close()
        again = open_place(socket_of(left), note)
        assert answers(socket_of(left))
        again.close()
        (state_folder / "junk.json").write_text("{")
        assert running() == [note]


async def test_a_path_that_is_too_long_is_said_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * LONGEST_PATH)
    monkeypatch.setenv("XDG_STATE_HOME", str(long))
    with pytest.raises(Unfit, match="too long for a socket"):
        check_place(socket_of(tmp_path))
    async with kit.running(tmp_path / "logs", small_playbook()) as (engine, _):
        await until(lambda: engine.state.measuring)
        (note,) = engine.state.notes
        assert note.startswith("nobody can attach to this session: ") and "set XDG_STATE_HOME" in note
    assert running() == []


async def test_a_session_that_is_gone_is_told_from_one_that_ended(tmp_path: Path) -> None:
    async with kit.running(tmp_path / "logs", small_playbook()) as (engine, folder):
        note = note_of(engine, folder)
        await until(lambda: engine.state.measuring)
        events = read_journal(folder)
    looker = Looker()
    async with attached(HereDoor(note), looker) as (session, _):
        state = await session.run()
    assert state.ending == "interrupted" and looker.events == read_journal(folder)
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(journal[: len(events)]) + b'{"seq":')
    with pytest.raises(UserError, match="was cut off") as told:
        async with attached(HereDoor(note), Looker()) as (session, _):
            await session.run()
    assert "tunebot resume" in told.value.hint


def test_which_one_is_meant() -> None:
    notes = [
        kit.Note(session=name, folder=f"/logs/{name}", pid=1, started=1.0, name="x")
        for name in ("20261130-b-0002", "20261130-a-0001", "20261129-c-0003")
    ]
    assert pick(notes, None, "here") == notes[0]
    assert pick(notes, "20261129", "here") == notes[2]
    assert pick(notes, "/logs/20261130-a-0001/", "here") == notes[1]
    assert pick(notes, "20261130-a-0001", "here") == notes[1]
    for wanted, words in (("20261130", "2 sessions here begin with"), ("nope", "no session that runs here is nope")):
        with pytest.raises(UserError, match=words) as told:
            pick(notes, wanted, "here")
        assert "20261130-b-0002" in told.value.hint
    with pytest.raises(UserError, match="no session runs on gpu8"):
        pick([], None, "on gpu8")


async def test_a_session_that_says_nothing_is_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is stopped: the kernel goes on taking connections."""
    monkeypatch.setattr(client, "SILENCE_S", 0.5)
    monkeypatch.setattr(server, "WORD_EVERY_S", 0.1)
    looker = Looker()
    async with kit.running(tmp_path / "logs", long_playbook()) as (engine, folder):
        note = note_of(engine, folder)
        async with attached(HereDoor(note), looker):
            engine.submit(ev.PauseSet(at=time.time(), on=True))
            engine.submit(ev.ExperimentSkipped(at=time.time(), experiment="idea"))
            await until(lambda: len(looker.events) > 5)
            await asyncio.sleep(1.0)
            assert set(looker.troubles) == {""}, "a session with nothing to tell says that it is there"
    mute = open_place(socket_of(folder), note)
    with pytest.raises(TargetUnreachable, match="no word for"):
        async with attached(HereDoor(note), Looker()):
            pass
    mute.close()
