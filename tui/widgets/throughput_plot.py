"""Output throughput over concurrency as a plot. A series is told by the sign of its points, not by its colour alone."""

from collections.abc import Sequence
from math import log2

from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Vertical
from textual.content import Content
from textual_plot import AxisFormatter, HiResMode, PlotWidget

from agent.core.views.concurrency import Plot
from agent.text import one_line
from tui.content import MUTED, cut, plain, row
from tui.widgets.sections import Drawn

SIGNS = "●■▲◆○□△◇"
_COLOURS = ("primary", "warning", "success", "error", "accent", "secondary")
_MARGIN = 0.05
"""Of the axis, at both ends of it."""
_LABEL = 0.06
"""Labels of the axis that would stand closer than this share of it are left out."""
_MOST_NAME = 28


class ThroughputPlot(Vertical):
    """The plot and, below it, which sign is which experiment."""

    DEFAULT_CSS = """
    ThroughputPlot PlotWidget { height: 1fr; }
    ThroughputPlot .plot--axis, ThroughputPlot .plot--label { color: $foreground-muted; }
    ThroughputPlot .plot--tick { color: $foreground; }
    ThroughputPlot .series { height: auto; max-height: 3; padding: 0 1; }
    """

    def __init__(self, plot: Plot) -> None:
        super().__init__()
        self._view = plot
        self._plot = PlotWidget(allow_pan_and_zoom=False)
        self._plot.can_focus = False
        self._names: Drawn[Plot] = Drawn(_draw_names, classes="series")

    def compose(self) -> ComposeResult:
        """Axes, lines, points; names."""
        yield self._plot
        yield self._names

    def on_mount(self) -> None:
        """Draw what it was made with."""
        self._plot.margin_top = 1
        self._plot.margin_left = 9
        self._draw(self._view)

    def show(self, view: Plot) -> None:
        """Draw this plot unless it is on the screen already."""
        if view != self._view:
            self._view = view
            self._draw(view)

    def _draw(self, view: Plot) -> None:
        plot, places = self._plot, [log2(concurrency) for concurrency in view.concurrencies]
        margin = _MARGIN * (places[-1] - places[0])
        top = max(point.value + (point.half_width or 0.0) for one in view.series for point in one.points)
        plot.clear()
        plot.set_xlimits(places[0] - margin, places[-1] + margin)
        plot.set_ylimits(0.0, top * (1 + _MARGIN))
        plot.set_xticks(places)
        plot.set_x_formatter(_Concurrencies(view.concurrencies))
        plot.set_ylabel("tok/s")
        plot.set_xlabel("concurrency")
        variables = self.app.theme_variables
        colours = [Color.parse(variables[name]).rich_color.name for name in _COLOURS]
        styles = [colours[n % len(colours)] for n in range(len(view.series))]
        drawn = list(zip(view.series, styles, SIGNS, strict=False))
        for one, style, _ in drawn:
            x, y = [log2(point.concurrency) for point in one.points], [point.value for point in one.points]
            plot.plot(x, y, line_style=style, hires_mode=HiResMode.BRAILLE)
        # Points after all lines: they are what tells the series apart.
        for one, style, sign in reversed(drawn):
            x, y = [log2(point.concurrency) for point in one.points], [point.value for point in one.points]
            halves = [point.half_width or 0.0 for point in one.points]
            plot.errorbar(x, y, yerr=halves, marker=sign, marker_style=style)
        self._names.show(view)


class _Concurrencies(AxisFormatter):
    """Whole numbers on a logarithmic axis, as far as they have room."""

    def __init__(self, known: Sequence[int]) -> None:
        self._known = known

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        """At each concurrency that was measured."""
        return [log2(concurrency) for concurrency in self._known]

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """The number at each tick; empty where the one before is too close."""
        labels, last = [], -1.0
        least = _LABEL * (ticks[-1] - ticks[0])
        for tick in ticks:
            shown = tick - last >= least
            labels.append(str(round(2**tick)) if shown else "")
            last = tick if shown else last
        return labels


def _draw_names(view: Plot, width: int) -> Content:
    parts: list[str | Content] = []
    for one, sign in zip(view.series, SIGNS, strict=False):
        parts += [plain(f"{sign} ", "bold"), f"{cut(one_line(one.experiment), _MOST_NAME)}  "]
    if view.left_out:
        parts.append(plain(f"and {view.left_out} more that are not drawn", MUTED))
    return row(*parts)
