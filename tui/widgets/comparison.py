"""How the comparison is drawn: a line an experiment, a heading above them, and one of them in words."""

from dataclasses import dataclass

from textual.content import Content

from agent.core.views.compare import Cell, Column, Comparison, Line
from agent.text import one_line
from tui.content import MUTED, fit, fit_right, plain, row
from tui.flow import fit as fit_content
from tui.flow import lines
from tui.widgets.whisker import Scale, scale_of, whisker
from tui.words import style_of

_LEAST_NAME = 12
_LEAST_BAR, _MOST_BAR = 10, 48
_GAP = "  "
_CHOSEN = "▸ "
_SIGN_STYLES = {"▲": "$text-success", "▼": "$text-error", "≈": MUTED, "": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What all lines have in common. `chosen` is the place of the metric that has the bars.

    `narrow` and `wide` are the cells that each column needs without its intervals and with them.
    """

    columns: tuple[Column, ...]
    chosen: int
    relative: bool
    scale: Scale
    name: int
    word: int
    narrow: tuple[int, ...]
    wide: tuple[int, ...]

    def fit(self, width: int) -> "Fit":
        """What a line of `width` cells has room for."""
        bar, name = max(_LEAST_BAR, width // 5), min(self.name, max(_LEAST_NAME, width // 4))
        room = width - name - self.word - bar - self.wide[self.chosen] - 3 * len(_GAP)
        others = [n for n in range(len(self.columns)) if n != self.chosen]
        spread = sum(self.wide[n] + len(_GAP) for n in others) <= room
        shown = []
        for n in others:
            size = len(_GAP) + (self.wide[n] if spread else self.narrow[n])
            if size > room:
                break
            room -= size
            shown.append(n)
        return Fit(name=name, bar=max(_LEAST_BAR, min(_MOST_BAR, bar + room)), others=tuple(shown), spread=spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The cells of names and bars, the places of the other columns that are shown, whether their intervals are."""

    name: int
    bar: int
    others: tuple[int, ...]
    spread: bool


def layout_of(comparison: Comparison, chosen: str) -> Layout:
    """How the lines of a comparison are laid out with bars for the metric `chosen`."""
    place = next(n for n, column in enumerate(comparison.columns) if column.key == chosen)
    relative = comparison.against != "values"
    names = max(len(line.experiment) for line in comparison.lines)
    words = max(len(_word(line)) for line in comparison.lines)
    sizes: dict[bool, list[int]] = {False: [], True: []}
    for n, column in enumerate(comparison.columns):
        head = len(_head(column, relative)) + (len(_CHOSEN) if n == place else 0)
        for spread, found in sizes.items():
            texts = (_text(line.cells[n], column, relative, spread=spread) for line in comparison.lines)
            found.append(max(head, *map(len, texts)))
    return Layout(
        columns=comparison.columns,
        chosen=place,
        relative=relative,
        scale=scale_of(line.cells[place] for line in comparison.lines),
        name=max(_LEAST_NAME, names),
        word=words,
        narrow=tuple(sizes[False]),
        wide=tuple(sizes[True]),
    )


def draw_head(layout: Layout, width: int) -> Content:
    """The names of the columns, the chosen one behind its bars, and what the ends of the bars stand for."""
    room, column = layout.fit(width), layout.columns[layout.chosen]
    widths = layout.wide if room.spread else layout.narrow
    cells: list[str | Content] = [
        plain(f"{'experiment':<{room.name}}{_GAP}{'':<{layout.word}}{_GAP}", MUTED),
        plain(_ends(layout, room.bar), MUTED),
        _GAP,
        plain(fit_right(_CHOSEN + _head(column, layout.relative), layout.wide[layout.chosen]), "bold"),
    ]
    for n in room.others:
        cells += [_GAP, plain(fit_right(_head(layout.columns[n], layout.relative), widths[n]), MUTED)]
    return row(*cells)


def draw_line(shown: tuple[Line, Layout], width: int) -> Content:
    """One experiment: name, verdict or what speaks against its numbers, bar, numbers."""
    line, layout = shown
    room, cell = layout.fit(width), line.cells[layout.chosen]
    name = plain(fit(line.experiment, room.name), "bold" if line.incumbent else "")
    word = plain(fit(_word(line), layout.word), _word_style(line))
    head = row(name, _GAP, word, _GAP)
    parts: list[str | Content] = [head, plain(" " * room.bar) if cell is None else _bar(line, cell, layout, room.bar)]
    for n in (layout.chosen, *room.others):
        here = n == layout.chosen
        size = (layout.wide if here or room.spread else layout.narrow)[n]
        text = _text(line.cells[n], layout.columns[n], layout.relative, spread=here or room.spread)
        if layout.relative and here and line.reference == line.experiment:
            text = "reference"
        found = line.cells[n]
        sign = found.sign if found else ""
        parts += [_GAP, plain(fit_right(text, size), _SIGN_STYLES[sign] or ("bold" if here else ""))]
    return row(*parts)


def draw_note(shown: tuple[Comparison, Line, int], width: int) -> Content:
    """The line under the cursor in words: three lines, whatever there is to say."""
    comparison, line, chosen = shown
    column, cell = comparison.columns[chosen], line.cells[chosen]
    star = "★ incumbent  " if line.incumbent else ""
    count = f"{_count(line.rounds, 'round')} on {_count(line.launches, 'launch')}"
    first = row(
        plain(f"{one_line(line.experiment)}  ", "bold"),
        plain(star, "$text-success"),
        plain(f"{line.glyph} {line.word}  ", style_of(line.word)),
        plain(count, MUTED),
    )
    marks: list[str | Content] = []
    for mark in line.marks:
        marks += [
            plain(f"{mark.glyph} {mark.word}", "$text-warning"),
            plain(f" {one_line(mark.text, 400)}  " if mark.text else "  "),
        ]
    told = [first, plain(_told(comparison, line, column, cell)), row(*marks)]
    return lines(*(part.truncate(width, ellipsis=True) for part in told))


def _told(comparison: Comparison, line: Line, column: Column, cell: Cell | None) -> str:
    """`output 89.5 tok/s, 95 % 88.9 to 90.1`, or `TTFT -12.0 % (-14.1 to -9.9 %) against base: better`."""
    relative = comparison.against != "values"
    if relative and line.reference == line.experiment:
        return "what the others are compared with"
    if cell is None:
        return f"nothing to compare with in {line.reference}" if relative else f"{column.title} is not known"
    value = _number(cell.value, column, relative)
    unit = "%" if relative else column.unit
    known = cell.low is not None and cell.high is not None
    span = " to ".join(_number(end, column, relative) for end in (cell.low, cell.high) if end is not None)
    if not relative:
        return f"{column.title} {value} {unit}" + (f", 95 % {span}" if known else ", of a single round")
    word = {"▲": ": better", "▼": ": worse", "≈": ": no difference beyond the rounds", "": ""}[cell.sign]
    return (
        f"{column.title} {value} {unit}" + (f" ({span} {unit})" if known else "") + f" against {line.reference}{word}"
    )


def _bar(line: Line, cell: Cell, layout: Layout, width: int) -> Content:
    is_reference = layout.relative and line.reference == line.experiment
    return whisker(cell, layout.scale, width, MUTED if is_reference else "$warning" if line.marks else "$primary")


def _word(line: Line) -> str:
    """What stands beside the name: what speaks against the numbers, else the verdict."""
    if line.marks:
        return f"{line.marks[0].glyph} {line.marks[0].word}"
    return "★ incumbent" if line.incumbent else f"{line.glyph} {line.word}"


def _word_style(line: Line) -> str:
    if line.marks:
        return "$text-primary" if line.marks[0].glyph == "●" else "$text-warning"
    return "$text-success" if line.incumbent else style_of(line.word)


def _head(column: Column, relative: bool) -> str:
    return f"{column.title} %  " if relative else f"{column.title} {column.unit}"  # a sign stands behind each value


def _text(cell: Cell | None, column: Column, relative: bool, *, spread: bool) -> str:
    """`89.5 ±0.6`, `+12.9 ±0.8 ▲`"""
    if cell is None:
        return "-  " if relative else "-"
    text = _number(cell.value, column, relative)
    if spread and cell.high is not None:
        text += f" ±{_number(cell.high - cell.value, column, relative).lstrip('+')}"
    return f"{text} {cell.sign or ' '}" if relative else text


def _number(value: float, column: Column, relative: bool) -> str:
    return f"{value * 100:+.1f}" if relative else f"{value:.{column.digits}f}"


def _ends(layout: Layout, width: int) -> str:
    """The values at the ends of the bars: `0        101`."""
    column, scale = layout.columns[layout.chosen], layout.scale
    low, high = (_number(end, column, layout.relative) for end in (scale.low, scale.high))
    low = "0" if scale.low == 0 else low
    return low + high.rjust(width - len(low))


def _count(number: int, word: str) -> str:
    return f"1 {word}" if number == 1 else f"{number} {word}{'es' if word.endswith('ch') else 's'}"


def draw_legend(shown: tuple[bool, int], width: int) -> Content:
    """What the signs mean, and how many experiments have no line."""
    relative, without = shown
    signs = "▲ better  ▼ worse  ≈ neither  " if relative else ""
    left = f"{without} not measured  " if without else ""
    told = f"● mean  ├┤ 95 % over rounds  {signs}{left}verdicts count launch noise too"
    return fit_content(plain(told, MUTED), width)
