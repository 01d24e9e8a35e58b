"""Known dead ends: the list above, the chosen one in full below."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from agent.core.views.dead_ends import DeadEndView
from tui.content import plain
from tui.widgets.dead_ends import draw_known, draw_known_line
from tui.widgets.pick_list import Pick, PickList
from tui.widgets.sections import Drawn


class KnownEnds(Container):
    """The chosen one stays chosen over every `show`."""

    DEFAULT_CSS = """
    KnownEnds { height: 1fr; layout: vertical; }
    KnownEnds #ends { height: 2fr; }
    KnownEnds #end { height: 3fr; border-top: solid $panel; padding: 0 2 0 1; scrollbar-size-vertical: 1; }
    KnownEnds #end:focus { border-top: solid $primary; }
    KnownEnds #none { height: 1fr; padding: 1 2; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._list: PickList[DeadEndView | str] = PickList(draw_known_line, id="ends")
        self._text: Drawn[DeadEndView] = Drawn(draw_known)
        self._page = VerticalScroll(self._text, id="end")
        self._none = Static(plain("nothing is known to be a dead end here"), id="none")
        self._views: dict[str, DeadEndView] = {}

    def compose(self) -> ComposeResult:
        """List and text."""
        yield self._list
        yield self._page
        yield self._none

    @property
    def chosen(self) -> DeadEndView | None:
        """The one under the cursor."""
        return self._views.get(self._list.chosen or "")

    def show(self, views: Sequence[DeadEndView]) -> None:
        """Draw what changed."""
        self._views = {view.key: view for view in views}
        rows: list[Pick[DeadEndView | str]] = []
        group = ""
        for view in views:
            if view.group != group:
                group = view.group
                rows.append(Pick(None, group))
            rows.append(Pick(view.key, view))
        self._list.show(rows)
        self._list.display = self._page.display = bool(rows)
        self._none.display = not rows
        if self.chosen is not None:
            self._text.show(self.chosen)

    def to_list(self) -> None:
        """Arrows choose."""
        self._list.focus()

    def on_pick_list_chosen(self, message: PickList.Chosen) -> None:
        """Another one is read from its beginning."""
        self._text.show(self._views[message.key])
        self._page.scroll_home(animate=False)

    def on_pick_list_opened(self, message: PickList.Opened) -> None:
        """To the text, so that the arrows scroll it."""
        self._page.focus()
