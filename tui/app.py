"""The app: shows a source, 20 times a second if it changed and once a second if it did not."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import ModalScreen, Screen

from agent.core import events as ev
from agent.core.leaving import leaving
from agent.core.needs import needs
from tui.content import hide_secrets
from tui.look import Look, dress
from tui.screens.base import StateScreen
from tui.screens.help import HelpScreen
from tui.screens.run import RunScreen
from tui.source import Source

FRAMES_PER_SECOND = 20


class TunebotApp(App[None]):
    """Owns no task of the session: leaving it is a wish that the engine carries out."""

    CSS_PATH = "tunebot.tcss"
    TITLE = "tunebot"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", key_display="?", id="app.help"),
        Binding("B", "toggle_bell", "bell on/off", show=False, id="app.bell"),
        Binding("ctrl+q", "quit", "quit", priority=True, id="app.quit"),
    ]

    def __init__(
        self,
        source: Source,
        first: type[StateScreen] = RunScreen,
        driver_class: type[Driver] | None = None,
        look: Look | None = None,
    ) -> None:
        """`first` is the screen to begin with."""
        super().__init__(driver_class=driver_class)
        self.source = source
        self.fault: Exception | None = None
        """What broke the screen, if anything did: the app has ended then."""
        self._first = first
        self._shown: tuple[int, int] = (-1, -1)
        self._look = look or Look()
        self._rings = self._look.rings
        self._known_needs: frozenset[str] = frozenset()
        self.leaving = False
        """Whether a person wants the session to end: the app ends with it."""

    def on_mount(self) -> None:
        """Begin with the first screen."""
        hide_secrets(self.source.redact)
        dress(self, self._look)
        self._known_needs = self._need_keys()
        self.push_screen(self._first())
        self.set_interval(1 / FRAMES_PER_SECOND, self.refresh_state)

    def refresh_state(self) -> None:
        """Show the present state on the screen in front, and on the one behind a dialog."""
        frame = (self.source.version, int(self.source.now()))
        # While the app closes, the parts of its screens go one by one.
        if frame == self._shown or not self.is_running:
            return
        self._shown = frame
        for screen in reversed(self.screen_stack):
            if isinstance(screen, StateScreen) and screen.is_mounted:
                screen.look()
            if not isinstance(screen, ModalScreen):
                break
        self._ring()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every key of the screen, then the app's own."""
        for _, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.description and binding.id and binding.id.partition(".")[0] != "board":
                words = f"{binding.description}  ({self.get_key_display(binding)})"
                target = self if binding.id.startswith("app.") else screen
                yield SystemCommand(words, binding.id, partial(target.run_action, binding.action))
        yield SystemCommand("theme", "change the colours", self.action_change_theme)

    def action_help(self) -> None:
        """The keys and signs of the screen in front."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_toggle_bell(self) -> None:
        """Whether the bell rings when something needs a person."""
        self._rings = not self._rings
        self.notify(f"the bell is {'on' if self._rings else 'off'}", timeout=4, markup=False)

    async def action_quit(self) -> None:
        """Leave. A session of this process winds up first; a server that is up is asked about."""
        state = self.source.state
        if self.source.read_only or state.ending:
            self.exit()
        elif self.source.elsewhere:
            from tui.dialogs.quit import DetachDialog

            self._ask(DetachDialog(state), self._leave_or_detach)
        elif self.leaving or state.interrupted:
            self.notify("stopping: the screen closes when the session has ended", timeout=4, markup=False)
        elif not leaving(state).asks:
            self._leave(keep=False)
        else:
            from tui.dialogs.quit import QuitDialog

            self._ask(QuitDialog(state), self._leave)

    def _ask(self, dialog: Screen[bool | None], then: Callable[[bool | None], None]) -> None:
        if type(self.screen) is not type(dialog):
            self.push_screen(dialog, then)

    def _leave_or_detach(self, end: bool | None) -> None:
        if end:
            self._leave(keep=False)
        elif end is not None:
            self.exit()

    def _leave(self, keep: bool | None) -> None:
        if keep is not None and not self.leaving:
            self.leaving = True
            self.source.submit(ev.InterruptRequested(at=self.source.now(), keep=keep))

    def _need_keys(self) -> frozenset[str]:
        return frozenset(need.key for need in needs(self.source.state))

    def _ring(self) -> None:
        present = self._need_keys()
        if not self.source.read_only and self._rings and present - self._known_needs:
            self.bell()
        self._known_needs = present

    def _fatal_error(self) -> None:
        # Textual would print the whole traceback; whoever runs the app reports `fault` in words.
        self.fault = self._exception
        self._close_messages_no_wait()
