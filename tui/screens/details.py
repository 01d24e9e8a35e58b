"""The page of one experiment: all that is known of it, live."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from agent.core import events as ev
from agent.core.state import Note, State
from agent.core.views.details import Details, details
from agent.text import one_line
from tui.content import plain, row
from tui.flow import fit
from tui.screens.base import StateScreen
from tui.widgets.diff import draw_flags
from tui.widgets.findings import draw_tasks
from tui.widgets.keys import Keys
from tui.widgets.numbers import draw_numbers
from tui.widgets.outcome import (
    draw_dead_end,
    draw_expected,
    draw_notes,
    draw_remarks,
    draw_steps,
    draw_text,
    draw_verdicts,
    word_of,
)
from tui.widgets.sections import Drawn, Section
from tui.widgets.timeline import draw_loads
from tui.widgets.usual import draw_against


class DetailsScreen(StateScreen):
    """Shows an experiment; left and right go to its neighbours on the board's order of the playbook."""

    CSS_PATH = "details.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "back", id="details.back"),
        Binding("left,left_square_bracket", "step(-1)", "previous", key_display="←", id="details.previous"),
        Binding("right,right_square_bracket", "step(1)", "next", key_display="→", id="details.next"),
        Binding("y", "copy", "copy command", id="details.copy"),
        Binding("u", "take_back", "take back note", id="details.take-back"),
    ]

    def __init__(self, experiment_id: str) -> None:
        super().__init__()
        self.experiment = experiment_id
        self._command = ""
        self._note: Note | None = None
        self._title: Drawn[tuple[Details, str]] = Drawn(_title, classes="title")
        self._sections: dict[str, Section[Any]] = {
            "why": Section("Why", draw_text),
            "notes": Section("Notes", draw_notes),
            "verdicts": Section("Verdict", draw_verdicts),
            "expected": Section("Expected", draw_expected),
            "dead_end": Section("Dead end", draw_dead_end),
            "known": Section("Known from an earlier session", draw_remarks),
            "strategy": Section("Strategy", draw_remarks),
            "flags": Section("Flags", draw_flags),
            "env": Section("Environment", draw_flags),
            "measured": Section("Measurements", draw_numbers),
            "guard": Section("Guard", draw_remarks),
            "loads": Section("Load", draw_loads),
            "against": Section("Load against earlier ones", draw_against),
            "preflights": Section("Preflights", draw_tasks),
            "research": Section("Research", draw_tasks),
            "steps": Section("Prepare", draw_steps),
            "command": Section("Launch command", draw_text),
        }

    def compose(self) -> ComposeResult:
        """A title that stays, and the page."""
        yield self._title
        with VerticalScroll(id="page"):
            yield from self._sections.values()
        yield Keys()

    def on_mount(self) -> None:
        """The keys of the page work at once."""
        self.query_one("#page").focus()

    def show(self, state: State, now: float) -> None:
        """Draw what changed."""
        if self.experiment not in state.experiments:
            self.experiment = next(iter(state.experiments))
        page = self.query_one("#page", VerticalScroll)
        # What grows above the lines that are being read must not push them away.
        read = next((part for part in self._sections.values() if part.virtual_region.bottom > page.scroll_y), None)
        top = read.virtual_region.y if read else 0
        view = details(state, self.experiment, now)
        names = list(state.experiments)
        self._command = view.command
        self._title.show((view, f"{names.index(self.experiment) + 1} of {len(names)}"))
        for name, section in self._sections.items():
            section.show(getattr(view, name))
        if self._note != (note := self._newest_note()):
            self._note = note
            self.refresh_bindings()
        if read is not None and page.scroll_y > 0:
            self.call_after_refresh(self._hold, page, read, top)

    def _hold(self, page: VerticalScroll, read: Section[Any], before: int) -> None:
        if (moved := read.virtual_region.y - before) and read.display:
            page.scroll_relative(y=moved, animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A note is taken back where there is one, and somebody may."""
        return action != "take_back" or self._newest_note() is not None

    def _newest_note(self) -> Note | None:
        """The note that a key would take back."""
        state = self.source.state
        experiment = state.experiments.get(self.experiment)
        if experiment is None or self.source.read_only or state.interrupted or state.ending:
            return None
        return next(reversed(experiment.notes), None)

    def action_take_back(self) -> None:
        """The newest note goes; pressed again, the one before it."""
        if note := self._newest_note():
            self.source.submit(ev.NoteTakenBack(at=self.source.now(), experiment=self.experiment, written_at=note.at))
            self.notify(one_line(f"taken back: {note.text}"), timeout=4, markup=False)

    def action_step(self, by: int) -> None:
        """Go to another experiment, around the ends."""
        names = list(self.source.state.experiments)
        self.experiment = names[(names.index(self.experiment) + by) % len(names)]
        self.show(self.source.state, self.source.now())
        self.query_one("#page").scroll_home(animate=False)

    def action_copy(self) -> None:
        """Hand the launch command to the terminal's clipboard."""
        self.app.copy_to_clipboard(self._command)
        self.notify("the launch command is in the clipboard", markup=False)


def _title(shown: tuple[Details, str], width: int) -> Content:
    view, place = shown
    parts: list[str | Content] = [plain(one_line(view.experiment), "bold"), "  ", word_of(view.word)]
    if view.incumbent:
        parts.append(plain("  ★ incumbent", "$text-success"))
    if view.now and view.now != view.word:
        parts.append(plain(f"  {one_line(view.now)}", "$text-primary"))
    if view.parent:
        parts.append(plain(f"  based on {one_line(view.parent)}", "$foreground-muted"))
    if view.when:
        parts.append(plain(f"  {one_line(view.when)}", "$foreground-muted"))
    return fit(row(*parts), max(1, width - len(place) - 2)) + plain(f"  {place}", "$foreground-muted")
