"""The lines of a session: their form, their JSON, what a quiet one leaves out, where they go."""

import json
import os
import pty
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.cli import main
from agent.core import events as ev
from agent.core.model import Finding
from agent.core.reduce import reduce
from agent.core.schedule import next_decision
from agent.core.views.lines import tell
from agent.headless import Form, Printer, summary
from agent.report.record_facts import SILENT, TOLD
from agent.report.records import record_of
from tests.core.conftest import playbook
from tests.headless.golden import FORMS, HERE, SAMPLE, printed
from tests.session.kit import small_playbook
from tests.tui.kit import Session

ROOT = HERE.parent.parent
LINE = re.compile(r" *(\d+:)?\d+:\d\d  \S+ +\S.*")
FIRST_AND_LAST = {ev.SessionStarted, ev.SessionResumed, ev.SessionEnded}


def test_a_launch_that_nobody_answered_is_not_said_to_run() -> None:
    state = Session(playbook({"id": "base"})).state
    asked = next_decision(state)
    assert isinstance(asked, ev.LaunchRequested)
    for event in (asked, ev.TargetLost(at=state.now, reason="GPU 0 is held")):
        state, _ = reduce(state, event)
    end = next_decision(state)
    assert isinstance(end, ev.SessionEnded) and end.serving == asked.launch
    assert f"asked for, not answered: {asked.launch}" in summary(state, end)


def records(form: Form) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(form).splitlines()]


@pytest.mark.parametrize("name", FORMS)
def test_the_lines_of_the_sample(name: str) -> None:
    assert printed(FORMS[name]) == (HERE / name).read_text(), "if it is meant: python -m tests.headless"


def test_the_form_of_a_line() -> None:
    head, *lines = printed(Form()).splitlines()
    assert re.fullmatch(r"tunebot · \S+ · \S+ · .+ · session \S+", head)
    end = lines.index("")
    assert end > 50 and all(LINE.fullmatch(line) for line in lines[:end])


def test_every_event_is_a_line_or_silent() -> None:
    kinds = {kind for kind in ev.Event.kinds.values() if kind is not ev.Wish}
    assert not TOLD.keys() & SILENT
    assert TOLD.keys() | SILENT | FIRST_AND_LAST == kinds


def test_every_kind_is_documented() -> None:
    page = (ROOT / "docs" / "headless.md").read_text()
    for kind in (*TOLD, *FIRST_AND_LAST):
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
        assert f"`{name}`" in page, f"docs/headless.md says nothing of {name}"


def test_every_object_says_what_and_when() -> None:
    first, *rest = records(Form(as_json=True))
    assert first["kind"] == "session-started" and first["format"] == 1
    for record in (first, *rest):
        assert datetime.fromisoformat(record["at"]).utcoffset() is not None
        assert record["elapsed_s"] >= 0.0
    assert [record["at"] for record in rest] == sorted(record["at"] for record in rest)
    end = rest[-1]
    assert end["kind"] == "session-ended" and end["best"]["launch_command"]
    assert {row["experiment"] for row in end["board"]} >= set(first["experiments"])


def test_objects_and_lines_say_the_same() -> None:
    lines = printed(Form()).splitlines()
    told = [line.strip() for line in lines[1 : lines.index("")]]
    objects = records(Form(as_json=True))[1:-1]
    assert len(told) == len(objects)
    assert all(line.endswith(record["text"]) for line, record in zip(told, objects, strict=True))


def test_numbers_have_units_in_their_names() -> None:
    measured = [record for record in records(Form(as_json=True)) if record["kind"] == "round-measured"]
    assert measured and all(record["output_tok_per_s"] > 0 and record["ttft_ms"] > 0 for record in measured)
    plain = {"requests", "failed", "retries", "round", "elapsed_s", "tokens_per_chunk"}
    units = ("_s", "_ms", "_tokens", "_per_s", "_fraction", "_per_gpu", "_per_request")
    for name, value in measured[0].items():
        assert not isinstance(value, float | int) or isinstance(value, bool) or name in plain or name.endswith(units)


def test_quiet_keeps_what_counts() -> None:
    whole, quiet = printed(Form()).splitlines(), printed(Form(quiet=True)).splitlines()
    assert len(quiet) < len(whole) / 2 and set(quiet) <= set(whole)
    text = "\n".join(quiet)
    for word in ("verdict keep", "ruled-out: ", "failed in ", "DEAD ENDS", "best launch command:"):
        assert word in text
    assert "loading:" not in text and " round 1: " not in text


def heard(session: Session, *events: ev.Event, form: Form) -> list[str]:
    """The lines about some events after the session's start."""
    lines: list[str] = []
    say = Printer(lines.append, form)
    say(session.state, ev.SessionStarted(**_start(session)), session.state)
    for event in events:
        before = session.state
        session.give(event)
        say(before, event, session.state)
    return lines


def _start(session: Session) -> dict[str, Any]:
    state = session.state
    more = {"approved": (), "keep": False, "seed": 1, "version": "0"}
    return {"at": state.started_at, "session": "s", "playbook": state.playbook, "host": state.host, **more}


@pytest.mark.parametrize("quiet", [False, True])
def test_what_needs_a_person_is_told_once(quiet: bool) -> None:
    step = {"run": ["python3", "-m", "venv", "~/cu130"], "creates": "~/cu130"}
    book = playbook({"id": "base", "research": [{"ask": "Does it fit?"}]}, {"id": "cuda13", "prepare": [step]})
    session = Session(book).begin()
    gone = Finding(summary="needs a key: set ANTHROPIC_API_KEY")
    finished = ev.TaskFinished(at=session.at, task="base/1", status="needs-key", finding=gone)
    form = Form(quiet=quiet)
    asked = [line for line in heard(session, finished, form=form) if "needs you: " in line]
    assert len(asked) == 2
    assert "cuda13 " in asked[0] and "python3 -m venv ~/cu130 (--approve cuda13@" in asked[0]
    assert "ANTHROPIC_API_KEY" in asked[1] and "Does it fit?" in asked[1]


def test_what_needs_a_person_as_an_object() -> None:
    book = playbook({"id": "base"}, {"id": "cuda13", "prepare": [{"run": ["true"], "creates": "~/x"}]})
    first, second = map(json.loads, heard(Session(book).begin(), form=Form(as_json=True)))
    assert first["kind"] == "session-started"
    assert (second["kind"], second["wanted"], second["experiment"]) == ("needs-person", "approval", "cuda13")
    assert second["approve"].startswith("cuda13@") and second["command"] == ["true"]


def test_an_event_without_a_line_has_no_object() -> None:
    session = Session(playbook({"id": "base"})).begin()
    event = ev.Noted(at=session.at, text="a note")
    assert tell(session.state, event, session.state) == ("note", "a note")
    record = record_of(session.state, event, session.state)
    assert record is not None and (record["kind"], record["experiment"], record["text"]) == ("noted", None, "a note")
    spent = ev.TaskProgressed(at=session.at, task="base/1", action="reading")
    assert record_of(session.state, spent, session.state) is None


def test_secrets_are_taken_out_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", 'quote"quote-secret')
    session = Session(playbook({"id": "base"})).begin()
    lines = heard(session, ev.Noted(at=session.at, text='it is quote"quote-secret'), form=Form(as_json=True))
    assert "quote-secret" not in lines[-1] and json.loads(lines[-1])["text"].startswith("it is ‹redacted")


def test_a_replay_as_json_is_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(SAMPLE), "--json"]) == 0
    out, error = capsys.readouterr()
    assert [json.loads(line)["kind"] for line in out.splitlines()][-1] == "session-ended" and error == ""


def run(tmp_path: Path, book: dict[str, Any], *words: str) -> int:
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump(book, sort_keys=False))
    return main(["run", str(file), "--target", "simulated:small", "--logs", str(tmp_path / "logs"), *words])


def test_a_session_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, small_playbook(), "--json") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (told[0]["kind"], told[-2]["kind"], told[-1]["kind"]) == ("session-started", "session-ended", "journal")
    assert Path(told[-1]["folder"]).is_dir()


def test_nothing_could_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = small_playbook()
    book["server"]["command"] = ["false"]
    assert run(tmp_path, book, "--quiet") == 6
    assert "failed in launch" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["--json", "--quiet"])
def test_a_detached_session_prints_no_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert run(tmp_path, small_playbook(), "--detach", word) == 2
    assert "tunebot attach --json" in capsys.readouterr().err


@pytest.mark.parametrize("no_color", [{}, {"NO_COLOR": "1"}])
def test_lines_have_no_colours_on_a_terminal_either(no_color: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agent.cli", "replay", str(SAMPLE), "--quiet"]
    environ = {**os.environ, "TERM": "xterm-256color", **no_color}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environ) as process:
        os.close(theirs)
        out = b""
        while piece := _read(ours):
            out += piece
        assert process.stderr is not None and process.stderr.read() == b"" and process.wait() == 0
    os.close(ours)
    assert b"best launch command" in out and b"\x1b" not in out


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the terminal's other side is closed
        return b""
