"""A heading and a body that is drawn for its width: the unit of a page of details."""

from collections.abc import Callable
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from tui.content import plain

V = TypeVar("V")


class Drawn(Static, Generic[V]):
    """Draws a view for the present width, again only where the view or the width changed."""

    def __init__(self, draw: Callable[[V, int], Content], classes: str = "") -> None:
        super().__init__(classes=classes)
        self._draw = draw
        self._drawn: tuple[V, int] | None = None
        self.view: V | None = None

    def show(self, view: V) -> None:
        """Draw this view unless it is on the screen already."""
        self.view = view
        self._redraw(view)

    def on_resize(self, event: Resize) -> None:
        """Lines are broken for the width, so another width needs other lines."""
        if self.view is not None:
            self._redraw(self.view)

    def _redraw(self, view: V) -> None:
        width = self.content_size.width
        if width > 0 and self._drawn != (view, width):
            self._drawn = (view, width)
            self.update(self._draw(view, width))


class Section(Vertical, Generic[V]):
    """Hidden while there is nothing to show."""

    DEFAULT_CSS = """
    Section { height: auto; margin-bottom: 1; }
    Section > .heading { text-style: bold; color: $text-primary; }
    Section > .body { height: auto; padding: 0 1 0 2; }
    """

    def __init__(self, title: str, draw: Callable[[V, int], Content]) -> None:
        super().__init__()
        self._title = title
        self._body: Drawn[V] = Drawn(draw, classes="body")
        self.display = False

    def compose(self) -> ComposeResult:
        """Heading and body."""
        yield Static(plain(self._title), classes="heading")
        yield self._body

    def show(self, view: V) -> None:
        """Draw the view; an empty one hides the section."""
        self.display = bool(view)
        if view:
            self._body.show(view)
