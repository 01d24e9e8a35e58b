"""A session as lines, of text or of JSON: live without a screen, and again from a journal. See docs/headless.md."""

import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from agent.core import events as ev
from agent.core.model import TaskKind
from agent.core.needs import Need, needs
from agent.core.reduce import initial, reduce
from agent.core.saved import paid_loads, saved_loads
from agent.core.state import State
from agent.core.terms import set_aside
from agent.core.views.asked import asked_text
from agent.core.views.basics import best_command, board, duration
from agent.core.views.board import TICKED, UNTICKED
from agent.core.views.lines import line_of, line_text
from agent.core.views.slo import slo_lines
from agent.redact import Redactor, redact_tree, redactor
from agent.report.record_facts import SILENT, Record
from agent.report.records import asked, begun, ended, iso, record_of

Out = Callable[[str], None]

REASON_WIDTH = 110
"""Characters of a reason on the board; the line of the event has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How lines are printed: as text or `as_json`; a `quiet` one leaves out all but what a person comes back for."""

    as_json: bool = False
    quiet: bool = False

    def folder(self, path: Path, at: float) -> str:
        """The line after the last one: where the session was kept, as of `at` (seconds since the epoch)."""
        return _json({"kind": "journal", "at": iso(at), "folder": str(path)}) if self.as_json else f"journal: {path}"


_QUIET = (
    ev.VerdictReached,
    ev.ServerFailed,
    ev.RoundFailed,
    ev.ExperimentRuledOut,
    ev.ExperimentNotReached,
    ev.DeadEndMarked,
    ev.PivotReached,
    ev.TargetLost,
)
"""What a quiet form tells beside the first line, the end, and what needs a person."""


class Printer:
    """Prints one line a change. `out` gets each line without its end, and without the playbook's secrets."""

    def __init__(self, out: Out, form: Form | None = None, about: str | None = None) -> None:
        """`about` is the experiment whose needs alone are told; those of all, where None."""
        self._to = out
        self._about = about
        self._form = form or Form()
        self._redact = Redactor({})
        self._asked: frozenset[str] = frozenset()

    def __call__(self, before: State, event: ev.Event, after: State) -> None:
        """Print what an event changed; at the first event of a run of tunebot the head, at the last the board."""
        if isinstance(event, ev.SessionStarted | ev.SessionResumed):
            self._redact, self._asked = redactor(after.playbook), frozenset()
        tell = self._objects if self._form.as_json else self._texts
        for line in tell(before, event, after):
            self._to(line)

    def _texts(self, before: State, event: ev.Event, after: State) -> Iterator[str]:
        if isinstance(event, ev.SessionStarted | ev.SessionResumed):
            yield self._redact(head_line(after))
        if isinstance(event, ev.SessionEnded):
            yield from map(self._redact, summary(after, event))
        elif self._is_told(event) and (change := line_of(before, event, after)) is not None:
            yield self._redact(change)
        for need in self._newly_asked(event, after):
            yield self._redact(line_text(event.at, after, need.experiment, asked_text(need)))

    def _objects(self, before: State, event: ev.Event, after: State) -> Iterator[str]:
        for record in self._records(before, event, after):
            yield _json(redact_tree(self._redact, record))

    def _records(self, before: State, event: ev.Event, after: State) -> Iterator[Record]:
        if isinstance(event, ev.SessionStarted | ev.SessionResumed):
            yield begun(event, after)
        elif isinstance(event, ev.SessionEnded):
            yield ended(event, after)
        elif self._is_told(event) and (change := record_of(before, event, after)) is not None:
            yield change
        for need in self._newly_asked(event, after):
            yield asked(need, event.at, after)

    def _is_told(self, event: ev.Event) -> bool:
        return not self._form.quiet or isinstance(event, _QUIET)

    def _newly_asked(self, event: ev.Event, after: State) -> list[Need]:
        """What waits for a person since this event."""
        if type(event) in SILENT or isinstance(event, ev.PhaseProgressed):
            return []
        present = needs(after)
        new = [n for n in present if n.key not in self._asked and self._about in (None, n.experiment)]
        self._asked = frozenset(need.key for need in present)
        return new


def _json(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def head_line(state: State) -> str:
    """What is tuned, where, in which session."""
    host = state.host
    gpus = f"{len(host.gpus)} x {host.gpus[0].name}" if host.gpus else "no GPUs"
    simulated = " · SIMULATED" if host.simulated else ""
    return f"tunebot · {state.playbook.name} · {host.name} · {gpus}{simulated} · session {state.session}"


def replay(events: Iterable[ev.Event], out: Out) -> State:
    """Print a recorded session again; the final state. Nothing is decided or done anew."""
    return retell(events, Printer(out))


def retell(
    events: Iterable[ev.Event],
    listen: Callable[[State, ev.Event, State], None],
    about: Container[int] | None = None,
) -> State:
    """Tell a recorded session again, but for its start only the events at the positions `about`; the last state.

    Raises ValueError where the first event is not the start of a session.
    """
    iterator = iter(events)
    start = next(iterator)
    if not isinstance(start, ev.SessionStarted):
        raise ValueError("the first event is not the start of a session")
    state = initial(start)
    listen(state, start, state)
    for index, event in enumerate(iterator, 1):
        before = state
        state, _ = reduce(before, event)
        if about is None or index in about:
            listen(before, event, state)
    return state


def summary(state: State, end: ev.SessionEnded, columns: int | None = None) -> list[str]:
    """The board, the ledger, and the command that starts the best server. Rows fit into `columns`, if given."""
    lines = ["", *board_lines(state, columns)]
    lines += ["", ledger_line(state), *(f"best for {line}" for line in slo_lines(state))]
    if end.serving:
        port = state.launches[end.serving].port
        lines.append(
            f"left running: {end.serving} at port {port}" if port else f"asked for, not answered: {end.serving}"
        )
    if command := best_command(state):
        lines += ["best launch command:", f"  {command}"]
    lines.append(f"session {end.ending} after {duration(state.now - state.started_at)}")
    return lines


def board_lines(state: State, columns: int | None = None) -> list[str]:
    """Each place of the board with its rows, which fit into `columns`, if given."""
    lines = []
    for place, rows in groupby(board(state), key=lambda row: row.place):
        lines.append(str(place))
        for row in rows:
            mark = " ← incumbent" if row.incumbent else ""
            name = f"{row.glyph} {row.experiment:<26} {row.word:<13}"
            text = f"  {name}{row.value:>20} {row.change:>9}  {_short(row.reason, REASON_WIDTH)}{mark}".rstrip()
            lines.append(text if columns is None else _short(text, columns))
    if state.todos:
        lines += ["TO DO", *(f"  {TICKED if todo.done else UNTICKED} {todo.text}" for todo in state.todos)]
    return lines


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def ledger_line(state: State) -> str:
    """Loads paid and saved, time loading, and the research that was done meanwhile."""
    loads, smoke = _loads_s(state, smoke=False), _loads_s(state, smoke=True)
    loading = sum(loads)
    saved = saved_loads(state)
    kinds: tuple[TaskKind, ...] = ("grep", "read", "probe", "ask", "preflight", "flags")
    done = {kind: [t for t in state.tasks.values() if t.task.kind == kind and t.status] for kind in kinds}
    research = ", ".join(f"{len(tasks)} {kind}" for kind, tasks in done.items() if tasks) or "none"
    worth = f" (about {duration(len(saved) * loading / len(loads))})" if saved and loads else ""
    by_best_case = " and best cases" if any(map(set_aside, saved)) else ""
    tried = f", {len(smoke)} smoke loads ({duration(sum(smoke))})" if smoke else ""
    paid = f"{len(loads)} loads paid ({duration(loading)}){tried}"
    return f"{paid}, {len(saved)} saved by preflights{by_best_case}{worth}; research: {research}"


def _loads_s(state: State, *, smoke: bool) -> list[float]:
    """How long each server that was started loaded: the smoke loads, or all others."""
    return [one.load_s or (one.ended_at or state.now) - one.requested_at for one in paid_loads(state, smoke=smoke)]
