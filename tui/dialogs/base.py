"""What every dialog has in common: a box in the middle, and an escape that changes nothing."""

from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tui.source import Source

if TYPE_CHECKING:
    from tui.app import TunebotApp

R = TypeVar("R")


class Dialog(ModalScreen[R]):
    """Gives its result to the callback of `push_screen`: None where the person thought better of it."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > #box {
        width: 90%; max-width: 88; height: auto; max-height: 90%;
        padding: 1 2 0 2; border: round $primary; background: $surface;
    }
    Dialog .label { color: $foreground-muted; }
    Dialog Input { height: 1; border: none; padding: 0 1; margin-bottom: 1; background: $panel; }
    Dialog Input:focus { border: none; background: $primary-muted; }
    Dialog .problems { height: auto; min-height: 2; color: $text-error; }
    Dialog .buttons { height: auto; margin-top: 1; align-horizontal: right; }
    Dialog Button { margin-left: 2; min-width: 12; }
    Dialog Button:focus { background: $primary; color: $text; text-style: bold !important; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_none", "Cancel", show=False)]

    @property
    def source(self) -> Source:
        """The session that the dialog is about."""
        return cast("TunebotApp", self.app).source

    def action_dismiss_none(self) -> None:
        """Leave without a result."""
        self.dismiss(None)
