"""`tunebot report` as a command: where it writes, what it says, what it keeps to itself."""

import json
import zlib
from pathlib import Path

import pytest

from agent.cli import main
from agent.core import events as ev
from agent.journal.journal import FILE
from agent.report.page import page
from agent.report_command import read_report
from tests.core.conftest import World, playbook
from tests.report.html import Page
from tests.report.test_report import SAMPLE, recorded, story


def test_no_secret_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A secret that reached a journal all the same, and one that has a well-known shape."""
    secret = "swordfish-and-more"
    world = World(fails={"broken": f"no access with {secret} or hf_abcdefghijklmnopqrstuvwxyz"})
    world.play(playbook({"id": "base"}, {"id": "broken"}))
    recorded(tmp_path / "s", world.events).close()
    monkeypatch.setenv("MY_API_KEY", secret)
    for form in ("html", "markdown", "json"):
        assert main(["report", str(tmp_path / "s"), "--format", form]) == 0
        told = capsys.readouterr().out
        assert secret not in told and "hf_abc" not in told and "redacted:MY_API_KEY" in told.replace("\\_", "_")


def test_a_session_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its journal is held by another; the time since the last event counts too."""
    events = story()
    loads = next(n for n, event in enumerate(events) if isinstance(event, ev.PhaseEntered))
    journal = recorded(tmp_path / "s", events[: loads + 1])
    try:
        assert main(["report", str(tmp_path / "s"), "--json"]) == 0
    finally:
        journal.close()
    told = json.loads(capsys.readouterr().out)
    assert told["ending"] == "still running"
    last = told["timeline"][-1]
    assert (last["doing"], last["phase"]) == ("loading", "load-weights")
    assert told["ledger"]["elapsed_s"] == pytest.approx(last["end_s"]) and last["end_s"] > 1e9
    assert told["ledger"]["loads"] == 1 and told["best"] is None
    assert Page(page(read_report(tmp_path / "s")))


def test_written_to_a_file_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, begin in (("a.html", "<!doctype html>"), ("a.json", "{"), ("a.md", "# tunebot report")):
        assert main(["report", str(SAMPLE), "--output", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begin)
    assert capsys.readouterr().out == ""


def test_the_newest_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("20261130-101500-old-1a2b", "20261130-111500-new-1a2b"):
        recorded(tmp_path / "logs" / name, story()[:3]).close()
    (tmp_path / "logs" / "20261130-101500-old-1a2b" / FILE).unlink()
    assert main(["report"]) == 0
    assert "# tunebot report: test" in capsys.readouterr().out
    assert main(["report", "20261130-111500-new-1a2b"]) == 0


def newer(folder: Path) -> Path:
    recorded(folder, story()[:2]).close()
    body = b'{"seq":3,"event":"Teleported","data":{"at":1.0}'
    with (folder / FILE).open("ab") as file:
        file.write(body + b',"crc":"%08x"}\n' % zlib.crc32(body))
    return folder


def test_errors_have_hints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "logs" / "20261130-101500-my-1a2b", story()[:3]).close()
    recorded(tmp_path / "headless", story()[1:3]).close()
    (tmp_path / "empty").mkdir()
    cases = [
        (["20261130-101500-my-1a2c"], "did you mean logs/20261130-101500-my-1a2b?"),
        (["zzz"], "sessions are folders in logs"),
        (["empty"], "give the folder of a session"),
        (["headless"], "not the start of a session"),
        ([str(newer(tmp_path / "newer"))], "the tunebot that wrote it, or a newer one"),
        (["logs/20261130-101500-my-1a2b", "--output", "no/such/folder.html"], "No such file or directory"),
    ]
    for words, wanted in cases:
        assert main(["report", *words]) == 2
        told = capsys.readouterr()
        assert told.out == "" and wanted in told.err and "hint:" in told.err and "Traceback" not in told.err


def test_nothing_under_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    assert "no session under logs" in capsys.readouterr().err
