"""config.toml: every problem with its line, what is in force, and what no file may hold."""

import argparse
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.file import Config, literal, load_config
from agent.config.force import in_force, with_config
from agent.config.screen import screen_problems
from agent.config.settings import SETTINGS
from agent.config.settle import settle
from agent.diagnostics import UserError
from agent.paths import config_file
from agent.research.ask import Asker
from agent.research.budget import LIMITS


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for setting in SETTINGS:
        monkeypatch.delenv(setting.variable or "NONE", raising=False)
    config_file().parent.mkdir()
    return config_file()


def loaded(text: str) -> Config:
    found = load_config(text.encode(), "config.toml")
    assert isinstance(found, Config), found
    return found


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("[llm]\nmodle = 'm'\n", "config.toml:2:1:", "unknown setting 'llm.modle'; did you mean 'llm.model'?"),
        ("[llm]\nmodel = 3\n", "config.toml:2:1:", "'llm.model' is a text in quotes, found 3"),
        ("[llm.question]\ntokens = 2.5\n", "config.toml:2:1:", "a whole number of zero or more, found 2.5"),
        ("[llm.session]\nusd = -1\n", "config.toml:2:1:", "a number of zero or more, found -1"),
        ("[llm.session]\nusd = nan\n", "config.toml:2:1:", "a number of zero or more, found nan"),
        ("defaults.headless = 'yes'\n", "config.toml:1:1:", "true or false, found 'yes'"),
        ("[keys]\nrun.details = 5\n", "config.toml:2:1:", "a text in quotes, such as 'enter,f5'"),
        ("[llm]\napi_key = 'sk'\n", "config.toml:2:1:", "export ANTHROPIC_API_KEY in the environment"),
        ("[llm]\nmodel = \n", "config.toml:2:9:", "this is no TOML"),
        ("[llm]\nmodel = 'a'\nmodel = 'b'\n", "config.toml:3:", "this is no TOML"),
        ("llm = 'm'\n", "config.toml:1:1:", "unknown setting 'llm'"),
    ],
)
def test_a_problem_has_its_line(text: str, at: str, words: str) -> None:
    found = load_config(text.encode(), "config.toml")
    assert isinstance(found, list) and len(found) == 1
    assert str(found[0]).startswith(at) and words in str(found[0])


def test_all_problems_are_told_at_once() -> None:
    found = load_config(b"[llm]\nmodle = 'm'\neffort = 3\n[defaults]\nlog = 'x'\n", "config.toml")
    assert isinstance(found, list) and [problem.line for problem in found] == [2, 3, 5]


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"x = " + b"[" * 60_000, b"#" * 70_000, b"\x00", "[llm]\nmodel='\u202e'".encode()]
)
def test_whatever_the_bytes_are(data: bytes) -> None:
    found = load_config(data, "config.toml")
    texts = [] if isinstance(found, Config) else [str(problem) for problem in found]
    assert not any("\x00" in text or "\u202e" in text for text in texts)


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_no_bytes_break_it(data: bytes) -> None:
    found = load_config(data, "config.toml")
    if isinstance(found, list):
        assert found and all(problem.line >= 1 and problem.column >= 1 for problem in found)


def test_the_environment_goes_before_the_file_and_the_file_before_the_default(file: Path) -> None:
    file.write_text('[llm]\nmodel = "of-file"\neffort = "low"\nquestion.usd = 2\n[screen]\nbell = false\n')
    found = in_force({"TUNEBOT_EFFORT": "high", "TUNEBOT_BELL": "1", "TUNEBOT_MODEL": " "})
    assert (found["llm.model"].value, found["llm.model"].origin) == ("of-file", "file")
    assert (found["llm.effort"].value, found["llm.effort"].origin) == ("high", "environment")
    assert (found["llm.question.usd"].value, found["llm.session.usd"].value) == (2, 20.0)
    assert found["screen.bell"].value is True and found["defaults.logs"].origin == "default"


def test_questions_to_an_llm_follow_the_file(file: Path) -> None:
    llm = 'model = "mine"\neffort = "low"\nbase_url = "http://127.0.0.1:1"\n'
    file.write_text(f"[llm]\n{llm}[llm.question]\nusd = 0.5\ncalls = 7\n")
    asker = Asker.from_env(with_config({"TUNEBOT_EFFORT": "high"}))
    assert asker is not None
    assert (asker.model.name, asker.model.effort, asker.model.base_url) == ("mine", "high", "http://127.0.0.1:1")
    assert (asker.question.usd, asker.question.calls, asker.session.usd) == (0.5, 7, 20.0)


def test_every_budget_is_a_setting() -> None:
    assert set(LIMITS) < {setting.variable for setting in SETTINGS}
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)


def settled(*names: str, **given: object) -> argparse.Namespace:
    arguments = argparse.Namespace(settles=names, target=None, logs=None, headless=False, **given)
    settle(arguments, os.environ)
    return arguments


def test_arguments_that_nobody_gave(file: Path) -> None:
    usual = settled("target", "logs", "headless")
    assert (usual.target, usual.logs, usual.headless) == (None, Path("logs"), None)
    file.write_text('[defaults]\ntarget = "gpu8"\nlogs = "~/runs"\nheadless = true\n')
    found = settled("target", "logs", "headless")
    assert (found.target, found.logs, found.headless) == ("gpu8", Path("~/runs").expanduser(), True)
    assert settled("logs").target is None, "a command says what may be settled for it"


def test_what_was_given_stays(file: Path) -> None:
    file.write_text('[defaults]\nlogs = "elsewhere"\n')
    arguments = argparse.Namespace(settles=("logs",), logs=Path("here"))
    settle(arguments, os.environ)
    assert arguments.logs == Path("here")


def test_a_broken_file_stops_no_command_that_needs_none(file: Path) -> None:
    file.write_text("[llm\n")
    settle(argparse.Namespace(), os.environ)
    with pytest.raises(UserError, match="this is no TOML") as caught:
        settled("logs")
    assert caught.value.code == 2 and "tunebot config edit" in caught.value.hint


def test_places_of_settings() -> None:
    config = loaded("\n[keys]\nrun.details = 'x'\n")
    place = config.places["keys.run.details"]
    assert (place.line, place.column, place.width) == (3, 1, 11)
    assert config.keymap == {"run.details": "x"}
    odd = loaded('keys = {run = {details = "entr"}}\n')
    assert [problem.line for problem in screen_problems(odd)] == [1], "where no line of its own says it"


@given(st.text(min_size=1, max_size=12).filter(str.strip), st.sampled_from(["run.details", "app.quit", "x"]))
def test_no_key_breaks_the_check_of_keys(keys: str, action: str) -> None:
    config = load_config(f"[keys]\n{action} = {literal(keys)}\n".encode(), "config.toml")
    assert isinstance(config, Config) and config.keymap == {action: keys}
    assert all(problem.line == 2 for problem in screen_problems(config))
