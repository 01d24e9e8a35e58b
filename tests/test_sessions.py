"""What is at hand: sessions with how they ended and their best result, playbooks with what they hold."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.core import events as ev
from agent.core.views.entries import PlaybookEntry, SessionEntry, listing
from agent.journal.journal import FILE, Journal
from agent.sessions import playbook_entries, session_entry, session_folders
from tests.core.conftest import World, playbook

PLAYBOOK = """\
tunebot: 1
name: mine
target: local
server: {kind: sglang, command: [python3, -m, sglang.launch_server], args: {tp: 2}}
objective: {workload: w}
workloads: [{name: w}]
experiments: [{id: base, baseline: true}]
"""


def same(value: Any) -> Any:
    return value


def record(folder: Path, events: list[ev.Event]) -> Path:
    """A session's folder with these events."""
    folder.mkdir(parents=True)
    journal = Journal(folder, same)
    for event in events:
        journal.append(event)
    journal.close()
    return folder


@pytest.fixture
def events() -> list[ev.Event]:
    world = World(speeds={"base": 100.0, "better": 120.0})
    world.play(playbook({"id": "base"}, {"id": "better"}))
    return world.events


def test_a_completed_session(tmp_path: Path, events: list[ev.Event]) -> None:
    entry = session_entry(record(tmp_path / "20261130-101500-test-1a2b", events))
    assert (entry.name, entry.standing, entry.host) == ("test", "completed", "box")
    assert (entry.best, entry.value, entry.change) == ("better", "120.1 ±0.2 tok/s", "+20.0 %")
    assert (entry.ended, entry.experiments) == (2, 2)
    assert entry.when == time.strftime("%Y-%m-%d %H:%M", time.localtime(100.0))


def test_progress_is_passed_over(tmp_path: Path, events: list[ev.Event]) -> None:
    tick = next(index for index, event in enumerate(events) if isinstance(event, ev.PhaseEntered))
    begun = events[tick]
    assert isinstance(begun, ev.PhaseEntered)
    progress = ev.PhaseProgressed(
        at=begun.at, launch=begun.launch, phase=begun.phase, done=1, total=9, fraction=0.1, remaining_s=9.0
    )
    folder = record(tmp_path / "s", [*events[: tick + 1], *[progress] * 50, *events[tick + 1 :]])
    lines = (folder / FILE).read_bytes().splitlines(keepends=True)
    # A tick is not even parsed: a summary is quick however long a session was.
    damaged = [line.replace(b'"done":1', b'"done":2') if b"PhaseProgressed" in line else line for line in lines]
    (folder / FILE).write_bytes(b"".join(damaged))
    assert session_entry(folder).standing == "completed"


def test_a_session_without_an_end(tmp_path: Path, events: list[ev.Event]) -> None:
    folder = record(tmp_path / "s", events[:-1])
    assert session_entry(folder).standing == "not ended"
    with (folder / FILE).open("ab") as file:
        file.write(b'{"seq":99,"event":"Noted","da')
    assert session_entry(folder).standing == "not ended", "a torn last record is what a crash leaves"


def test_a_session_that_runs(tmp_path: Path, events: list[ev.Event]) -> None:
    folder = record(tmp_path / "s", events[:-1])
    journal = Journal(folder, same)
    try:
        assert session_entry(folder).standing == "running"
    finally:
        journal.close()
    assert session_entry(folder).standing == "not ended"


@pytest.mark.parametrize("at", [0, 5])
def test_a_damaged_session_says_where(tmp_path: Path, events: list[ev.Event], at: int) -> None:
    folder = record(tmp_path / "20261130-101500-test-1a2b", events)
    lines = (folder / FILE).read_bytes().splitlines(keepends=True)
    lines[at] = b"\x00junk\n"
    (folder / FILE).write_bytes(b"".join(lines))
    entry = session_entry(folder)
    assert entry.standing == "unreadable" and f":{at + 1}:" in entry.problem and entry.when == "2026-11-30 10:15"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda events: events[1:],
        lambda events: [*events, events[-1]],
        lambda events: [events[0], ev.ServerReady(at=1.0, launch="none", load_s=1.0, flags=())],
        lambda events: [],
    ],
)
def test_what_is_no_session_is_unreadable(
    tmp_path: Path, events: list[ev.Event], spoil: Callable[[list[ev.Event]], list[ev.Event]]
) -> None:
    entry = session_entry(record(tmp_path / "s", spoil(events)))
    assert entry.standing == "unreadable" and entry.problem


def test_the_sample_can_be_reviewed_and_names_no_ones_paths() -> None:
    sample = Path(__file__).parent.parent / "logs" / "sample"
    entry = session_entry(sample)
    assert (entry.standing, entry.simulated, entry.ended) == ("completed", True, entry.experiments)
    assert entry.best and entry.change.startswith("+")
    files = [path for path in sample.rglob("*") if path.is_file()]
    assert len(files) > 8 and sum(path.stat().st_size for path in files) < 600_000
    for path in files:
        assert not re.search(rb"/(root|home|work|tmp|Users)/", path.read_bytes()), path.name


def test_the_newest_session_is_first(tmp_path: Path, events: list[ev.Event]) -> None:
    for name in ("20261129-090000-a-0001", "sample", "20261130-080000-b-0002", "20261130-070000-c-0003"):
        record(tmp_path / name, events[:1])
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    names = [path.name for path in session_folders(tmp_path)]
    assert names == ["20261130-080000-b-0002", "20261130-070000-c-0003", "20261129-090000-a-0001", "sample"]
    assert session_folders(tmp_path / "nowhere") == []


def test_playbooks_here_and_shipped(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLAYBOOK)
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "broken.yaml").write_text(PLAYBOOK.replace("tp: 2", "tpp: 2").replace("w}", "v}", 1))
    (tmp_path / "playbooks" / "gone.yaml").symlink_to("nowhere")
    entries = {entry.file: entry for entry in playbook_entries(tmp_path)}
    assert list(entries)[:2] == ["playbooks/broken.yaml", "mine.yaml"]
    assert entries["mine.yaml"] == PlaybookEntry(
        file="mine.yaml", name="mine", target="local", experiments=1, shipped=False
    )
    assert entries["playbooks/broken.yaml"].problems == 2
    assert entries["demo"].shipped and entries["demo"].experiments == 10
    assert "compose.yaml" not in entries and "playbooks/gone.yaml" not in entries


def test_a_checkouts_own_playbooks_are_the_shipped_ones() -> None:
    here = list(playbook_entries(Path(__file__).parent.parent))
    assert len([entry for entry in here if entry.name == "demo-kimi-k2.5"]) == 1
    assert all(entry.shipped for entry in here)


def test_the_list_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], events: list[ev.Event]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(PLAYBOOK)
    record(tmp_path / "logs" / "20261130-101500-test-1a2b", events)
    record(tmp_path / "logs" / "20261130-111500-test-1a2c", events[:-1])
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "▶ mine.yaml" in text and "10 experiments on simulated" in text
    assert "best: better  120.1 ±0.2 tok/s  +20.0 %" in text
    assert "interrupted without an end; tunebot resume goes on with it" in text
    assert text.index("111500") < text.index("101500")


def test_a_list_has_no_escapes_and_counts_the_rest() -> None:
    evil = SessionEntry(folder="logs/x", name="a\x1b[31mb", when="2026-11-30 10:15", standing="completed")
    lines = list(listing([], [evil], 7))
    assert "\x1b" not in "".join(lines) and lines[-1] == "  and 7 older"
    assert "  none yet" in list(listing([], [], 0))
