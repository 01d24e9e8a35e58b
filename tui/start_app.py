"""The app before a session: it ends in what a person chose, and the command line goes on from there."""

from collections.abc import Iterator, Sequence

from textual.app import App

from agent.core.views.entries import PlaybookEntry, SessionEntry
from tui.look import Look, dress
from tui.screens.start import Choice, Hosts, StartScreen


class StartApp(App[Choice]):
    """Its result is what was chosen, or None where the person left."""

    TITLE = "tunebot"

    def __init__(
        self,
        playbooks: Sequence[PlaybookEntry],
        sessions: Iterator[SessionEntry],
        chosen: str = "",
        look: Look | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """As for StartScreen."""
        super().__init__()
        self._look = look or Look()
        self._start = StartScreen(playbooks, sessions, chosen, hosts)

    def on_mount(self) -> None:
        """Show the one screen that it has."""
        dress(self, self._look)
        self.push_screen(self._start, lambda choice: self.exit(choice))
