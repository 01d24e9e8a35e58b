"""The journal: what was appended is read back; a torn tail costs nothing that was acknowledged."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.events import Event
from agent.journal.journal import FILE, Journal, JournalError, read_journal
from agent.redact import Redactor, redact_tree
from tests.core.conftest import World, playbook


def untouched(value: Any) -> Any:
    return value


def session_events() -> list[Event]:
    """Events of a whole small session."""
    world = World()
    grep = {"grep": {"pattern": "x", "in": ["s:a.py"]}}
    world.play(playbook({"id": "base"}, {"id": "idea", "args": {"a": "1", "b": None}, "research": [grep]}))
    return world.events


def write(folder: Path, events: list[Event]) -> None:
    journal = Journal(folder, untouched)
    for event in events:
        journal.append(event)
    journal.close()


def test_a_session_is_read_back_as_it_was(tmp_path: Path) -> None:
    events = session_events()
    write(tmp_path, events)
    assert read_journal(tmp_path) == events
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_cut_at_every_byte_of_its_last_three_records_it_loses_no_earlier_event(tmp_path: Path) -> None:
    events = session_events()
    write(tmp_path, events)
    data = (tmp_path / FILE).read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    for cut in range(ends[-4], len(data)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE).write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        assert read_journal(folder) == events[:whole]
        write(folder, [events[1]])
        assert read_journal(folder) == [*events[:whole], events[1]]
        torn = folder / "journal.torn"
        assert torn.exists() == (cut not in ends)
        if torn.exists():
            assert torn.read_bytes() == data[ends[whole - 1] : cut] + b"\n"


def test_damage_before_the_end_is_named(tmp_path: Path) -> None:
    write(tmp_path, session_events())
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"{", b"[", 1)
    (tmp_path / FILE).write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=r"journal\.jsonl:3: the record is damaged"):
        read_journal(tmp_path)
    with pytest.raises(JournalError, match="damaged after record 2"):
        Journal(tmp_path, untouched)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00" * 50])
def test_what_is_no_journal_is_said_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(JournalError):
        read_journal(tmp_path)


def test_only_one_writer(tmp_path: Path) -> None:
    first = Journal(tmp_path, untouched)
    code = (
        "import sys; from pathlib import Path; from agent.journal.journal import Journal, JournalError\n"
        "try: Journal(Path(sys.argv[1]), lambda v: v)\n"
        "except JournalError as e: print(e)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "written by another tunebot" in run.stdout
    first.close()


def test_an_event_that_the_disk_does_not_take_is_refused_and_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = session_events()
    journal = Journal(tmp_path, untouched)
    journal.append(events[0])
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:10]))
    with pytest.raises(JournalError, match="No space left"):
        journal.append(events[1])
    monkeypatch.undo()
    journal.append(events[1])
    journal.close()
    assert read_journal(tmp_path) == events[:2]


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    book = playbook({"id": "base", "args": {"api-key": "very-secret-1"}, "env": {"HF_TOKEN": "very-secret-2"}})
    world = World()
    world.play(book)
    redact = Redactor({"HF_TOKEN": "very-secret-2", "api-key": "very-secret-1"})
    journal = Journal(tmp_path, lambda value: redact_tree(redact, value))
    for event in [*world.events, ev.Noted(at=1.0, text="it said very-secret-2")]:
        journal.append(event)
    journal.close()
    data = (tmp_path / FILE).read_text()
    assert "very-secret" not in data
    assert read_journal(tmp_path)
