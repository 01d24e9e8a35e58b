"""The dead ends that a host's history keeps, looked at before a session."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from agent.core.views.dead_ends import DeadEndView
from tui.content import plain
from tui.widgets.keys import Keys
from tui.widgets.known_ends import KnownEnds


class KnownScreen(Screen[None]):
    """Whether they still hold is told by a session there, which knows the versions of now."""

    DEFAULT_CSS = """
    KnownScreen .title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
    """
    AUTO_FOCUS = "PickList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "list", "list", id="known.list"),
        Binding("escape,q,x", "dismiss", "back", id="known.back"),
    ]

    def __init__(self, host: str, views: Sequence[DeadEndView]) -> None:
        super().__init__()
        self._host, self._views = host, views

    def compose(self) -> ComposeResult:
        """List, text, keys."""
        yield Static(plain(f"Dead ends on {self._host}"), classes="title")
        yield KnownEnds()
        yield Keys()

    def on_mount(self) -> None:
        """They do not change here."""
        self.query_one(KnownEnds).show(self._views)

    def action_list(self) -> None:
        """From the text back to the list."""
        self.query_one(KnownEnds).to_list()
