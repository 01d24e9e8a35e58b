"""A session as lines of text: live without a screen, and again from a journal."""

from collections.abc import Callable, Iterable
from itertools import groupby

from agent.core import events as ev
from agent.core.model import TaskKind
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.core.views.basics import best_command, board, duration
from agent.core.views.lines import line_of
from agent.core.views.slo import slo_lines
from agent.redact import redactor

Out = Callable[[str], None]

REASON_WIDTH = 110
"""Characters of a reason on the board; the line of the event has all of it."""


class Printer:
    """Prints one line a change. `out` gets each line without its end, and without the playbook's secrets."""

    def __init__(self, out: Out) -> None:
        self._to = out
        self._redact: Callable[[str], str] = str

    def __call__(self, before: State, event: ev.Event, after: State) -> None:
        """Print what an event changed; at the first event of a run of tunebot the head, at the last the board."""
        if isinstance(event, ev.SessionStarted | ev.SessionResumed):
            self._redact = redactor(after.playbook)
            self._head(after)
        if isinstance(event, ev.SessionEnded):
            for line in summary(after, event):
                self._out(line)
        elif (change := line_of(before, event, after)) is not None:
            self._out(change)

    def _out(self, line: str) -> None:
        self._to(self._redact(line))

    def _head(self, state: State) -> None:
        host = state.host
        gpus = f"{len(host.gpus)} x {host.gpus[0].name}" if host.gpus else "no GPUs"
        simulated = " · SIMULATED" if host.simulated else ""
        self._out(f"tunebot · {state.playbook.name} · {host.name} · {gpus}{simulated} · session {state.session}")


def replay(events: Iterable[ev.Event], out: Out) -> State:
    """Print a recorded session again; the final state. Nothing is decided or done anew."""
    printer = Printer(out)
    iterator = iter(events)
    start = next(iterator)
    if not isinstance(start, ev.SessionStarted):
        raise ValueError("the first event is not the start of a session")
    state = initial(start)
    printer(state, start, state)
    for event in iterator:
        before = state
        state, _ = reduce(before, event)
        printer(before, event, state)
    return state


def summary(state: State, end: ev.SessionEnded, columns: int | None = None) -> list[str]:
    """The board, the ledger, and the command that starts the best server. Rows fit into `columns`, if given."""
    lines = [""]
    for place, rows in groupby(board(state), key=lambda row: row.place):
        lines.append(str(place))
        for row in rows:
            mark = " ← incumbent" if row.incumbent else ""
            name = f"{row.glyph} {row.experiment:<26} {row.word:<13}"
            text = f"  {name}{row.value:>20} {row.change:>9}  {_short(row.reason, REASON_WIDTH)}{mark}".rstrip()
            lines.append(text if columns is None else _short(text, columns))
    lines += ["", ledger_line(state), *(f"best for {line}" for line in slo_lines(state))]
    if end.serving:
        lines.append(f"left running: {end.serving} at port {state.launches[end.serving].port}")
    if command := best_command(state):
        lines += ["best launch command:", f"  {command}"]
    lines.append(f"session {end.ending} after {duration(state.now - state.started_at)}")
    return lines


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def ledger_line(state: State) -> str:
    """Loads paid and saved, time loading, and the research that was done meanwhile."""
    loads = [launch for launch in state.launches.values() if launch.pid is not None]
    loading = sum(launch.load_s or (launch.ended_at or state.now) - launch.requested_at for launch in loads)
    saved = [e for e in state.experiments.values() if e.verdict and e.verdict.word == "ruled-out"]
    kinds: tuple[TaskKind, ...] = ("grep", "read", "probe", "ask", "preflight", "flags")
    done = {kind: [t for t in state.tasks.values() if t.task.kind == kind and t.status] for kind in kinds}
    research = ", ".join(f"{len(tasks)} {kind}" for kind, tasks in done.items() if tasks) or "none"
    worth = f" (about {duration(len(saved) * loading / len(loads))})" if saved and loads else ""
    paid = f"{len(loads)} loads paid ({duration(loading)}), {len(saved)} saved by preflights{worth}"
    return f"{paid}; research: {research}"
