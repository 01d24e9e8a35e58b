"""`tunebot replay` without a screen: moments, one experiment, decisions made again, journals that end too soon."""

import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from agent.cli import main
from agent.core import events as ev
from agent.journal.journal import FILE, read_journal
from tests.journal.test_journal import write
from tests.test_replay import EVENTS, PLAYED

SAMPLE = Path(__file__).parent.parent / "logs" / "sample"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    """Exit code, lines, and what is on stderr."""
    code = main(["replay", *words])
    out, error = capsys.readouterr()
    assert "Traceback" not in error
    return code, out.splitlines(), error


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The session of the tests of a recording."""
    write(tmp_path, EVENTS)
    return tmp_path


def test_the_board_as_it_stood(capsys: pytest.CaptureFixture[str]) -> None:
    """A moment of the sample, as `tunebot report` and the lines of the session tell it."""
    events = read_journal(SAMPLE)
    verdict = next(e for e in events if isinstance(e, ev.VerdictReached) and e.experiment == "eagle3")
    at = datetime.fromtimestamp(verdict.at + 1)
    code, lines, _ = told(capsys, str(SAMPLE), "--at", f"{at:%Y-%m-%d %H:%M:%S}", "--headless")
    assert code == 0
    text = "\n".join(lines)
    assert lines[0].startswith("tunebot · demo-kimi-k2.5 · ") and f"{at:%Y-%m-%d %H:%M:%S}, 0:" in lines[1]
    assert re.search(r"^decision \d+ of \d+: \S+ \S+", text, re.MULTILINE)
    assert re.search(r"^  \S eagle3 +worse", text, re.MULTILINE)
    assert re.search(r"^Server: eagle3 · launch 2: is being stopped", text, re.MULTILINE)
    assert re.search(r"^Background \(", text, re.MULTILINE)
    assert not re.search(r"^  ✔ ep-flashinfer", text, re.MULTILINE), "that came later"


def test_the_same_for_machines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = told(capsys, str(folder), "--at", "50%", "--json")
    found = json.loads("\n".join(lines))
    assert code == 0
    moment = found["moment"]
    assert 0 < moment["event"] < moment["events"] == len(EVENTS)
    assert moment["elapsed_s"] == pytest.approx((EVENTS[-1].at - EVENTS[0].at) / 2)
    assert datetime.fromisoformat(moment["time"]).timestamp() == pytest.approx(found["now"], abs=1e-3)
    assert found["ending"] == "still running" and found["format"] == 1
    assert {row["experiment"] for row in found["board"]} >= {"base", "better", "slow"}
    assert sum(found["ledger"][key] for key in found["ledger"] if key.endswith("ing_s")) <= moment["elapsed_s"] + 1e-6


@pytest.mark.parametrize("at", ["12:61", "noon", "+9:00:00", "1970-01-01 00:00"])
def test_a_time_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str], at: str) -> None:
    code, lines, error = told(capsys, str(folder), "--at", at, "--headless")
    assert (code, lines) == (2, []) and "hint: " in error


def test_a_time_on_two_days_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [EVENTS[0], ev.Noted(at=EVENTS[0].at + 3 * 86_400, text="late")])
    at = datetime.fromtimestamp(EVENTS[0].at + 3600)
    code, lines, error = told(capsys, str(tmp_path), "--at", f"{at:%H:%M}", "--headless")
    assert code == 0 and f"this is {at:%Y-%m-%d}" in error and f"{at:%Y-%m-%d %H:%M}" in lines[1]


def test_the_lines_of_one_experiment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, every, _ = told(capsys, str(folder), "--headless")
    code, lines, _ = told(capsys, str(folder), "--follow", "broken", "--headless")
    assert code == 0 and lines[0] == every[0]
    subjects = {line.split()[1] for line in lines[1:]}
    assert subjects == {"broken"} and set(lines) <= set(every)
    assert [line for line in every if re.match(r" +\d+:\d\d  broken ", line)] == lines[1:]
    _, until, _ = told(capsys, str(folder), "--follow", "broken", "--at", "0%", "--headless")
    assert until == lines[:1]


def test_an_experiment_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, error = told(capsys, str(folder), "--follow", "beter", "--headless")
    assert (code, lines) == (2, []) and "no experiment beter" in error and "did you mean better?" in error


def test_decisions_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, PLAYED)
    code, lines, _ = told(capsys, str(tmp_path), "--verify")
    assert code == 0 and re.fullmatch(rf"\d+ decisions made again from {len(PLAYED)} events: all as recorded", lines[0])


def test_a_decision_that_differs_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = next(n for n, event in enumerate(PLAYED) if isinstance(event, ev.VerdictReached))
    verdict = PLAYED[place]
    assert isinstance(verdict, ev.VerdictReached)
    other = replace(verdict, parent=replace(verdict.parent, word="inconclusive"))
    write(tmp_path, [*PLAYED[:place], other, *PLAYED[place + 1 :]])
    code, lines, _ = told(capsys, str(tmp_path), "--verify")
    assert code == 1 and f"differs at event {place + 1} of {len(PLAYED)}" in lines[0]
    assert "VerdictReached of base: parent.word is recorded as inconclusive, it would be keep now" in lines[0]
    assert "recorded by tunebot 0; this is " in lines[2]


def test_verify_is_about_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, str(folder), "--verify", "--follow", "base")[0] == 2


def test_what_is_before_damage_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / FILE).read_bytes().splitlines(keepends=True)
    lines[30] = lines[30].replace(b"at", b"AT", 1)
    (folder / FILE).write_bytes(b"".join(lines))
    code, shown, error = told(capsys, str(folder), "--headless")
    assert code == 0 and len(shown) > 3
    assert f"{FILE}:31: the record is damaged; what is shown is the 30 events before it" in error
    assert told(capsys, str(folder), "--verify")[0] == 1, "not all could be verified"


def test_what_is_before_an_event_that_does_not_fit_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = next(event for event in EVENTS if isinstance(event, ev.ServerReady))
    write(tmp_path, [*EVENTS[:3], ready, *EVENTS[3:]])
    code, _, error = told(capsys, str(tmp_path), "--headless")
    assert code == 0 and "event 4, ServerReady, does not fit those before it" in error
    assert "what is shown is the 3 events before it" in error


def test_a_torn_tail_costs_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole + b'{"seq":99,"event":"No')
    code, _, error = told(capsys, str(folder), "--headless")
    assert (code, error) == (0, "")


def test_a_session_is_found_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "nowhere", "--headless")[0] == 2
    monkeypatch.chdir(folder.parent)
    (folder.parent / "logs").mkdir(exist_ok=True)
    folder.rename(folder.parent / "logs" / "mine")
    assert told(capsys, "mine", "--headless")[0] == 0
