"""`tunebot config`: shows, sets, unsets, edits; refuses what cannot be, and never breaks a file."""

import stat
from pathlib import Path

import pytest

from agent.cli import main
from agent.paths import config_file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TUNEBOT_MODEL", "TUNEBOT_EFFORT", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    return config_file()


Read = pytest.CaptureFixture[str]


def test_everything_is_shown_with_its_origin(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Read) -> None:
    monkeypatch.setenv("TUNEBOT_EFFORT", "high")
    assert main(["config", "set", "llm.question.usd", "2.5"]) == 0
    assert main(["config", "set", "keys.run.details", "f6"]) == 0
    capsys.readouterr()
    assert main(["config"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["llm.effort"].split()[1:4] == ["high", "environment", "TUNEBOT_EFFORT"]
    assert rows["llm.question.usd"].split()[1:3] == ["2.5", "file"]
    assert rows["llm.model"].split()[2] == "default"
    assert rows["keys.run.details"].split()[1:3] == ["f6", "file"]
    assert rows["keys.run.ask"].split()[1:3] == ["a", "default"]


def test_set_keeps_comments_and_unset_takes_back(file: Path) -> None:
    file.parent.mkdir(parents=True)
    text = "# mine\n[llm]\nmodel = 'a'  # good\n"
    file.write_text(text)
    assert main(["config", "set", "llm.model", "b"]) == 0
    assert file.read_text() == '# mine\n[llm]\nmodel = "b"  # good\n'
    assert main(["config", "set", "defaults.headless", "true"]) == 0
    assert main(["config", "unset", "defaults.headless"]) == 0
    assert "headless" not in file.read_text() and "# good" in file.read_text()


def test_the_file_keeps_its_mode_and_its_link(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o600)
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    assert main(["config", "set", "llm.model", "b"]) == 0
    assert file.is_symlink() and "b" in real.read_text() and stat.S_IMODE(real.stat().st_mode) == 0o600
    assert list(tmp_path.glob(".config-*")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "llm.modle", "m"), "did you mean 'llm.model'?"),
        (("set", "keys.run.detials", "x"), "did you mean 'keys.run.details'?"),
        (("set", "llm.question.usd", "much"), "a number of zero or more"),
        (("set", "llm.question.tokens", "1.5"), "a whole number"),
        (("set", "defaults.headless", "yes"), "true or false"),
        (("set", "llm.api_key", "abcdef"), "export ANTHROPIC_API_KEY"),
        (("set", "llm.model", "sk-ant-0123456789abcdef0123"), "export ANTHROPIC_API_KEY"),
        (("set", "llm.base_url", "http://me:password1@host"), "export ANTHROPIC_API_KEY"),
        (("set", "screen.theme", "textual-drak"), "did you mean 'textual-dark'?"),
        (("set", "keys.run.details", "entr"), "'entr' is no key"),
        (("set", "keys.run.details", ","), "is no key"),
        (("set", "keys.run.details", "a"), "'a' is the key of run.details and run.ask"),
        (("set", "keys.run.details", "question_mark"), "'question_mark' is the key of"),
        (("unset", "llm.model"), "is not set"),
        (("set", "llm.model", ""), "a text in quotes"),
    ],
)
def test_refusals_change_nothing(file: Path, capsys: Read, words: tuple[str, ...], said: str) -> None:
    assert main(["config", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
    assert not file.exists()


def test_two_actions_on_screens_of_their_own_may_share_a_key(file: Path) -> None:
    assert main(["config", "set", "keys.needs.approve", "enter"]) == 0
    assert main(["config", "set", "keys.details.copy", "f7,ctrl+y"]) == 0


def test_a_broken_file_is_told_by_every_command_that_reads_it(file: Path, capsys: Read) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("[keys]\nrun.details = 'a'\n[llm]\neffort = 1\n")
    for words in (["config"], ["config", "set", "llm.model", "m"], ["run", "demo", "--headless"], ["resume"], []):
        assert main(words) == 2, words
        error = capsys.readouterr().err
        assert f"{file}:4:1: 'llm.effort'" in error and "hint: tunebot config edit" in error
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert main(["schema"]) == 0


def test_edit_opens_a_new_file_and_tells_its_problems(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Read
) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\ncat "$2" > "$(dirname "$0")/seen"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{editor}' --wait")
    assert main(["config", "edit"]) == 0
    assert "# [llm]" in (tmp_path / "seen").read_text() and "is sound" in capsys.readouterr().out
    editor.write_text('#!/bin/sh\necho "[llm]\nmodle = 3" > "$2"\n')
    assert main(["config", "edit"]) == 2
    assert "llm.modle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("editor", "said"), [("no-such-editor", "cannot start"), ("false", "ended with 1"), ("'", "cannot start")]
)
def test_an_editor_that_fails(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Read, editor: str, said: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    assert main(["config", "edit"]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Read) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert main(["config", "set", "llm.model", "m"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_value_may_be_quoted(file: Path) -> None:
    assert main(["config", "set", "llm.model", '"m"']) == 0
    assert main(["config", "set", "llm.effort", 'say "hi" \\ bye']) == 0
    assert file.read_text() == '[llm]\nmodel = "m"\neffort = "say \\"hi\\" \\\\ bye"\n'


def test_the_environment_is_told_where_it_wins(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Read) -> None:
    monkeypatch.setenv("TUNEBOT_MODEL", "of-environment")
    assert main(["config", "set", "llm.model", "m"]) == 0
    assert "TUNEBOT_MODEL" in capsys.readouterr().out
