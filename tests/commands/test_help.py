"""The pages of help: what each has, how wide it is, and that it is quick."""

import re
import shlex
import subprocess
import sys

import pytest

from agent.cli import main, make_parser
from agent.commands.command import page
from agent.commands.every import COMMANDS
from agent.diagnostics import Exit

Read = pytest.CaptureFixture[str]
each = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def shown(capsys: Read, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


@each
def test_a_page_has_description_examples_and_exit_codes(command: object, capsys: Read) -> None:
    name = command.name  # type: ignore[attr-defined]
    text = shown(capsys, name, "--help")
    assert text.startswith(f"usage: tunebot {name}")
    assert "examples:\n  " in text and f"tunebot {name}" in text.split("examples:")[1]
    assert "exit codes:\n  0" in text
    assert shown(capsys, "help", name) == text


@each
@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_a_page_fits_the_terminal(command: object, columns: str, capsys: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown(capsys, command.name, "--help")  # type: ignore[attr-defined]
    sections = text[text.index("examples:") :].splitlines()
    # What a person types is not broken.
    assert all(len(line) <= min(120, int(columns)) for line in sections if not re.match(r"  \S", line)), text


@each
def test_the_examples_are_understood(command: object) -> None:
    parser = make_parser()
    for example, _ in command.examples:  # type: ignore[attr-defined]
        words = shlex.split(re.search(r"tunebot ([^|>)]*)", example)[1].removesuffix('"'))  # type: ignore[index]
        parser.parse_args(words)


@each
def test_exit_codes_are_those_that_there_are(command: object) -> None:
    codes = [int(code) for code, _ in command.exits]  # type: ignore[attr-defined]
    assert codes == sorted(codes) and set(codes) <= {int(code) for code in Exit}


def test_a_page_of_a_part(capsys: Read) -> None:
    text = shown(capsys, "help", "config", "set")
    assert text.startswith("usage: tunebot config set") and text == shown(capsys, "config", "set", "--help")
    assert shown(capsys, "help") == shown(capsys, "--help")


def test_help_for_what_is_no_command(capsys: Read) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "rnu"])
    assert ended.value.code == 2 and "rnu" in capsys.readouterr().err


def test_a_narrow_page_puts_words_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "62")
    rows = (("tunebot x" * 5, "what it does, in words that do not fit beside it at all"),)
    assert page(("examples", rows)).splitlines()[1:] == [
        f"  {rows[0][0]}",
        "      what it does, in words that do not fit beside it at",
        "      all",
    ]


def test_help_reads_no_module_of_ours_that_acts() -> None:
    code = "import sys, agent.cli; agent.cli.make_parser(); print(*[n for n in sys.modules if n.startswith('agent.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {".".join(name.split(".")[:2]) for name in run.stdout.split()}
    assert packages == {f"agent.{name}" for name in ("cli", "commands", "config", "diagnostics", "text", "verbs")}
