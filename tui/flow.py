"""Content laid out in a width: tables, hanging indents, headings. Every piece is plain text already."""

from collections.abc import Sequence

from textual.content import Content

from tui.content import plain, row

GAP = 2
"""Blank cells between columns."""

_SMALL = 10
_TINY = 4


def lines(*parts: Content) -> Content:
    """Pieces below each other."""
    return Content("\n").join(parts)


def hang(prefix: Content, text: Content, width: int) -> Content:
    """A text behind a prefix; where it wraps it goes on under its own beginning."""
    room = max(10, width - prefix.cell_length)
    wrapped = text.expand_tabs(4).wrap(room) or [Content("")]
    indent = Content(" " * prefix.cell_length)
    return lines(*((prefix if n == 0 else indent) + part.rstrip() for n, part in enumerate(wrapped)))


def fit(text: Content, width: int) -> Content:
    """One line of exactly `width` cells; an ellipsis stands for what is cut."""
    if text.cell_length > width:
        text = text.truncate(width, ellipsis=True)
    return text.pad_right(width - text.cell_length) if width > text.cell_length else text


def table(
    rows: Sequence[Sequence[Content]], width: int, right: Sequence[int] = (), last: int = 14, whole: int | None = None
) -> Content:
    """Aligned columns; those in `right` are aligned to the right. The last one takes the rest and wraps in itself.

    Columns share what is there: the widest give way first, the column `whole` only after the others, and at least
    `last` cells are left for the last one.
    """
    if not rows:
        return Content("")
    count = max(len(cells) for cells in rows)
    wanted = [
        min(width, max((cells[n].cell_length if n < len(cells) else 0) for cells in rows)) for n in range(count - 1)
    ]
    _squeeze(wanted, width - GAP * (count - 1) - last, whole)
    made = []
    for cells in rows:
        prefix = Content("")
        for n, cell_width in enumerate(wanted):
            cell = cells[n] if n < len(cells) else Content("")
            if n in right and cell.cell_length < cell_width:
                cell = cell.pad_left(cell_width - cell.cell_length)
            prefix += fit(cell, cell_width) + Content(" " * GAP)
        rest = cells[count - 1] if len(cells) == count else Content("")
        made.append(hang(prefix, rest, width) if rest.plain else prefix.rstrip())
    return lines(*made)


def _squeeze(wanted: list[int], room: int, whole: int | None) -> None:
    while wanted and sum(wanted) > max(room, _TINY * len(wanted)):
        others = [n for n in range(len(wanted)) if n != whole and wanted[n] > _SMALL]
        wanted[max(others or range(len(wanted)), key=wanted.__getitem__)] -= 1


def facts(pairs: Sequence[tuple[str, Content]], width: int) -> Content:
    """Names in a quiet column, and what they are beside them."""
    names = max((len(name) for name, _ in pairs), default=0)
    return lines(*(hang(plain(f"{name:<{names}}  ", "$foreground-muted"), text, width) for name, text in pairs))


def bar(done: float, width: int, style: str) -> Content:
    """A bar of `width` cells, filled by a fraction."""
    filled = max(0, min(width, round(done * width)))
    return row(plain("█" * filled, style), plain("░" * (width - filled), "$foreground-disabled"))
