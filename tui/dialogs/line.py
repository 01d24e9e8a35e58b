"""A line of words from a person: a note, a reason, something to do."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from agent.core.edit_rules import LONGEST
from agent.text import one_line
from tui.content import plain
from tui.dialogs.base import Dialog
from tui.widgets.field import Field


class LineDialog(Dialog[str | None]):
    """Ends in what was typed, cleaned and on one line."""

    def __init__(self, title: str, told: str, placeholder: str) -> None:
        """`told` says what will be done with the words."""
        super().__init__()
        self._title, self._told, self._placeholder = title, told, placeholder

    def compose(self) -> ComposeResult:
        """The line, and what it is for."""
        with Vertical(id="box") as box:
            box.border_title = plain(one_line(self._title, 80))
            box.border_subtitle = plain("enter writes it · esc cancels")
            yield Field(placeholder=plain(self._placeholder).plain, max_length=LONGEST, id="line")
            yield Static(plain(self._told), classes="label")
            yield Static(id="problems", classes="problems")

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter writes it."""
        if words := one_line(message.value, LONGEST):
            self.dismiss(words)
        else:
            self.query_one("#problems", Static).update(plain("✖ a few words are needed"))
