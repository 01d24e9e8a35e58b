"""A list to choose from: rows are drawn from views where they are in view; the choice survives every update."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from tui.content import plain
from tui.flow import fit

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Pick(Generic[V]):
    """A row: `key` is None for headings, which cannot be chosen."""

    key: str | None
    view: V


class PickList(ScrollView, Generic[V], can_focus=True):
    """One line a row. The chosen row is marked by a glyph and a background."""

    DEFAULT_CSS = """
    PickList {
        width: 1fr; height: 1fr; overflow-x: hidden;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; scrollbar-gutter: stable;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move_page(-1)", "Page up", show=False),
        Binding("pagedown", "move_page(1)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
        Binding("enter", "open", "open"),
    ]

    class Chosen(Message):
        """Another row was chosen by a person."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Opened(Message):
        """Enter, or a click on the row that was chosen already."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, draw: Callable[[V, int], Content], id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw_row = draw
        self._rows: tuple[Pick[V], ...] = ()
        self.chosen: str | None = None

    def show(self, rows: Sequence[Pick[V]]) -> None:
        """Show these rows. Where the chosen one is gone, the one that took its place is chosen."""
        if self._rows == (rows := tuple(rows)):
            return
        before = self._keys()
        self._rows = rows
        keys = self._keys()
        self._lay_out()
        if self.chosen not in keys:
            place = before.index(self.chosen) if self.chosen in before else 0
            self.chosen = keys[min(place, len(keys) - 1)] if keys else None
            self._follow()

    def action_move(self, by: int) -> None:
        """Choose a row that is `by` rows away, as far as there are some."""
        keys = self._keys()
        if not keys:
            return
        at = keys.index(self.chosen) if self.chosen in keys else 0
        self._choose(keys[max(0, min(len(keys) - 1, at + by))])

    def action_move_page(self, pages: int) -> None:
        """Choose a row that is a page away."""
        self.action_move(pages * max(1, self.size.height - 1))

    def action_open(self) -> None:
        """The chosen row is wanted."""
        if self.chosen is not None:
            self.post_message(self.Opened(self.chosen))

    def on_click(self, event: Click) -> None:
        """A click chooses; on what was chosen already it opens."""
        line = event.y + self.scroll_offset.y - self.gutter.top
        key = self._rows[line].key if 0 <= line < len(self._rows) else None
        if key is not None and key == self.chosen:
            self.post_message(self.Opened(key))
        elif key is not None:
            self._choose(key)

    def on_resize(self) -> None:
        """Rows fill the width."""
        self._lay_out()

    def on_focus(self) -> None:
        """The choice looks different where keys reach it."""
        self.refresh()

    def on_blur(self) -> None:
        """The choice looks different where keys do not reach it."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        number, width = y + self.scroll_offset.y, self._width
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        strips = Visual.to_strips(self, self._line(self._rows[number], width), width, 1, self.visual_style)
        return strips[0] if strips else Strip.blank(width, self.rich_style)

    @property
    def _width(self) -> int:
        """The cells of a row; the scroll bar has room of its own, shown or not."""
        return self.scrollable_content_region.width

    def _lay_out(self) -> None:
        self.virtual_size = Size(self._width, len(self._rows))
        self.refresh()

    def _keys(self) -> list[str]:
        return [row.key for row in self._rows if row.key is not None]

    def _choose(self, key: str) -> None:
        if key != self.chosen:
            self.chosen = key
            self.refresh()
            self.post_message(self.Chosen(key))
        self._follow()

    def _follow(self) -> None:
        line = next((n for n, row in enumerate(self._rows) if row.key == self.chosen), 0)
        # The heading above the first row comes along.
        top = line - 1 if line > 0 and self._rows[line - 1].key is None else line
        height = self.size.height
        if height and (top < self.scroll_offset.y or line >= self.scroll_offset.y + height):
            self.scroll_to(y=top if top < self.scroll_offset.y else line - height + 1, animate=False, force=True)

    def _line(self, row: Pick[V], width: int) -> Content:
        if row.key is None:
            return fit(plain(" ") + self._draw_row(row.view, width - 1), width)
        chosen = row.key == self.chosen
        line = plain("▌" if chosen else " ", "$primary") + fit(self._draw_row(row.view, width - 1), width - 1)
        if not chosen:
            return line
        return line.stylize("on $primary-muted" if self.has_focus else "on $boost")
