"""The run screen: header, board, server, background, log."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from agent.core import events as ev
from agent.core.actions import cannot_retry, cannot_skip, launch_to_end, question_for_next
from agent.core.state import Launch, State
from agent.core.views.background import background_view
from agent.core.views.board import board_view
from agent.core.views.dead_ends import known_short
from agent.core.views.panels import header_view, launch_name, server_view
from agent.core.views.strategy import strategy_title
from tui.screens.log import failure_line
from tui.screens.steering import SteeringScreen
from tui.widgets.background import BackgroundPanel
from tui.widgets.board import Board
from tui.widgets.header import Header
from tui.widgets.keys import Keys
from tui.widgets.log_pane import LogPane
from tui.widgets.server import ServerPanel


class RunScreen(SteeringScreen):
    """What one sits in front of."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012  (Textual's own declaration)
    AUTO_FOCUS = "Board"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "details", "details", id="run.details"),
        Binding("a", "ask", "ask", id="run.ask"),
        Binding("g", "grep", "grep", id="run.grep"),
        Binding("n", "new", "new", id="run.new"),
        Binding("i", "idea", "next idea", show=False, id="run.idea"),
        Binding("E", "edit", "change", show=False, id="run.edit"),
        Binding("J", "reorder(1)", "later", show=False, id="run.later"),
        Binding("K", "reorder(-1)", "sooner", show=False, id="run.sooner"),
        Binding("s", "skip", "skip", id="run.skip"),
        Binding("d", "dead_end", "dead end", show=False, id="run.dead-end"),
        Binding("m", "note", "note", show=False, id="run.note"),
        Binding("t", "todo", "to do", show=False, id="run.todo"),
        Binding("space", "tick", "tick off", show=False, id="run.tick"),
        Binding("r", "retry", "retry", id="run.retry"),
        Binding("p", "pause", "pause", id="run.pause"),
        Binding("e", "end", "end launch", id="run.end"),
        Binding("l", "log", "log", id="run.log"),
        Binding("c", "compare", "compare", id="run.compare"),
        Binding("v", "research", "research", id="run.research"),
        Binding("y", "needs", "needs you", id="run.needs"),
        Binding("x", "dead_ends", "dead ends", show=False, id="run.dead-ends"),
        Binding("b", "swap", "background/log", show=False, id="run.swap"),
        Binding("q", "leave", "leave", id="run.leave"),
    ]

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield Header()
        with Horizontal(id="body"):
            yield Board()
            with Vertical(id="right"):
                yield ServerPanel()
                yield BackgroundPanel()
                log = LogPane()
                log.border_title = "Log"
                yield log
        yield Keys()

    def show(self, state: State, now: float) -> None:
        """Draw all parts."""
        self.query_one(Header).show(replace(header_view(state, now), role=self._role()))
        board = self.query_one(Board)
        board.show(board_view(state))
        board.name_strategy(strategy_title(state))
        board.name_known(known_short(state))
        server = self.query_one(ServerPanel)
        server.make_room(len(state.host.gpus))
        server.show(server_view(state, now, self.source.gpus))
        self.query_one(BackgroundPanel).show(background_view(state, now))
        launch = _launch_to_follow(state)
        log = self.query_one(LogPane)
        if launch is None:
            log.show(None, "Log", now)
            return
        path = self.source.folder / "launches" / f"{launch.id}.log"
        title = f"Log: {launch.experiment} · {launch_name(state, launch)}"
        log.show(path, title, now, failure_line(launch), self.source.log_shown(launch, now))

    def _role(self) -> str:
        source = self.source
        if source.elsewhere:
            return "read-only" if source.read_only else "attached"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A session of this process is left by ctrl+q alone: that ends it."""
        return action != "leave" or self.source.elsewhere

    @on(Board.Opened)
    def _open(self) -> None:
        self.action_details()

    async def action_leave(self) -> None:
        """Leave a session that runs elsewhere."""
        await self.app.run_action("quit")

    def action_details(self) -> None:
        """All about the experiment under the cursor."""
        from tui.screens.details import DetailsScreen

        if name := self._chosen():
            self.app.push_screen(DetailsScreen(name))

    def action_compare(self) -> None:
        """What was measured, beside each other."""
        from tui.screens.compare import CompareScreen

        self.app.push_screen(CompareScreen())

    def action_research(self) -> None:
        """All findings."""
        from tui.screens.research import ResearchScreen

        self.app.push_screen(ResearchScreen())

    def action_dead_ends(self) -> None:
        """The dead ends that are known, of this session and of earlier ones."""
        from tui.screens.dead_ends import DeadEndsScreen

        self.app.push_screen(DeadEndsScreen())

    def action_needs(self) -> None:
        """What waits for a person."""
        from tui.screens.needs import NeedsScreen

        self.app.push_screen(NeedsScreen())

    def action_log(self) -> None:
        """The whole log of the launch that is followed."""
        from tui.screens.log import LogScreen

        if launch := _launch_to_follow(self.source.state):
            self.app.push_screen(LogScreen(launch.id))
        else:
            self._tell("nothing was launched yet")

    def action_swap(self) -> None:
        """Where there is no room for both: background or log."""
        self.toggle_class("-log-in-front")

    def action_ask(self) -> None:
        """A question about the experiment under the cursor."""
        from tui.dialogs.ask import AskDialog

        if (name := self._chosen()) and self._may_change():
            self._ask_for(AskDialog(name))

    def action_grep(self) -> None:
        """Look something up in the server's source."""
        from tui.dialogs.grep import GrepDialog

        if (name := self._chosen()) and self._may_change():
            self._ask_for(GrepDialog(name, self.source.state))

    def action_new(self) -> None:
        """A new experiment on top of the one under the cursor."""
        from tui.dialogs.new import NewDialog

        if (name := self._chosen()) and self._may_change():
            self._ask_for(NewDialog(name, self.source.state, self.source.known_flags))

    def action_idea(self) -> None:
        """Ask an LLM for the next experiment to try: its proposal waits on the board."""
        if self._may_change():
            self.source.submit(question_for_next(self.source.state, self.source.now()))
            self._tell("asked for the next experiment: what it proposes comes to the board")

    def action_skip(self) -> None:
        """Do not run the experiment under the cursor."""
        if (name := self._chosen()) and self._may_change(cannot_skip(self.source.state, name)):
            self.source.submit(ev.ExperimentSkipped(at=self.source.now(), experiment=name))
            self._tell(f"{name} is skipped: r takes it back")

    def action_retry(self) -> None:
        """Run the experiment under the cursor again."""
        if (name := self._chosen()) and self._may_change(cannot_retry(self.source.state, name)):
            self.source.submit(ev.ExperimentRetried(at=self.source.now(), experiment=name))
            self._tell(f"{name} is in line again")

    def action_pause(self) -> None:
        """Launch nothing new after what runs now, or go on."""
        if self._may_change():
            on = not self.source.state.paused
            self.source.submit(ev.PauseSet(at=self.source.now(), on=on))
            self._tell("paused after what runs now" if on else "goes on")

    def action_end(self) -> None:
        """End the launch that is up, after a question."""
        from tui.dialogs.confirm import ConfirmDialog

        launch = launch_to_end(self.source.state)
        if launch is None:
            self._tell("no launch is up")
        elif self._may_change():
            text = f"End this launch of {launch.experiment}? The experiment then counts as failed."
            self.app.push_screen(ConfirmDialog(text), self._ender(launch))

    def _ender(self, launch: Launch) -> Callable[[bool | None], None]:
        def end(sure: bool | None) -> None:
            present = launch_to_end(self.source.state)
            if sure and present and present.id == launch.id:
                self.source.submit(ev.LaunchAbandoned(at=self.source.now(), launch=launch.id))
            elif sure:
                self._tell("that launch has ended already")

        return end


def _launch_to_follow(state: State) -> Launch | None:
    """The launch that is up, else the last one."""
    return state.current or next(reversed(tuple(state.launches.values())), None)
