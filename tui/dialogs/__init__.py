"""Dialogs: each gives an event (or an answer) to the callback of `push_screen`, or None."""

from tui.dialogs.ask import AskDialog
from tui.dialogs.confirm import ConfirmDialog
from tui.dialogs.grep import GrepDialog
from tui.dialogs.line import LineDialog
from tui.dialogs.new import ChangeDialog, NewDialog
from tui.dialogs.quit import DetachDialog, QuitDialog

__all__ = [
    "AskDialog",
    "ChangeDialog",
    "ConfirmDialog",
    "DetachDialog",
    "GrepDialog",
    "LineDialog",
    "NewDialog",
    "QuitDialog",
]
