"""What every screen of a session has in common."""

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from agent.core.state import State
from tui.source import Source
from tui.widgets.trouble import Trouble

if TYPE_CHECKING:
    from tui.app import TunebotApp


class StateScreen(Screen[None]):
    """A screen that draws a state. It keeps selection, scroll and focus over every `show`."""

    @property
    def source(self) -> Source:
        """The session that is shown."""
        return cast("TunebotApp", self.app).source

    def on_mount(self) -> None:
        """Trouble comes above all else."""
        self.mount(Trouble(), before=0)

    def on_screen_resume(self) -> None:
        """A screen that comes to the front shows what is, not what was."""
        self.look()

    def look(self) -> None:
        """Draw the source as it is now."""
        for line in self.query_children(Trouble):
            line.show(self.source.trouble)
        self.show(self.source.state, self.source.now())

    def show(self, state: State, now: float) -> None:
        """Draw the state as it is at `now` (seconds since the epoch)."""
        raise NotImplementedError
