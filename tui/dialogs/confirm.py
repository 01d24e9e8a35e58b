"""A question with two answers; the safe one is what enter gives at first."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from tui.content import plain, row
from tui.dialogs.base import Dialog
from tui.flow import lines


class ConfirmDialog(Dialog[bool]):
    """True for yes; False for no and for escape."""

    DEFAULT_CSS = """
    ConfirmDialog #text { height: auto; max-height: 14; scrollbar-size-vertical: 1; }
    ConfirmDialog #text > Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n,escape", "answer(False)", "No", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    def __init__(self, text: str, more: Content | None = None) -> None:
        """`more` is what the question is about, where plain text is not enough."""
        super().__init__()
        self._text, self._more = text, more

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical(id="box") as box:
            box.border_subtitle = plain("y yes · n no")
            with VerticalScroll(id="text", can_focus=False):
                # Line by line: a text is cut where it is longer than any line can be.
                yield Static(lines(*(plain(line) for line in self._text.split("\n"))))
                if self._more is not None:
                    yield Static(lines(Content(""), self._more))
            with Horizontal(classes="buttons"):
                yield Button(row("No"), id="no")
                yield Button(row("Yes"), id="yes")

    def on_mount(self) -> None:
        """Enter by itself says no."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """The answer."""
        self.dismiss(message.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """The answer by its letter."""
        self.dismiss(yes)

    def action_page(self, by: int) -> None:
        """Read on in a long question."""
        text = self.query_one("#text", VerticalScroll)
        text.scroll_to(y=text.scroll_offset.y + by * text.size.height, animate=False)
