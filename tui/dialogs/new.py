"""A new experiment on top of another one: what is typed is checked, and shown as a diff, at every key."""

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from agent.core import events as ev
from agent.core.parse_new import TEXT_LIMIT, Flags, parse_new, suggested_id
from agent.core.state import State
from agent.core.views.flags import spec_rows
from agent.playbook.model import Experiment
from agent.text import one_line
from tui.content import plain
from tui.dialogs.base import Dialog
from tui.flow import lines
from tui.widgets.diff import draw_flags
from tui.widgets.field import Field

_MOST_PROBLEMS = 4


class NewDialog(Dialog[ev.Event | None]):
    """Ends in ExperimentAdded. The id follows the text until the person writes one."""

    DEFAULT_CSS = """
    NewDialog #told { height: 5; scrollbar-size-vertical: 1; }
    NewDialog #told > Static { height: auto; }
    """

    def __init__(self, experiment_id: str, state: State, known_flags: Flags = ()) -> None:
        super().__init__()
        self._based_on, self._state, self._flags = experiment_id, state, known_flags
        self._suggested = suggested_id(state, "")

    def compose(self) -> ComposeResult:
        """What to change, how to call it, why; and what comes of it."""
        with Vertical(id="box") as box:
            box.border_title = plain(f"New experiment, based on {one_line(self._based_on, 60)}")
            box.border_subtitle = plain("enter adds it · tab next field · esc cancels")
            yield Static(plain("FLAG=VALUE  FLAG  -FLAG takes away  ENV:NAME=VALUE"), classes="label")
            yield Field(
                placeholder="cuda-graph-max-bs=256 -disable-custom-all-reduce", max_length=TEXT_LIMIT, id="text"
            )
            yield Static(plain("id"), classes="label")
            yield Field(self._suggested, max_length=64, id="name", select_on_focus=False)
            yield Static(plain("why (may stay empty)"), classes="label")
            yield Field(max_length=500, id="why")
            with VerticalScroll(id="told", can_focus=False):
                yield Static(id="problems")

    def on_input_changed(self, message: Input.Changed) -> None:
        """Check, and show what it would be."""
        name = self.query_one("#name", Input)
        if message.input.id == "text" and name.value == self._suggested:
            self._suggested = suggested_id(self._state, message.value)
            with self.prevent(Input.Changed):
                name.value = self._suggested
        self._tell()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter adds it, from any field; with problems it says them."""
        found = self._parsed()
        if isinstance(found, Experiment):
            self.dismiss(ev.ExperimentAdded(at=self.source.now(), spec=found))
        else:
            self._tell()

    def _parsed(self) -> Experiment | list[str]:
        text, name, why = (self.query_one(f"#{field}", Input).value for field in ("text", "name", "why"))
        # The session goes on while one types: the id may be taken by now.
        return parse_new(self.source.state, self._based_on, name, text, self._flags, one_line(why, 500))

    def _tell(self) -> None:
        found = self._parsed()
        told = self.query_one("#problems", Static)
        if isinstance(found, Experiment):
            rows = spec_rows(self.source.state, found)
            told.update(draw_flags(rows, max(20, told.size.width)))
            return
        shown = [plain(f"✖ {one_line(problem)}", "$text-error") for problem in found[:_MOST_PROBLEMS]]
        if (more := len(found) - _MOST_PROBLEMS) > 0:
            shown.append(plain(f"  and {more} more", "$text-error"))
        told.update(lines(*shown) if self.query_one("#text", Input).value.strip() else Content(""))
