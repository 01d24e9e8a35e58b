"""The dead ends that are known: of this session and of earlier ones on its host, and whether each still holds."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from agent.core.state import State
from agent.core.views.dead_ends import dead_end_views, wish_of
from agent.text import one_line
from tui.content import plain
from tui.screens.base import StateScreen
from tui.widgets.keys import Keys
from tui.widgets.known_ends import KnownEnds


class DeadEndsScreen(StateScreen):
    """What was ruled out, and what of that may be worth another try."""

    DEFAULT_CSS = """
    DeadEndsScreen .title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
    """
    AUTO_FOCUS = "PickList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "list", "list", id="dead-ends.list"),
        Binding("r", "revisit", "back to TODO", id="dead-ends.revisit"),
        Binding("escape,q,x", "app.pop_screen", "back", id="dead-ends.back"),
    ]

    def compose(self) -> ComposeResult:
        """List, text, keys."""
        yield Static(plain("Dead ends"), classes="title")
        yield KnownEnds()
        yield Keys()

    def show(self, state: State, now: float) -> None:
        """Draw what changed."""
        self.query_one(KnownEnds).show(dead_end_views(state))

    def action_list(self) -> None:
        """From the text back to the list."""
        self.query_one(KnownEnds).to_list()

    def action_revisit(self) -> None:
        """Put the chosen one back in line."""
        view, state = self.query_one(KnownEnds).chosen, self.source.state
        if view is None:
            return
        refusal = self.source.read_only or ("the session is ending" if state.interrupted or state.ending else "")
        wish = refusal or wish_of(state, view.key, self.source.now())
        if isinstance(wish, str):
            self.notify(one_line(wish), markup=False)
        else:
            self.source.submit(wish)
            self.notify(one_line(f"{view.experiment} is back in TODO"), markup=False)
