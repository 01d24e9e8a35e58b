"""A search in the server's source."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from agent.core import events as ev
from agent.core.parse_grep import TEXT_LIMIT, parse_grep, places_of
from agent.core.state import State
from agent.text import one_line
from tui.content import plain
from tui.dialogs.base import Dialog
from tui.flow import lines
from tui.widgets.field import Field


class GrepDialog(Dialog[ev.Event | None]):
    """Ends in ResearchAdded with a pattern and the places to search; all sources unless the person says otherwise."""

    def __init__(self, experiment_id: str, state: State) -> None:
        super().__init__()
        self._experiment, self._state = experiment_id, state

    def compose(self) -> ComposeResult:
        """Pattern and places."""
        with Vertical(id="box") as box:
            box.border_title = plain(f"Search the source for {one_line(self._experiment, 60)}")
            box.border_subtitle = plain("enter searches · tab next field · esc cancels")
            yield Static(plain("pattern, as for grep -E"), classes="label")
            yield Field(placeholder="flashinfer.*a2a|a2a.*flashinfer", max_length=TEXT_LIMIT, id="pattern")
            yield Static(plain("where: NAME:path, several with spaces between"), classes="label")
            yield Field(
                places_of(self._state, self._experiment),
                max_length=TEXT_LIMIT,
                id="places",
                select_on_focus=False,
            )
            yield Static(id="problems", classes="problems")

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter searches, from either field."""
        pattern, places = (self.query_one(f"#{name}", Input).value for name in ("pattern", "places"))
        found = parse_grep(self._state, self._experiment, pattern, places)
        if isinstance(found, list):
            self.query_one("#problems", Static).update(lines(*(plain(f"✖ {problem}") for problem in found)))
            return
        self.dismiss(ev.ResearchAdded(at=self.source.now(), experiment=self._experiment, entry=found))
