"""The command line: exit codes, messages with a hint, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli import main

ROOT = Path(__file__).parent.parent
TWENTY = ROOT / "tests" / "playbook" / "bad" / "twenty.yaml"


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code and stderr of a command."""
    code = main(words)
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return code, error


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x00\x01\xff\xfe" * 100, "not UTF-8"),
        (b"x: 1\n" * 2_000_000, "at most"),
        (b"a: [1\n", "test.yaml:2"),
        (b"- 1\n", "mapping"),
    ],
)
def test_a_bad_file_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    file = tmp_path / "test.yaml"
    file.write_bytes(content)
    code, error = complaint(capsys, "run", str(file), "--headless")
    assert code == 2 and words in error


def test_twenty_mistakes_are_twenty_problems(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = complaint(capsys, "check", str(TWENTY))
    assert code == 2
    assert "has 20 problems" in error
    assert sum(line.startswith(f"{TWENTY}:") for line in error.splitlines()) == 20


def test_problems_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(TWENTY), "--json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert len(problems) == 20 and all(p["line"] and p["column"] and p["message"] for p in problems)


def test_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["check", "demo"]) == 0
    plan = capsys.readouterr().out
    assert "no ETA" in plan and plan.count("--approve cuda13@") == 1 and "# 2 steps" in plan
    assert main(["check", "demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loads_at_most"] == 10


def test_the_plan_says_where_a_smoke_load_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test.yaml"
    file.write_text(
        "tunebot: 1\nname: smoke\ntarget: simulated\nsmoke: dummy\n"
        "server: {kind: sglang, command: [sglang], args: {model-path: m/M}}\nobjective: {workload: w}\n"
        "workloads: [{name: w, input_len: 8, output_len: 8, requests: 4}]\n"
        "experiments:\n"
        "  - {id: base, baseline: true}\n"
        "  - {id: none, based_on: base, smoke: false}\n"
        "  - {id: dummy, based_on: base, args: {load-format: dummy}}\n"
        "  - {id: still-dummy, based_on: dummy}\n"
        "  - {id: gguf, based_on: base, args: {model-path: m/M.gguf}}\n"
    )
    assert main(["check", str(file), "--json"]) == 0
    smoke = {one["id"]: one["smoke"] for one in json.loads(capsys.readouterr().out)["experiments"]}
    assert smoke == {"base": True, "none": False, "dummy": False, "still-dummy": False, "gguf": False}


def test_a_missing_playbook_names_the_shipped_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = complaint(capsys, "run", "no-such.yaml")
    assert code == 2 and "demo" in error and "example" in error


def test_a_folder_is_no_playbook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = complaint(capsys, "run", str(tmp_path))
    assert code == 2 and "cannot read" in error


@pytest.mark.parametrize("target", ["nowhere", "simulated:no-such-world", "local:x"])
def test_an_unknown_target(tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str) -> None:
    code, error = complaint(capsys, "run", "demo", "--headless", "--target", target, "--logs", str(tmp_path / "logs"))
    assert code == 3 and "hint" in error


def test_a_target_over_ssh_that_is_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host gpu8\n  Hostname 127.0.0.1\n  Port 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    code, error = complaint(capsys, "run", "example", "--headless", "--logs", str(tmp_path / "logs"))
    assert code == 3 and "cannot reach gpu8: Connection refused" in error


def test_a_logs_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    code, error = complaint(capsys, "run", "demo", "--headless", "--logs", str(tmp_path / "file" / "logs"))
    assert code == 3 and "--logs" in error


def test_a_session_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = complaint(capsys, "replay", str(tmp_path), "--headless")
    assert code == 2 and "cannot read" in error


def test_the_schema_is_the_shipped_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == (ROOT / "playbooks" / "schema.json").read_text()


def test_help_is_quick_and_has_examples() -> None:
    times = []
    for _ in range(3):
        before = os.times()
        run = subprocess.run([sys.executable, "-m", "agent.cli", "--help"], capture_output=True, text=True, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
        assert "tunebot demo" in run.stdout and "exit codes" in run.stdout
    assert min(times) < 0.4


@pytest.mark.parametrize(("target", "code"), [("local", 0), ("simulated:small", 0), ("nowhere", 3)])
def test_the_doctor_says_whether_a_target_can_be_used(
    capsys: pytest.CaptureFixture[str], target: str, code: int
) -> None:
    assert main(["doctor", target]) == code
    assert f"{target} {'can' if code == 0 else 'cannot'} be used" in capsys.readouterr().out
