"""The run screen: header, board, server, background, log."""

from textual.app import ComposeResult
from textual.widgets import Footer, Static

from agent.core.state import State
from agent.core.views import board
from tui.content import plain
from tui.screens.base import StateScreen


class RunScreen(StateScreen):
    """What one sits in front of."""

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield Static(id="board")
        yield Footer()

    def show(self, state: State, now: float) -> None:
        """Draw all parts."""
        text = "\n".join(f"{r.glyph} {r.experiment} {r.word} {r.value}" for r in board(state))
        self.query_one("#board", Static).update(plain(text))
