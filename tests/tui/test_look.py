"""The screen as a person wants it: other keys, another theme, no bell."""

from pathlib import Path

import pytest

from agent import verbs
from agent.cli import main
from agent.config.screen import look_of
from agent.paths import config_file
from tests.tui.kit import Session, story, until
from tests.tui.test_start_screen import MINE
from tui.app import TunebotApp
from tui.keys import actions, in_front_together, is_key, keys_of
from tui.look import Look
from tui.screens.details import DetailsScreen
from tui.screens.help import HelpScreen
from tui.screens.run import RunScreen
from tui.start_app import StartApp


def test_every_action_of_the_run_screen_is_known() -> None:
    known = actions()
    for name, keys in (("run.details", ("enter",)), ("app.quit", ("ctrl+q",)), ("board.up", ("up", "k"))):
        assert known[name].keys == keys and known[name].about
    assert {"start.resume", "needs.approve", "log.find", "replay.play", "help.close"} <= set(known)


def test_every_default_key_is_a_key() -> None:
    assert all(is_key(key) for action in actions().values() for key in action.keys)


@pytest.mark.parametrize("name", ["a", "J", "?", "ü", "enter", "space", "f5", "ctrl+x", "shift+left", "question_mark"])
def test_names_of_keys(name: str) -> None:
    (key,) = keys_of(name)
    assert is_key(key)


@pytest.mark.parametrize("name", ["entr", "control+x", "ctrl+", "f99", "spacebar", "ctrl+entr"])
def test_what_is_no_key(name: str) -> None:
    assert not all(is_key(key) for key in keys_of(name))


def test_which_actions_are_in_front_together() -> None:
    assert in_front_together("run.ask", "run.grep") and in_front_together("run.ask", "board.up")
    assert in_front_together("replay.play", "run.details") and in_front_together("app.help", "needs.approve")
    assert not in_front_together("needs.approve", "run.ask")


async def test_other_keys_do_what_they_say_and_are_shown(tmp_path: Path) -> None:
    look = Look(keys={"run.details": "f5", "app.help": "f1"}, theme="textual-light")
    app = TunebotApp(story("loading", tmp_path), look=look)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app._shown[0] >= 0)
        assert app.theme == "textual-light"
        assert "f5" in app.screen.active_bindings and "enter" not in app.screen.active_bindings
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await pilot.press("escape")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_keys_may_change_places(tmp_path: Path) -> None:
    app = TunebotApp(story("loading", tmp_path), look=Look(keys={"run.ask": "g", "run.grep": "a"}))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        actions_of = {key: found.binding.action for key, found in app.screen.active_bindings.items()}
        assert (actions_of["a"], actions_of["g"]) == ("grep", "ask")


async def test_the_start_screen_has_them_too() -> None:
    app = StartApp([MINE], iter(()), look=Look(keys={"start.quit": "f10"}, theme="nord"))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "f10" in app.screen.active_bindings)
        assert app.theme == "nord"
        await pilot.press("f10")
    assert app.return_value is None


async def test_no_bell_where_it_is_turned_off(tmp_path: Path) -> None:
    app = TunebotApp(Session(folder=tmp_path).begin(), look=Look(rings=False))
    async with app.run_test() as pilot:
        await pilot.press("B")
        await until(pilot, lambda: bool(app._notifications))
        assert [note.message for note in app._notifications] == ["the bell is on"]


def test_the_look_comes_from_the_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert look_of({}) == Look()
    config_file().parent.mkdir()
    config_file().write_text('[screen]\ntheme = "nord"\n[keys]\nrun.details = "f5"\n')
    assert look_of({"TUNEBOT_BELL": "0"}) == Look(theme="nord", keys={"run.details": "f5"}, rings=False)


@pytest.mark.parametrize("words", [("run", "demo"), ("replay", "logs/sample"), ()])
def test_a_bad_key_map_ends_before_anything_begins(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(verbs, "at_terminal", lambda arguments: True)
    config_file().parent.mkdir()
    file = f'[defaults]\nlogs = "{tmp_path / "logs"}"\n[keys]\nrun.ask = "f5"\nrun.detials = "x"\nrun.grep = "f5"\n'
    config_file().write_text(file)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "has 2 problems" in error and "did you mean 'run.details'?" in error
    assert "'f5' is the key of run.ask and run.grep" in error and "Traceback" not in error
    assert not (tmp_path / "logs").exists()
