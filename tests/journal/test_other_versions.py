"""Journals of other versions: read, or refused with the line, the kind and what to do; and fast enough to be read."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.journal.codec import decode, decode_json
from agent.journal.journal import FILE, JournalError, read_journal
from tests.journal.test_journal import session_events, write

SAMPLE = Path(__file__).parents[2] / "logs" / "sample"


def line_of(record: dict[str, Any]) -> bytes:
    body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> list[ev.Event]:
    """A session in `folder` whose records were changed as another version would have written them; what it was."""
    events = session_events()
    write(folder, events)
    records = [json.loads(line) for line in (folder / FILE).read_bytes().splitlines()]
    for record in records:
        del record["crc"]
        change(record)
    (folder / FILE).write_bytes(b"".join(map(line_of, records)))
    return events


def fields_that_came_later(record: dict[str, Any]) -> None:
    later = {"SessionStarted": ("attended", "target", "noise", "known"), "LaunchStarted": ("usual_s",)}
    for name in later.get(record["event"], ()):
        del record["data"][name]


def test_fields_that_came_later_have_their_defaults(tmp_path: Path) -> None:
    events = rewritten(tmp_path, fields_that_came_later)
    assert read_journal(tmp_path) == events


def test_a_field_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    events = rewritten(tmp_path, lambda record: record["data"].update({"mood": {"of": ["the", 1]}}))
    assert read_journal(tmp_path) == events


def refused(folder: Path, change: Callable[[dict[str, Any]], None]) -> JournalError:
    events = rewritten(folder, change)
    with pytest.raises(JournalError) as caught:
        read_journal(folder)
    assert list(caught.value.before[1:]) == events[1 : len(caught.value.before)]
    return caught.value


def test_a_kind_of_event_of_a_newer_version(tmp_path: Path) -> None:
    def newer(record: dict[str, Any]) -> None:
        if record["event"] == "SessionStarted":
            record["data"]["version"] = "9.1.0"
        if record["event"] == "VerdictReached":
            record["event"] = "VerdictFelt"

    error = refused(tmp_path, newer)
    number = 1 + next(n for n, event in enumerate(session_events()) if isinstance(event, ev.VerdictReached))
    assert f"{FILE}:{number}: this version knows no event 'VerdictFelt'" in str(error)
    assert "tunebot 9.1.0 wrote it" in error.hint and "use the tunebot that wrote it, or a newer one" in error.hint
    assert len(error.before) == number - 1


def test_a_field_that_an_old_version_did_not_write_and_that_is_needed(tmp_path: Path) -> None:
    def older(record: dict[str, Any]) -> None:
        if record["event"] == "ServerReady":
            del record["data"]["load_s"]

    assert "ServerReady.load_s is not there, and this version needs it" in str(refused(tmp_path, older))


def test_a_playbook_of_a_newer_format(tmp_path: Path) -> None:
    def newer(record: dict[str, Any]) -> None:
        if record["event"] == "SessionStarted":
            record["data"]["version"] = "2.0.0"
            record["data"]["playbook"]["moods"] = ["good"]

    error = refused(tmp_path, newer)
    assert f"{FILE}:1: this version knows no SessionStarted.playbook.moods" in str(error)
    assert "tunebot 2.0.0 wrote it" in error.hint and error.before == []


def test_what_is_before_a_damaged_record_is_kept(tmp_path: Path) -> None:
    events = session_events()
    write(tmp_path, events)
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"at", b"AT", 1)
    (tmp_path / FILE).write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=r"journal\.jsonl:5: the record is damaged") as caught:
        read_journal(tmp_path)
    assert caught.value.before == events[:4]


def test_both_ways_of_reading_a_record_give_the_same_event() -> None:
    """As JSON text, which is fast, and as values that were JSON, which those who look on are sent."""
    for line in (SAMPLE / FILE).read_bytes().splitlines():
        record = json.loads(line)
        data = json.dumps(record["data"], ensure_ascii=False, separators=(",", ":")).encode()
        assert decode_json(record["event"], data) == decode(record)
