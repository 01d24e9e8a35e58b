"""A question about an experiment."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from agent.core import events as ev
from agent.playbook.model import AskEntry
from agent.text import one_line
from tui.content import plain
from tui.dialogs.base import Dialog
from tui.widgets.field import Field

_LEAST = 3
MOST = 2000
"""Characters of a question."""


class AskDialog(Dialog[ev.Event | None]):
    """Ends in ResearchAdded with what was asked."""

    def __init__(self, experiment_id: str) -> None:
        super().__init__()
        self._experiment = experiment_id

    def compose(self) -> ComposeResult:
        """The question, and what it means."""
        with Vertical(id="box") as box:
            box.border_title = plain(f"Ask about {one_line(self._experiment, 60)}")
            box.border_subtitle = plain("enter asks · esc cancels")
            yield Field(placeholder="Which A2A backend fits this GPU?", max_length=MOST, id="question")
            told = "A language model answers; it may read the server's source, and change nothing."
            yield Static(plain(told), classes="label")
            yield Static(id="problems", classes="problems")

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter asks."""
        question = one_line(message.value, MOST)
        if len(question) < _LEAST:
            self.query_one("#problems", Static).update(plain("✖ a question has at least three characters"))
            return
        entry = AskEntry.model_validate({"ask": question})
        self.dismiss(ev.ResearchAdded(at=self.source.now(), experiment=self._experiment, entry=entry))
