"""Rows of a log, drawn where they are in view, and moved through: the part of the log pane that only looks."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.widgets.log_draw import LogStyles, draw_line
from tui.widgets.log_lines import LogLines

WHEEL_ROWS = 3
KEPT = 250
"""Drawn lines that are remembered: a few screens of them."""


class LogView(ScrollView, can_focus=True):
    """Sticks to the end until somebody scrolls up. A position is a row, and how much of it is scrolled off."""

    DEFAULT_CSS = """
    LogView {
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
        & > .log--prefix { color: $foreground-muted; }
        & > .log--error { color: $text-error; }
        & > .log--warning { color: $text-warning; }
        & > .log--match { color: $background; background: $warning; }
        & > .log--target { background: $boost; text-style: bold; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"log--{part}" for part in ("prefix", "error", "warning", "match", "target")
    }

    follow = var(True)
    """Whether the end stays in view."""
    wrap = var(False)
    """Whether long lines go on in the next row, instead of being cut."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.lines: LogLines | None = None
        self.target: int | None = None
        """The line (of the log) that stands out: what a jump went to."""
        self.bottom = 0
        """The row after the last one in view."""
        self.seen = 0
        """The row after the last one that was ever in view."""
        self._skip = 0
        self._moving = False
        self._frame: list[Strip] | None = None
        self._drawn: LRUCache[int, list[Strip]] = LRUCache(KEPT)
        self._drawn_for: tuple[object, ...] = ()
        self._needle = ""
        self._styles = LogStyles(*(Style.null() for _ in range(5)))

    @property
    def room(self) -> Size:
        """The cells that rows are drawn in."""
        return self.scrollable_content_region.size

    @property
    def top(self) -> int:
        """The first row in view."""
        return round(self.scroll_y)

    def empty_text(self) -> str:
        """What stands in the place of rows where there are none."""
        return ""

    def moved(self) -> None:
        """Called after the rows in view changed."""

    # Moving

    def move(self, rows: int) -> None:
        """Scroll down by rows of the screen; up where negative. Reaching the end follows it."""
        self._check_drawn()
        at, skip = self.top, self._skip + rows
        while skip < 0 and at > 0:
            at -= 1
            skip += self._height_of(at)
        while at < self._count() and skip >= (height := self._height_of(at)):
            at, skip = at + 1, skip - height
        self.go(at, max(0, skip))

    def go(self, at: int, skip: int = 0) -> None:
        """Put a row at the top, as far as there are rows below it."""
        end = self._end()
        self.follow = (at, skip) >= end
        self._scroll(*min((at, skip), end))

    def bring_into_view(self, at: int) -> None:
        """Stop following and put a row in the upper third."""
        self.go(at)
        self.move(-(self.room.height // 3))
        self.follow = False

    def action_scroll_up(self) -> None:
        """One row up."""
        self.move(-1)

    def action_scroll_down(self) -> None:
        """One row down."""
        self.move(1)

    def action_page_up(self) -> None:
        """One page up, with a row in common."""
        self.move(1 - self.room.height)

    def action_page_down(self) -> None:
        """One page down, with a row in common."""
        self.move(self.room.height - 1)

    def action_scroll_home(self) -> None:
        """To the first line."""
        self.go(0)

    def fit(self) -> None:
        """Take in that there are other rows than before."""
        end = self._end()
        size = Size(self.room.width, end[0] + self.room.height)
        if size != self.virtual_size:
            # Setting it would lay out the whole screen anew, ten times a second; only the scroll bar shows it.
            self.set_reactive(LogView.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.vertical_scrollbar.window_size = self.room.height
        self._scroll(*(end if self.follow else min((self.top, self._skip), end)))

    def _scroll(self, at: int, skip: int) -> None:
        self._moving = True
        self._skip = skip
        self.scroll_to(y=at, animate=False)
        self._moving = False
        self.redraw()

    def _count(self) -> int:
        return 0 if self.lines is None else len(self.lines)

    def _end(self) -> tuple[int, int]:
        """The lowest position: the last row of the last line is at the bottom."""
        at = self._count()
        if not self.wrap:
            return max(0, at - self.room.height), 0
        missing = self.room.height
        self._check_drawn()
        while at > 0 and missing > 0:
            at -= 1
            missing -= self._height_of(at)
        return at, max(0, -missing)

    def _height_of(self, at: int) -> int:
        return len(self._strips(at)) if self.wrap else 1

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The scroll bar moves whole lines."""
        super().watch_scroll_y(old_value, new_value)
        if not self._moving and round(old_value) != round(new_value):
            self._skip = 0
            self.follow = self.top >= self._end()[0]
            self.redraw()

    def watch_wrap(self) -> None:
        """Keep in view what a jump went to, else the first line."""
        self._skip = 0
        at = -1 if self.lines is None or self.target is None else self.lines.row_of(self.target)
        if not self.follow and self.top <= at < self.bottom:
            self.bring_into_view(at)
        else:
            self.fit()

    def on_resize(self) -> None:
        """Other rows fit in."""
        self._skip = 0
        self.fit()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves by rows, whatever a line's height."""
        event.prevent_default().stop()
        self.move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """As above."""
        event.prevent_default().stop()
        self.move(-WHEEL_ROWS)

    # Drawing

    def redraw(self) -> None:
        """Draw all rows in view again."""
        self._frame = self._rows_in_view()
        self.refresh()
        self.moved()

    def notify_style_update(self) -> None:
        """Another theme, other styles."""
        super().notify_style_update()
        self._frame = None

    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
        if self._frame is None:
            self._frame = self._rows_in_view()
        return self._frame[y] if y < len(self._frame) else Strip.blank(self.room.width, self.rich_style)

    def _rows_in_view(self) -> list[Strip]:
        count, at = self._count(), self.top
        if not count:
            self.bottom = self.seen = 0
            style = self.get_component_rich_style("log--prefix")
            return [Strip([Segment(self.empty_text(), style)]).adjust_cell_length(self.room.width, self.rich_style)]
        self._check_drawn()
        rows: list[Strip] = []
        skip = self._skip
        while at < count and len(rows) < skip + self.room.height:
            rows += self._strips(at)
            at += 1
        self.bottom, self.seen = at, max(self.seen, at)
        return rows[skip : skip + self.room.height]

    def _strips(self, at: int) -> list[Strip]:
        """The strips of a row's line, remembered while the line cannot change."""
        assert self.lines is not None
        line = self.lines.line_at(at)
        strips = self._drawn.get(line)
        if strips is None:
            strips = draw_line(self.lines.log.line(line), self.room.width, self.wrap, self._styles, self._needle)
            if line < self.lines.log.settled:
                self._drawn[line] = strips
        if line != self.target:
            return strips
        style = self.get_component_rich_style("log--target", partial=True)
        return [strip.apply_style(style) for strip in strips]

    def _check_drawn(self) -> None:
        """Forget the strips that were drawn for another width, search, theme or file."""
        lines = self.lines
        needle = "" if lines is None or lines.matches is None else lines.matches.needle
        drawn_for = (self.room.width, self.wrap, needle, lines, 0 if lines is None else lines.generation)
        if drawn_for != self._drawn_for:
            self._drawn_for = drawn_for
            self._drawn.clear()
            self._needle = needle
            self._styles = self._made_styles()

    def _made_styles(self) -> LogStyles:
        def of(part: str) -> Style:
            return self.get_component_rich_style(f"log--{part}")

        return LogStyles(
            text=self.rich_style, prefix=of("prefix"), error=of("error"), warning=of("warning"), match=of("match")
        )
