"""Experiments beside each other: all metrics of one workload, with bars for one of them."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from agent.core.state import State
from agent.core.views.compare import Against, Comparison, Line, Order, compare, ordered
from agent.core.views.concurrency import MOST_SERIES, Plot, plot_of
from agent.playbook.model import Workload
from tui.content import MUTED, cut, plain, row
from tui.flow import fit
from tui.screens.base import StateScreen
from tui.screens.details import DetailsScreen
from tui.widgets.comparison import Layout, draw_head, draw_legend, draw_line, draw_note, layout_of
from tui.widgets.keys import Keys
from tui.widgets.pick_list import Pick, PickList
from tui.widgets.sections import Drawn

LOW = 32
"""Lines of a terminal below which table and plot do not stand below each other."""

_NEXT_ORDER: dict[Order, Order] = {"best": "worst", "worst": "playbook", "playbook": "best"}
_NEXT_AGAINST: dict[Against, Against] = {"values": "baseline", "baseline": "parent", "parent": "values"}
_AGAINST_WORDS = {"values": "", "baseline": "against the baseline", "parent": "against its parent"}
_ORDER_WORDS = {"best": "best {} first", "worst": "worst {} first", "playbook": "in the playbook's order"}


class CompareScreen(StateScreen):
    """Lines keep their places until a person sorts them: what is measured meanwhile comes below."""

    CSS_PATH = "compare.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]  # noqa: RUF012  (Textual's own declaration)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric", "metric", id="compare.metric"),
        Binding("o", "order", "order", id="compare.order"),
        Binding("s", "sort", "sort", id="compare.sort"),
        Binding("b", "against", "against", id="compare.against"),
        Binding("w", "workload", "workload", id="compare.workload"),
        Binding("p", "plot", "plot", id="compare.plot"),
        Binding("escape,q", "app.pop_screen", "back", id="compare.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        self._metric = ""
        self._order: Order = "best"
        self._against: Against = "values"
        self._wants_plot: bool | None = None
        self._places: tuple[str, ...] = ()
        self._view: Comparison | None = None
        self._seen: State | None = None
        self._plot: Plot | None = None
        self._title: Drawn[tuple[str, str]] = Drawn(_draw_title, classes="title")
        self._head: Drawn[Layout] = Drawn(draw_head, classes="head")
        self._list: PickList[tuple[Line, Layout]] = PickList(draw_line, id="lines")
        self._legend: Drawn[tuple[bool, int]] = Drawn(draw_legend, classes="legend")
        self._note: Drawn[tuple[Comparison, Line, int]] = Drawn(draw_note, classes="note")

    def compose(self) -> ComposeResult:
        """Title, table, plot, the chosen line in words, keys."""
        yield self._title
        yield self._head
        yield self._list
        yield Vertical(id="concurrency")
        yield self._legend
        yield self._note
        yield Static(plain("nothing was measured of this workload yet"), id="empty")
        yield Keys()

    def on_mount(self) -> None:
        """Arrows choose at once."""
        self._list.focus()

    def show(self, state: State, now: float) -> None:
        """Draw what changed."""
        view = self._view = self._compared(state)
        keys = [column.key for column in view.columns]
        if self._metric not in keys:
            self._metric = keys[0] if keys else ""
        sorted_now = ordered(view, self._metric, self._order)
        self._places = (*(name for name in self._places if name in state.experiments), *sorted_now)
        self._places = tuple(dict.fromkeys(self._places))
        found = {line.experiment: line for line in view.lines}
        lines = [found[name] for name in self._places if name in found]
        self.set_class(not lines, "-empty")
        stale = tuple(line.experiment for line in lines) != sorted_now
        self._title.show((self._told(state, view), self._sorted_words(view, stale)))
        if lines:
            layout = layout_of(view, self._metric)
            self._head.show(layout)
            self._legend.show((layout.relative, view.without))
            self._list.show([Pick(line.experiment, (line, layout)) for line in lines])
        self._show_chosen(state)
        self.refresh_bindings()
        if lines and self.focused is None:  # what is hidden loses the focus
            self.call_after_refresh(self._list.focus)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys without anything to go to are not there."""
        if action == "workload":
            return len(self.source.state.playbook.workloads) > 1
        return action != "plot" or self._plot is not None

    def on_pick_list_chosen(self, message: PickList.Chosen) -> None:
        """Another line is told in words, and is in the plot."""
        self._show_chosen(self.source.state)

    def on_pick_list_opened(self, message: PickList.Opened) -> None:
        """All about that experiment."""
        self.app.push_screen(DetailsScreen(message.key))

    def action_metric(self) -> None:
        """Bars for the next metric, sorted by it."""
        if self._view is not None and self._view.columns:
            keys = [column.key for column in self._view.columns]
            self._metric = keys[(keys.index(self._metric) + 1) % len(keys)]
            self.action_sort()

    def action_order(self) -> None:
        """Sort in the next order: best first, worst first, as in the playbook."""
        self._order = _NEXT_ORDER[self._order]
        self.action_sort()

    def action_sort(self) -> None:
        """Sort what is there now."""
        self._places = ()
        self._look()

    def action_against(self) -> None:
        """Values, changes against the baseline, or against the parent. The lines keep their places."""
        self._against = _NEXT_AGAINST[self._against]
        self._look()

    def action_workload(self) -> None:
        """The next workload of the playbook."""
        names = [workload.name for workload in self.source.state.playbook.workloads]
        self._wanted = names[(names.index(self._workload(self.source.state).name) + 1) % len(names)]
        self.action_sort()

    def action_plot(self) -> None:
        """Show or hide the plot."""
        self._wants_plot = not self._plotted
        self._look()

    def _compared(self, state: State) -> Comparison:
        """The comparison of a state: that of the last look where nothing has changed since."""
        workload = self._workload(state)
        view = self._view
        if view is None or self._seen is not state or (view.workload, view.against) != (workload.name, self._against):
            view = compare(state, workload, self._against)
        self._seen = state
        return view

    @property
    def _plotted(self) -> bool:
        return self._wants_plot if self._wants_plot is not None else self.size.height >= LOW

    def _look(self) -> None:
        self.show(self.source.state, self.source.now())

    def _workload(self, state: State) -> Workload:
        """The one that is shown; at first that of the objective."""
        wanted = self._wanted or state.playbook.objective.workload
        return next((w for w in state.playbook.workloads if w.name == wanted), state.playbook.workloads[0])

    def _told(self, state: State, view: Comparison) -> str:
        names = [workload.name for workload in state.playbook.workloads]
        place = f" {names.index(view.workload) + 1} of {len(names)}" if len(names) > 1 else ""
        objective = " · the objective's" if view.objective else ""
        return f"{view.workload}{place} · {view.about}{objective}"

    def _sorted_words(self, view: Comparison, stale: bool) -> str:
        title = next((column.title for column in view.columns if column.key == self._metric), "")
        words = [_AGAINST_WORDS[self._against], _ORDER_WORDS[self._order].format(title) if title else ""]
        return " · ".join(filter(None, (*words, "s sorts anew" if stale else "")))

    def _show_chosen(self, state: State) -> None:
        view, chosen = self._view, self._list.chosen
        line = next((line for line in view.lines if line.experiment == chosen), None) if view else None
        if view is None or line is None:
            self._plot = None
        else:
            place = next(n for n, column in enumerate(view.columns) if column.key == self._metric)
            self._note.show((view, line, place))
            self._plot = plot_of(state, self._workload(state), _with(self._places, line.experiment))
        self.set_class(self._plot is not None and self._plotted, "-plotted")
        if self._plot is not None and self._plotted:
            self._draw_plot(self._plot)

    def _draw_plot(self, plot: Plot) -> None:
        # numpy, which only the plot needs, takes longer to import than a key may to answer.
        from tui.widgets.throughput_plot import ThroughputPlot

        shown = self.query(ThroughputPlot)
        if shown:
            shown.first().show(plot)
        else:
            self.query_one("#concurrency").mount(ThroughputPlot(plot))


def _with(names: tuple[str, ...], chosen: str) -> tuple[str, ...]:
    """The names, the chosen one among those that a plot has room for."""
    if names.index(chosen) < MOST_SERIES:
        return names
    others = tuple(name for name in names if name != chosen)
    return (*others[: MOST_SERIES - 1], chosen, *others[MOST_SERIES - 1 :])


def _draw_title(shown: tuple[str, str], width: int) -> Content:
    told, order = shown
    right = plain(f"  {cut(order, width)}", MUTED)
    left = row(plain("Compare  ", "bold"), told)
    return fit(left, max(1, width - right.cell_length)) + right
