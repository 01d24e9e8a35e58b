"""The app: shows a source, 20 times a second if it changed and once a second if it did not."""

from textual.app import App

from tui.screens.base import StateScreen
from tui.screens.replay import ReplayScreen
from tui.screens.run import RunScreen
from tui.source import Source

FRAMES_PER_SECOND = 20


class TunebotApp(App[None]):
    """Owns no task of the session: leaving it is a wish that the engine carries out."""

    CSS_PATH = "tunebot.tcss"
    TITLE = "tunebot"

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self._shown = (-1, -1)

    def on_mount(self) -> None:
        """Begin with the run screen, or that of a recorded session."""
        self.push_screen(RunScreen() if self.source.live else ReplayScreen())
        self.set_interval(1 / FRAMES_PER_SECOND, self.refresh_state)

    def refresh_state(self) -> None:
        """Show the present state on the screen in front."""
        frame = (self.source.version, int(self.source.now()))
        if frame != self._shown and isinstance(self.screen, StateScreen):
            self._shown = frame
            self.screen.show(self.source.state, self.source.now())
