"""The research view: all background tasks, and one of them in full."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from agent.core import events as ev
from agent.core.state import State
from agent.core.views.tasks import TaskLine, Transcript, task_lines, transcript
from agent.text import one_line
from tui.content import plain
from tui.screens.base import StateScreen
from tui.widgets.keys import Keys
from tui.widgets.pick_list import Pick, PickList
from tui.widgets.sections import Drawn
from tui.widgets.transcript import draw_task_line, draw_transcript


class ResearchScreen(StateScreen):
    """The list above, the chosen task below; side by side where there is room."""

    CSS_PATH = "research.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "list", "list", id="research.list"),
        Binding("x", "cancel", "cancel task", id="research.cancel"),
        Binding("escape,q", "app.pop_screen", "back", id="research.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
        self._list: PickList[TaskLine | str] = PickList(draw_task_line, id="tasks")
        self._text: Drawn[Transcript] = Drawn(draw_transcript)

    def compose(self) -> ComposeResult:
        """List, text, keys."""
        yield Static(plain("Research"), classes="title")
        with Container(id="parts"):
            yield self._list
            with VerticalScroll(id="transcript"):
                yield self._text
        yield Static(plain("nothing was looked up yet: a asks, g greps, on the board"), id="empty")
        yield Keys()

    def on_mount(self) -> None:
        """Arrows choose at once."""
        self._list.focus()

    def show(self, state: State, now: float) -> None:
        """Draw what changed; the chosen task stays chosen wherever it moves to."""
        rows: list[Pick[TaskLine | str]] = []
        group = None
        for line in task_lines(state, now):
            if line.group != group:
                group = line.group
                rows.append(Pick(None, group))
            rows.append(Pick(line.id, line))
        self._list.show(rows)
        self.query_one("#parts").display = bool(rows)
        self.query_one("#empty").display = not rows
        if self._list.chosen is not None:
            self._text.show(transcript(state, self._list.chosen, now))

    def on_pick_list_chosen(self, message: PickList.Chosen) -> None:
        """Another task is read from its beginning."""
        self._text.show(transcript(self.source.state, message.key, self.source.now()))
        self.query_one("#transcript").scroll_home(animate=False)

    def on_pick_list_opened(self, message: PickList.Opened) -> None:
        """To the text, so that the arrows scroll it."""
        self.query_one("#transcript").focus()

    def action_list(self) -> None:
        """From the text back to the list."""
        self._list.focus()

    def action_cancel(self) -> None:
        """Cancel the chosen task if it runs."""
        task = self.source.state.tasks.get(self._list.chosen or "")
        if task is None:
            return
        if self.source.read_only:
            self.notify(one_line(self.source.read_only), markup=False)
        elif task.status is None:
            self.source.submit(ev.TaskAbandoned(at=self.source.now(), task=task.task.id))
            self.notify("the task is being cancelled", markup=False)
        else:
            self.notify("this task has ended already", markup=False)
