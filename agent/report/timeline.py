"""The timeline as SVG: the server lane coloured by phase, and the background lane, over the time of the session.

Colours are classes; `style.py` has them. Every bar says in its title what it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.core.model import Phase
from agent.core.views.basics import duration
from agent.report.lane import Doing, Span
from agent.report.markup import Safe, el, joined
from agent.report.model import Report, TaskFacts
from agent.report.plans import pivots
from agent.report.words import lasting, merged_lane

WIDTH, LEFT, RIGHT = 760, 84, 750
SERVER_Y, SERVER_HEIGHT = 24, 34
TASKS_Y, TASK_HEIGHT = 70, 11
LEAST_WIDTH = 1.2
"""Of a bar: what was short is seen all the same."""

CHARACTER = 6.2
"""Width of a character of a label, about."""

_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400, 604800)
MOST_TICKS = 8

PHASE_CLASSES: dict[Phase, str] = {
    Phase.LAUNCH: "starting",
    Phase.IMPORT: "starting",
    Phase.ARGS: "starting",
    Phase.CONFIG: "starting",
    Phase.DIST_INIT: "dist-init",
    Phase.LOAD_WEIGHTS: "load-weights",
    Phase.KV_CACHE: "memory",
    Phase.PROFILE: "memory",
    Phase.COMPILE: "graphs",
    Phase.GRAPH_CAPTURE: "graphs",
    Phase.HTTP_START: "warmup",
    Phase.WARMUP: "warmup",
    Phase.READY: "warmup",
    Phase.SERVING: "warmup",
}
LEGEND = (
    ("starting", "launch, import, args, config"),
    ("dist-init", "dist-init"),
    ("load-weights", "load-weights"),
    ("memory", "kv-cache, profile"),
    ("graphs", "compile, graph-capture"),
    ("warmup", "http-start, warmup, ready"),
    ("measuring", "measuring"),
    ("stopping", "stopping"),
    ("preparing", "preparing"),
    ("idle", "idle"),
    ("away", "away"),
)
TASK_CLASSES = {"preflight": "check", "flags": "check", "probe": "probe", "ask": "ask"}
TASK_LEGEND = (("check", "checks"), ("look", "grep, read"), ("probe", "probe"), ("ask", "ask"))


@dataclass(frozen=True, slots=True)
class _Scale:
    seconds: float

    def x(self, at: float) -> float:
        return LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, at / self.seconds))


def svg_of(report: Report) -> Safe:
    """The timeline, or nothing where no time has passed."""
    elapsed = report.ledger.elapsed_s
    if elapsed <= 0:
        return Safe("")
    scale = _Scale(elapsed)
    rows = _rows(report.tasks)
    below = TASKS_Y + max(1, len(rows)) * TASK_HEIGHT
    bars = [_server_bar(report, scale, span) for span in report.lane]
    tasks = [_task_bar(scale, task, row) for row, members in enumerate(rows) for task in members]
    return el(
        "svg",
        el("title", "Timeline of the session"),
        el("desc", _described(report)),
        *_axis(scale, below),
        el("text", "server", x=LEFT - 8, y=SERVER_Y + 22, class_="lane"),
        el("text", "background", x=LEFT - 8, y=TASKS_Y + 9, class_="lane"),
        *bars,
        *_labels(report, scale),
        *_pivots(report, scale, below),
        *tasks,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {below + 26}",
        role="img",
    )


def class_of(span: Span) -> str:
    """The class that colours a span of the server lane."""
    return PHASE_CLASSES[span.act.phase] if span.act.phase else str(span.act.doing)


def _described(report: Report) -> str:
    ledger = report.ledger
    times = f"{lasting(ledger.loading_s)} loading, {lasting(ledger.measuring_s)} measuring"
    return f"{lasting(ledger.elapsed_s)}: {times}, {len(report.tasks)} background tasks. The table below has the times."


def _server_bar(report: Report, scale: _Scale, span: Span) -> Safe:
    act = span.act
    what = f"{act.doing} {act.phase or ''}".strip() + (f" · {act.experiment}" if act.experiment else "")
    return _bar(scale, span.start_s, span.end_s, SERVER_Y, SERVER_HEIGHT, class_of(span), what)


def _task_bar(scale: _Scale, task: TaskFacts, row: int) -> Safe:
    y = TASKS_Y + row * TASK_HEIGHT
    what = f"{task.kind} {task.title} · {task.experiment}"
    kind = TASK_CLASSES.get(task.kind, "look")
    return _bar(scale, task.start_s, task.end_s, y, TASK_HEIGHT - 2, kind, what)


def _bar(scale: _Scale, start: float, end: float, y: float, height: float, kind: str, what: str) -> Safe:
    left = scale.x(start)
    width = max(LEAST_WIDTH, scale.x(end) - left)
    title = el("title", f"{what}: {lasting(end - start)} from {duration(start)}")
    return el("rect", title, x=left, y=y, width=width, height=height, class_=f"bar {kind}")


def _labels(report: Report, scale: _Scale) -> Iterator[Safe]:
    """The number of each load above it, as far as there is room; the list below says what it was."""
    numbers = {launch.id: launch.number for trial in report.trials for launch in trial.launches}
    free = 0.0
    for span in merged_lane(report):
        if span.act.doing is not Doing.LOADING or (left := scale.x(span.start_s)) < free:
            continue
        text = str(numbers[span.act.launch])
        free = left + (len(text) + 1) * CHARACTER
        yield el("text", text, x=left, y=SERVER_Y - 7, class_="number")


def _pivots(report: Report, scale: _Scale, below: float) -> Iterator[Safe]:
    """A line where a strategy was given up."""
    for at_s, strategy, what in pivots(report):
        x = scale.x(at_s)
        title = el("title", f"{strategy} {what}, at {duration(at_s)}")
        yield el("line", title, x1=x, x2=x, y1=SERVER_Y - 4, y2=below + 4, class_="pivot")


def _axis(scale: _Scale, below: float) -> Iterator[Safe]:
    step = next((step for step in _STEPS_S if scale.seconds / step <= MOST_TICKS), scale.seconds / MOST_TICKS)
    for tick in range(int(scale.seconds / step) + 1):
        x = scale.x(tick * step)
        line = el("line", x1=x, x2=x, y1=SERVER_Y - 4, y2=below + 4, class_="tick")
        yield joined(line, el("text", duration(tick * step), x=x, y=below + 18, class_="time"))


def _rows(tasks: tuple[TaskFacts, ...]) -> list[list[TaskFacts]]:
    """Tasks that ran at the same time in different rows, each in the first that is free."""
    rows: list[list[TaskFacts]] = []
    for task in sorted(tasks, key=lambda one: one.start_s):
        row = next((row for row in rows if row[-1].end_s <= task.start_s), None)
        if row is None:
            rows.append([task])
        else:
            row.append(task)
    return rows
