"""The board as the run screen shows it: sections of short rows, each with what matters in its place."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from agent.core.needs import Approval, needs
from agent.core.pivots import waits_for
from agent.core.state import ExperimentState, LaunchStage, Stage, State
from agent.core.verdict import interval95
from agent.core.views.basics import BY_HAND, SMOKE_LOAD, Place, Row, board, duration, measured
from agent.core.views.dead_ends import known_mark
from agent.core.views.expected import best_text
from agent.core.views.panels import Tone
from agent.playbook.metrics import unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One experiment. A measured one has a `value` (and `spread`, its 95 % half width); `text` is state or reason.

    `noted` tells that a person wrote a note on it. A row of words that a person wrote down to do has their number in
    `todo`; its `experiment` is only a name for the row, which no experiment can have.
    """

    experiment: str
    glyph: str
    tone: Tone
    word: str
    value: str
    spread: str
    change: str
    text: str
    noted: bool = False
    todo: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A place on the board with what stands there; `unit` is that of its values."""

    place: Place
    unit: str
    rows: tuple[BoardRow, ...]


UNTICKED, TICKED = "☐", "☑"

_TONES: dict[str, Tone] = {
    "keep": "good",
    "incumbent": "good",
    "worse": "bad",
    "failed": "bad",
    "ruled-out": "bad",
    BY_HAND: "bad",
    "invalid": "warn",
    "inconclusive": "warn",
    "near": "busy",
}


def board_view(state: State) -> tuple[Section, ...]:
    """The sections that have rows, in their order."""
    waiting = frozenset(need.experiment for need in needs(state) if isinstance(need, Approval))
    checked = frozenset(t.task.experiment for t in state.tasks.values() if t.status is None)
    unit = unit_of(state.playbook.objective.metric)
    placed = {
        place: [_marked(state, _row(state, row, waiting, checked)) for row in rows]
        for place, rows in groupby(board(state), key=lambda row: row.place)
    }
    if state.todos:
        placed.setdefault(Place.TODO, []).extend(_todo_rows(state))
    return tuple(Section(place=place, unit=unit, rows=tuple(placed[place])) for place in Place if place in placed)


def _marked(state: State, row: BoardRow) -> BoardRow:
    return replace(row, noted=True) if state.experiments[row.experiment].notes else row


def _todo_rows(state: State) -> Iterator[BoardRow]:
    """What a person wrote down, below the experiments."""
    for number, todo in enumerate(state.todos):
        yield BoardRow(
            experiment=f"todo:{number}",
            glyph=TICKED if todo.done else UNTICKED,
            tone="muted" if todo.done else "plain",
            word="",
            value="",
            spread="",
            change="",
            text=f"done: {todo.text}" if todo.done else todo.text,
            todo=number,
        )


def _row(state: State, row: Row, waiting: frozenset[str], checked: frozenset[str]) -> BoardRow:
    experiment = state.experiments[row.experiment]
    if row.place is Place.NOW:
        return _plain_row(row, "busy", now_words(state, experiment))
    if row.place is Place.PROPOSALS:
        return _plain_row(row, "warn", _with_best(state, experiment, "waits for you"))
    if row.place is Place.TODO:
        words = todo_words(state, experiment, waiting, checked)
        if experiment.verdict is None:
            words = _with_best(state, experiment, words)
            words += f" · {mark}" if (mark := known_mark(state, experiment)) else ""
        return _plain_row(row, "muted", words)
    values = measured(state, experiment)
    word = "incumbent" if row.incumbent else row.word
    return BoardRow(
        experiment=row.experiment,
        glyph="★" if row.incumbent else row.glyph,
        tone=_TONES.get(word, "plain"),
        word=word,
        value=f"{fmean(values):.1f}" if values else "",
        spread=f"±{interval95(values):.1f}" if values else "",
        change=row.change,
        text=_without_word(row.reason),
    )


def _with_best(state: State, experiment: ExperimentState, words: str) -> str:
    """`at best +34 % · in line`"""
    return " · ".join(filter(None, (best_text(state, experiment), words)))


def _plain_row(row: Row, tone: Tone, text: str) -> BoardRow:
    return BoardRow(
        experiment=row.experiment, glyph=row.glyph, tone=tone, word="", value="", spread="", change="", text=text
    )


def _without_word(reason: str) -> str:
    """A reason without the words that its verdict says already."""
    return reason.removeprefix("would fail: ").removeprefix("would have no effect: ")


def now_words(state: State, experiment: ExperimentState) -> str:
    """What happens to an experiment: `loading 71 %  2:40 left`, `smoke load 20 %  0:30 left`, `measuring 2/3`."""
    if experiment.stage is Stage.PREPARING:
        return f"preparing {experiment.prepared + 1}/{len(experiment.spec.prepare)}"
    launch = state.launches[experiment.launches[-1]]
    if launch.stage is LaunchStage.LOADING and launch.doubt:
        return launch.doubt
    if launch.stage is LaunchStage.LOADING:
        left = "no ETA yet" if launch.remaining_s is None else f"{duration(launch.remaining_s)} left"
        done = "" if launch.fraction is None else f" {launch.fraction * 100:.0f} %"
        if launch.purpose == "smoke":
            return f"{SMOKE_LOAD}{done}  {left}"
        return f"{f'loading{done}' if done else launch.phase}  {left}"
    if launch.measuring:
        total = sum(workload.rounds for workload in state.playbook.workloads)
        return f"measuring {len(launch.rounds) + 1}/{total}{' again' if launch.repeats else ''}"
    return "starting" if launch.stage is LaunchStage.REQUESTED else str(launch.stage)


def todo_words(state: State, experiment: ExperimentState, waiting: frozenset[str], checked: frozenset[str]) -> str:
    """What an experiment waits for, or why it was not reached.

    `waiting` are those without their approvals, `checked` those that a task is about right now.
    """
    if experiment.verdict:
        return f"not-reached: {experiment.reason}"
    if experiment.id in waiting:
        return "waits for approval"
    parent = experiment.spec.based_on
    if parent and state.experiments[parent].stage is not Stage.ENDED:
        return f"waits for {parent}"
    if (when := experiment.spec.when) and not experiment.overruled:
        names = (*when.all_of, *when.any_of)
        if pending := [name for name in names if state.experiments[name].stage is not Stage.ENDED]:
            return f"waits for {', '.join(pending)}"
    if group := waits_for(state, experiment):
        return f"fallback of {group.title}"
    return "in line, being checked" if experiment.id in checked else "in line"
