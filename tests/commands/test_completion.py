"""Completion: asked as each shell asks, and typed into the real ones."""

import subprocess
from pathlib import Path

import pytest

from agent.commands.every import COMMANDS
from agent.completion import script
from tests.commands.shells import LEARN, environment, needs, typing

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project: playbooks, targets, sessions."""
    for name in ("mine.yaml", "other.yml", "targets.yaml", "notes.txt"):
        (tmp_path / name).write_text("gpu8: {kind: ssh, host: gpu8}\nboxed:\n  kind: local\n" if name[0] == "t" else "")
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "deep.yaml").write_text("")
    for name in ("20261130-101500-my-1a2b", "20261130-111500-my-2b3c"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "journal.jsonl").write_text("")
    (tmp_path / "logs" / "no-session").mkdir()
    return tmp_path


def asked(line: str, folder: Path) -> list[str]:
    """What tunebot answers a shell whose cursor is at the end of the line."""
    answer = folder / "answer"
    environ = {
        **environment(folder),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "",
    }
    subprocess.run(["tunebot"], env=environ, cwd=folder, check=False, timeout=30)
    return [word.strip() for word in answer.read_text().splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tunebot re", {"replay", "report", "resume"}),
        ("tunebot run ", {"demo", "example", "vllm-cpu", "mine.yaml", "other.yml", "books/", "logs/"}),
        ("tunebot run books/", {"books/deep.yaml"}),
        ("tunebot check ", {"demo", "mine.yaml"}),
        ("tunebot run mine.yaml --ap", {"--approve"}),
        ("tunebot run mine.yaml --q", {"--quiet"}),
        ("tunebot run mine.yaml --target ", {"local", "simulated", "gpu8", "boxed"}),
        ("tunebot doctor g", {"gpu8"}),
        ("tunebot attach --host b", {"boxed"}),
        ("tunebot replay ", {"logs/20261130-101500-my-1a2b", "logs/20261130-111500-my-2b3c"}),
        ("tunebot resume logs/20261130-11", {"logs/20261130-111500-my-2b3c"}),
        ("tunebot report --format ", {"markdown", "html", "json"}),
        ("tunebot config ", {"set", "unset", "edit", "path"}),
        ("tunebot config set llm.m", {"llm.model"}),
        ("tunebot config set keys.run.det", {"keys.run.details"}),
        ("tunebot completion ", {"bash", "zsh", "fish"}),
        ("tunebot help re", {"replay", "report", "resume"}),
        ("tunebot explain no", {"notes.txt"}),
    ],
)
def test_what_may_stand_there(line: str, words: set[str], folder: Path) -> None:
    found = set(asked(line, folder))
    assert words <= found
    assert not found & {"targets.yaml", "no-session", "logs/no-session"}


def test_every_command_is_offered(folder: Path) -> None:
    assert {command.name for command in COMMANDS} <= set(asked("tunebot ", folder))


def test_a_broken_configuration_does_not_reach_the_shell(folder: Path) -> None:
    (folder / ".config" / "tunebot").mkdir(parents=True)
    (folder / ".config" / "tunebot" / "config.toml").write_text("[llm\n")
    assert "logs/20261130-101500-my-1a2b" in asked("tunebot replay ", folder)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_sound(shell: str, tmp_path: Path) -> None:
    needs(shell)
    file = tmp_path / "script"
    file.write_text(script(shell))
    subprocess.run([shell, "-n", str(file)], check=True, capture_output=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_is_completed_at_a_tab(shell: str, folder: Path) -> None:
    with typing(shell, folder) as typed:
        typed.type("tunebot doc\t")
        typed.wait_for("doctor ")
        typed.type("gp\t")
        typed.wait_for("8 ")


@pytest.mark.parametrize("shell", SHELLS)
def test_several_are_listed(shell: str, folder: Path) -> None:
    with typing(shell, folder) as typed:
        typed.type("tunebot re\t\t")
        typed.wait_for("replay", "report", "resume")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_session_is_completed_at_a_tab(shell: str, folder: Path) -> None:
    with typing(shell, folder) as typed:
        typed.type("tunebot replay logs/20261130-11\t")
        typed.wait_for("1500-my-2b3c")


def test_bash_as_programs_ask_it(folder: Path) -> None:
    needs("bash")
    words = 'COMP_LINE="tunebot re"; COMP_POINT=10; COMP_WORDS=(tunebot re); COMP_CWORD=1; COMP_TYPE=9'
    code = f'{LEARN["bash"]}; {words}; _python_argcomplete tunebot; printf "%s\\n" "${{COMPREPLY[@]}}"'
    assert _said(["bash", "--norc", "-c", code], folder) >= {"replay", "report", "resume"}


def test_fish_as_programs_ask_it(folder: Path) -> None:
    needs("fish")
    found = _said(["fish", "--no-config", "-c", f"{LEARN['fish']}; complete -C 'tunebot re'"], folder)
    assert {word.split("\t")[0] for word in found} >= {"replay", "report", "resume"}


def _said(command: list[str], folder: Path) -> set[str]:
    run = subprocess.run(command, env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60)
    assert run.stderr == "", run.stderr
    return {line.strip(" ") for line in run.stdout.splitlines()}
