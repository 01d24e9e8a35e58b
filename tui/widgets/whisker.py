"""A bar in one line of cells: how far a mean is from zero, and its interval. Readable without colour."""

from collections.abc import Iterable
from dataclasses import dataclass

from textual.content import Content

from agent.core.views.compare import Cell
from tui.content import plain

_REACH = 1.5
"""An interval counts for the scale up to so many times its mean; what goes beyond is cut off, and says so."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The values at the left and the right end of all bars; zero is among them."""

    low: float
    high: float

    def cell(self, value: float, width: int) -> int:
        """The cell of `width` in which a value lies; those outside have -1 or `width`."""
        if value < self.low:
            return -1
        if value > self.high:
            return width
        return round((value - self.low) / (self.high - self.low) * (width - 1)) if self.high > self.low else 0


def scale_of(cells: Iterable[Cell | None]) -> Scale:
    """The scale that shows all of these means, and their intervals as far as these are no wider than useful."""
    known = [cell for cell in cells if cell]
    most = max((abs(cell.value) for cell in known), default=0.0) * _REACH
    ends = [0.0, *(cell.value for cell in known)]
    ends += [max(-most, min(most, end)) for cell in known for end in (cell.low, cell.high) if end is not None]
    return Scale(min(ends), max(ends))


def whisker(cell: Cell, scale: Scale, width: int, style: str = "$primary") -> Content:
    """`━━━━━━├━●━┤`: a bar from zero to the mean, and the ends of the interval where they have cells of their own."""
    drawn = [" "] * width
    zero, mean = scale.cell(0.0, width), scale.cell(cell.value, width)
    for at in range(min(zero, mean), max(zero, mean)):
        drawn[at] = "━"
    if zero > 0:
        drawn[zero] = "│"
    if cell.low is not None and cell.high is not None:
        low, high = scale.cell(cell.low, width), scale.cell(cell.high, width)
        for at in range(max(0, low), min(width, high + 1)):
            drawn[at] = "━" if drawn[at] == "━" else "─"
        drawn[max(0, low)] = "├" if low >= 0 else "◂"
        drawn[min(width - 1, high)] = "┤" if high < width else "▸"
    drawn[mean] = "●"
    return plain("".join(drawn), style)
