"""A person's own editor in a real terminal: it gets the screen and the keys, and gives them back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.journal.journal import read_journal
from tests.tui.test_tmux import Tmux, folder_of, pytestmark, tmux  # noqa: F401

# The signal is that of a ctrl+c at once: it reaches tunebot too, which has only just started this.
EDITOR = """#!/bin/sh
kill -INT $PPID
printf 'WHAT SHALL IT BE? '
read answer
sed -i "s/ep-size: .*/ep-size: $answer/" "$1"
"""


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It asks in the terminal for one number."""
    program = tmp_path / "editor"
    program.write_text(EDITOR)
    program.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(program))
    yield


@pytest.mark.usefixtures("editor")
@pytest.mark.long
def test_an_editor_gets_the_terminal_and_gives_it_back(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    terminal: Tmux = request.getfixturevalue("tmux")
    terminal.until("Board", "NOW", "base", "measuring")
    terminal.press("p")  # what has begun cannot be changed
    terminal.until("paused")
    terminal.press("j")
    terminal.until("❯○ idea")
    terminal.press("E")
    terminal.until("Change idea, based on base")
    terminal.press("C-e")
    terminal.until("WHAT SHALL IT BE?", without="Change idea")
    terminal.press("C-c")
    terminal.until("nothing is changed", "Change idea")
    terminal.press("C-e")
    terminal.until("WHAT SHALL IT BE?", without="Change idea")
    terminal.type("4")
    terminal.press("Enter")
    terminal.until("Board", without="Change idea")
    terminal.press("Enter")
    terminal.until("--ep-size", "4", "added")
    (changed,) = (event for event in read_journal(folder_of(tmp_path)) if isinstance(event, ev.ExperimentChanged))
    assert changed.args == {"ep-size": "4"} and changed.why == "two ranks, two halves"
