"""The whole log of one launch, and the way to those of the others."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from agent.core.state import Launch, LaunchStage, State
from agent.core.views.panels import launch_name
from tui.content import MUTED, cut, plain, row
from tui.screens.base import StateScreen
from tui.widgets.keys import Keys
from tui.widgets.log_pane import LogPane
from tui.widgets.log_status import LogStatus, place_of, search_of
from tui.widgets.view import ViewStatic


def failure_line(launch: Launch) -> int | None:
    """The line of a launch's log (from one) that shows why it failed."""
    evidence = launch.failure.evidence if launch.failure else ()
    return next((quote.line for quote in evidence if quote.path.endswith(".log")), None)


@dataclass(frozen=True, slots=True)
class Title:
    """What log this is. `width` is in cells."""

    name: str
    stage: str
    failure: str
    width: int


class TitleLine(ViewStatic[Title]):
    """The experiment, the launch, and how that stands."""

    def draw(self, view: Title) -> Content:
        """One line."""
        head = row(plain(view.name, "bold"), "  ", plain(view.stage, "$text-error" if view.failure else MUTED))
        return row(head, "  ", cut(view.failure, max(0, view.width - head.cell_length - 2)))


class StatusLine(ViewStatic[tuple[LogStatus, int]]):
    """What is searched, what is filtered, and where the view is."""

    def draw(self, view: tuple[LogStatus, int]) -> Content:
        """One line: the search at the left, the place at the right."""
        status, width = view
        filters = "all ranks" if status.rank is None else f"rank {status.rank}"
        search = search_of(status)
        left = row(filters, "  ", "lines wrapped" if status.wrap else "long lines cut", "  " if search else "", search)
        if status.told:
            left = row(left, "  ", plain(status.told, MUTED))
        place = place_of(status)
        gap = max(2, width - left.cell_length - place.cell_length)
        return row(left, " " * gap, place)


class LogScreen(StateScreen):
    """A log that fills the terminal."""

    CSS_PATH = "log.tcss"
    AUTO_FOCUS = "LogPane"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "step(-1)", "launches", key_display="[ ]", id="log.previous-launch"),
        Binding("right_square_bracket", "step(1)", "next launch", show=False, id="log.next-launch"),
        Binding("escape,q", "app.pop_screen", "back", id="log.back"),
    ]

    def __init__(self, launch_id: str) -> None:
        super().__init__()
        self.launch = launch_id

    def compose(self) -> ComposeResult:
        """A title, the log, a status line."""
        yield TitleLine(classes="title")
        yield LogPane()
        yield StatusLine(classes="status")
        yield Keys()

    def show(self, state: State, now: float) -> None:
        """Go on with the log; say how its launch stands."""
        launch = state.launches.get(self.launch)
        if launch is None:  # a replay was moved to before it
            self.app.pop_screen()
            return
        name = f"{launch.experiment} · {launch_name(state, launch)}"
        reason = launch.failure.reason if launch.failure else ""
        stage = LaunchStage.FAILED if launch.failure else launch.stage
        self.query_one(TitleLine).show(Title(name, stage.value, reason, self.size.width - 2))
        path = self.source.folder / "launches" / f"{launch.id}.log"
        shown = self.source.log_shown(launch, now)
        self.query_one(LogPane).show(path, name, now, failure_line(launch), shown)

    @on(LogPane.Changed)
    def _changed(self, message: LogPane.Changed) -> None:
        self.query_one(StatusLine).show((message.status, self.size.width - 2))

    def on_resize(self) -> None:
        """The lines at the edges are as wide as the terminal."""
        for line in self.query(StatusLine):
            line.show((self.query_one(LogPane).status, self.size.width - 2))
            self.show(self.source.state, self.source.now())

    def action_step(self, by: int) -> None:
        """The log of the launch before this one, or after it."""
        launches = list(self.source.state.launches)
        at = launches.index(self.launch) + by
        if 0 <= at < len(launches):
            self.launch = launches[at]
            self.show(self.source.state, self.source.now())
