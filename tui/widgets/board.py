"""The board: every experiment in its place, one of them under the cursor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from agent.core.views.board import BoardRow, Section
from tui.content import MUTED, cut, fit, fit_right, plain, row, toned

_LEAST_ID = 14
_LEAST_TEXT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Cells of each column; 0 means that it is not shown. Between two columns there is one empty cell."""

    id: int
    word: int
    value: int
    spread: int
    change: int
    text: int


class Board(ScrollView, can_focus=True, inherit_bindings=False):
    """A list that is drawn line by line. The cursor stays with its experiment, wherever that moves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False, id="board.up"),
        Binding("down,j", "move(1)", "down", show=False, id="board.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="board.page-up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="board.page-down"),
    ]

    class Opened(Message):
        """An experiment was clicked that had the cursor already."""

        def __init__(self, experiment: str) -> None:
            super().__init__()
            self.experiment = experiment

    def __init__(self) -> None:
        super().__init__()
        self.border_title = "Board"
        self._strategy = ""
        self.cursor: str | None = None
        self._known = ""
        self._sections: tuple[Section, ...] = ()
        self._lines: list[Section | BoardRow] = []
        self._columns = Columns(id=0, word=0, value=0, spread=0, change=0, text=0)

    def show(self, sections: tuple[Section, ...]) -> None:
        """Draw these sections unless they are on the screen already."""
        if sections == self._sections:
            return
        seen = self._is_seen(self._line_of(self.cursor))
        place = self._line_of(self.cursor)
        self._sections = sections
        lines: list[Section | BoardRow] = []
        for section in sections:
            lines += [section, *section.rows]
        self._lines = lines
        if self._line_of(self.cursor) is None:
            self.cursor = self._near(0 if place is None else place)
        self._lay_out()
        if seen:
            self._scroll_to_cursor()

    @property
    def todo(self) -> int | None:
        """The number of the words under the cursor; None where an experiment is there, or nothing."""
        line = self._line_of(self.cursor)
        under = self._lines[line] if line is not None else None
        return under.todo if isinstance(under, BoardRow) else None

    def name_strategy(self, strategy: str) -> None:
        """Say in the frame which strategy is tried, and which were given up."""
        if strategy != self._strategy:
            self._strategy = strategy
            self._entitle()

    def _entitle(self) -> None:
        title = " · ".join(filter(None, ("Board", self._strategy)))
        self.border_title = plain(cut(title, max(len("Board"), self.size.width - 2)))

    def name_known(self, text: str) -> None:
        """What is known of earlier sessions on this host, at the foot of the board."""
        if text != self._known:
            self._known = text
            self.border_subtitle = plain(text)

    def on_resize(self) -> None:
        """Measure the columns and the frame anew."""
        self._entitle()
        self._lay_out()
        self._scroll_to_cursor()

    def on_focus(self) -> None:
        """The cursor looks different where keys go to it."""
        self.refresh()

    def on_blur(self) -> None:
        """See on_focus."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; a click on it opens the experiment."""
        line = event.y + self.scroll_offset.y - self.gutter.top
        clicked = self._lines[line] if 0 <= line < len(self._lines) else None
        if isinstance(clicked, BoardRow):
            if clicked.experiment == self.cursor:
                self.post_message(self.Opened(clicked.experiment))
            self._select(clicked.experiment)

    def action_move(self, steps: int) -> None:
        """Move the cursor by that many experiments."""
        rows = [line.experiment for line in self._lines if isinstance(line, BoardRow)]
        if rows:
            here = rows.index(self.cursor) if self.cursor in rows else 0
            self._select(rows[max(0, min(len(rows) - 1, here + steps))])

    def action_page(self, pages: int) -> None:
        """Move the cursor by what fits on the screen."""
        self.action_move(pages * max(1, self.size.height - 1))

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        number = y + self.scroll_offset.y
        width = self._width
        line = self._lines[number] if number < len(self._lines) else None
        if isinstance(line, Section):
            content = self._head(line)
        elif line is not None:
            content = self._row(line)
        else:
            content = Content()
        strips = Visual.to_strips(self, content.truncate(width, pad=True), width, 1, self.visual_style)
        return strips[0] if strips else Strip.blank(width)

    @property
    def _width(self) -> int:
        """The cells of a line; the scroll bar has room of its own, shown or not."""
        return self.scrollable_content_region.width

    def _select(self, experiment: str) -> None:
        self.cursor = experiment
        self._scroll_to_cursor()
        self.refresh()

    def _near(self, place: int) -> str | None:
        """The experiment at or after a line, else the last one."""
        rows = [(n, line.experiment) for n, line in enumerate(self._lines) if isinstance(line, BoardRow)]
        return next((name for n, name in rows if n >= place), rows[-1][1] if rows else None)

    def _line_of(self, experiment: str | None) -> int | None:
        for number, line in enumerate(self._lines):
            if isinstance(line, BoardRow) and line.experiment == experiment:
                return number
        return None

    def _is_seen(self, line: int | None) -> bool:
        return line is not None and 0 <= line - self.scroll_offset.y < max(1, self.size.height)

    def _scroll_to_cursor(self) -> None:
        line = self._line_of(self.cursor)
        if line is not None:
            # The head of the section comes into view with its first row.
            top = line - 1 if line and isinstance(self._lines[line - 1], Section) else line
            self.scroll_to_region(Region(0, top, 1, line - top + 1), animate=False, force=True)

    def _lay_out(self) -> None:
        self._columns = columns([line for line in self._lines if isinstance(line, BoardRow)], self._width - 3)
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()

    def _head(self, section: Section) -> Content:
        sizes = self._columns
        title = f"{section.place} {len(section.rows)}"
        if section is not next((s for s in self._sections if any(line.value for line in s.rows)), None):
            return plain(f" {title}", "bold $primary")
        before = 1 + 2 + sizes.id + 1 + sizes.word
        unit = fit_right(section.unit, max(0, before + 1 + sizes.value - 1 - len(title)))
        return row(plain(f" {title}", "bold $primary"), plain(unit, MUTED))

    def _row(self, line: BoardRow) -> Content:
        sizes = self._columns
        chosen = line.experiment == self.cursor
        if line.todo is not None:
            return self._under(row("❯" if chosen else " ", toned(f"{line.glyph} {line.text}", line.tone)), chosen)
        name = _named(line, sizes.id)
        head = row("❯" if chosen else " ", toned(f"{line.glyph} ", line.tone), plain(name, "bold" if chosen else ""))
        return self._under(row(head, " ", *self._tail(line, sizes)), chosen)

    def _under(self, content: Content, chosen: bool) -> Content:
        content = content.truncate(self._width, ellipsis=True, pad=True)
        if not chosen:
            return content
        return content.stylize("on $block-cursor-blurred-background" if not self.has_focus else "on $primary-muted")

    def _tail(self, line: BoardRow, sizes: Columns) -> list[Content]:
        if not line.word:
            room = self._width - 4 - sizes.id
            return [toned(fit(line.text, max(0, room)), line.tone)]
        cells = [toned(fit(line.word, sizes.word), line.tone)]
        if line.value:
            spread = f" {fit(line.spread, sizes.spread)}" if sizes.spread else ""
            cells.append(plain(f" {fit_right(line.value, sizes.value)}{spread} "))
            cells.append(plain(fit_right(line.change, sizes.change), "bold"))
            if sizes.text:
                cells.append(plain("  " + fit(line.text, sizes.text - 1), MUTED))
        else:
            room = self._width - 5 - sizes.id - sizes.word
            cells.append(plain(" " + fit(line.text, max(0, room)), MUTED))
        return cells


_NOTED = " ✎"


def _named(line: BoardRow, width: int) -> str:
    """The name of a row in `width` cells; the mark of a note stays where the name is cut."""
    if not line.noted:
        return fit(line.experiment, width)
    return fit(cut(line.experiment, max(0, width - len(_NOTED))) + _NOTED, width)


def columns(rows: Sequence[BoardRow], width: int) -> Columns:
    """The columns of a board in `width` cells: names give way first, then intervals; reasons take what is left."""
    measured = [line for line in rows if line.value]
    names = (len(line.experiment) + len(_NOTED) * line.noted for line in rows if line.todo is None)
    longest = max(names, default=0)
    word = max((len(line.word) for line in rows), default=0)
    value = max((len(line.value) for line in measured), default=0)
    spread = max((len(line.spread) for line in measured), default=0)
    change = max((len(line.change) for line in measured), default=0)
    least = min(longest, _LEAST_ID)

    def left(spread: int) -> int:
        numbers = (value + 1 + spread + bool(spread) + change + 2) if measured else 0
        return width - word - 1 - numbers

    if left(spread) < least:
        spread = 0
    name = max(min(longest, left(spread), max(least, width * 2 // 5)), min(longest, 8))
    text = left(spread) - name
    return Columns(
        id=name, word=word, value=value, spread=spread, change=change, text=text if text >= _LEAST_TEXT else 0
    )
