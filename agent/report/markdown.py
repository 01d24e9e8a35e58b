"""A report as Markdown: plain words and tables. What comes from outside is escaped or stands in code."""

import re
from collections.abc import Iterable, Iterator, Sequence

from agent.core.model import Quote
from agent.report.model import LaunchFacts, Report, TaskFacts, Trial
from agent.report.plans import EXPECTED_NAMES, STRATEGY_NAMES, expected_rows, strategy_rows
from agent.report.words import (
    LANE_NAMES,
    SIMULATED,
    board_word,
    change_rows,
    claim_word,
    dead_ends,
    doubts,
    head_rows,
    lane_rows,
    lasting,
    ledger_rows,
    measured_table,
    moment,
    note_text,
    outcome,
    percent,
    phases_text,
    scopes,
    shown_quotes,
    task_word,
    verdict_rows,
    with_half,
)

_SPECIAL = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
_START = re.compile(r"^(?=[#+=-](?!\d))|^(\d+)(?=[.)](?:\s|$))")


def markdown(report: Report) -> str:
    """The whole report, ending in a newline."""
    lines = [f"# tunebot report: {escaped(report.head.playbook)}", ""]
    if report.head.simulated:
        lines += [f"**{SIMULATED}**", ""]
    lines += [f"- {name}: {escaped(value)}" for name, value in head_rows(report.head)]
    lines += [f"- reported: {moment(report.head.now)}"]
    if report.best:
        lines += ["", "## Best launch command", "", f"That of {code(report.best.experiment)}:"]
        lines += ["", *fenced([report.best.command], "sh")]
    lines += ["", "## Board", "", *_board(report)]
    if report.todos:
        lines += ["", "To do:", ""]
        lines += [f"- [{'x' if todo.done else ' '}] {escaped(todo.text)}" for todo in report.todos]
    lines += ["", "## Ledger", "", *table(("", "", ""), ((a, b, c) for a, b, c in ledger_rows(report.ledger)))]
    lines += _saved(report)
    lines += ["", "## Timeline", "", *_timeline(report)]
    lines += ["", "## Experiments"]
    for trial in report.trials:
        lines += _trial(trial)
    lines += _dead_ends(report)
    lines += _plans(report)
    lines += ["", "## Research"]
    for task in report.tasks:
        lines += _task(task)
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Outside text that Markdown shows as it is, on one line."""
    text = _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))
    return _START.sub(lambda match: f"{match[1] or ''}\\", text)


def code(text: str) -> str:
    """Outside text on one line as a code span."""
    text = " ".join(text.split())
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}" if text else ""


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Outside lines as a code block that none of them can end."""
    lines = [line for text in lines for line in text.splitlines() or [""]]
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return [fence + language, *lines, fence]


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table. A cell is escaped, unless it is a code span already."""
    yield f"| {' | '.join(_cell(name) for name in names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"


def _cell(text: str) -> str:
    # Tables take their cells apart before anything else, code spans included.
    return text.replace("|", "\\|") if text.startswith("`") and text.endswith("`") else escaped(text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _board(report: Report) -> Iterator[str]:
    names = (
        "place",
        "experiment",
        "verdict",
        f"{report.head.metric}, {report.head.unit}",
        "against baseline",
        "reason",
    )
    rows = (
        (
            line.place,
            code(line.experiment),
            board_word(line),
            with_half(line.mean, line.half_width_95),
            percent(line.change),
            line.reason,
        )
        for line in report.board
    )
    yield from table(names, rows)


def _saved(report: Report) -> Iterator[str]:
    if report.ledger.saved:
        yield from ("", "Loads that were never paid:", "")
    for one in report.ledger.saved:
        yield f"- {code(one.experiment)}: {lasting(one.estimate_s) or 'unknown'} ({escaped(one.basis)})"


def _timeline(report: Report) -> Iterator[str]:
    rows = ((number, code(name), *rest) for number, name, *rest in lane_rows(report))
    yield from table(LANE_NAMES, rows)


def _trial(trial: Trial) -> Iterator[str]:
    about = trial.details
    yield from ("", f"### {escaped(about.experiment)}: {about.word}")
    if about.parent:
        yield from ("", f"Based on {code(about.parent)}" + (f": {escaped(about.why)}" if about.why else ""))
    if about.notes:
        yield ""
    for note in about.notes:
        yield f"- {escaped(note_text(note))}"
    if changes := [f"{mark} {name} {value}".strip() for mark, name, value in change_rows(trial)]:
        yield from ("", *fenced(changes, "diff"))
    if about.steps:
        yield ""
    for step in about.steps:
        yield f"- prepare {step.number}: {code(step.command)}, {step.status}"
    if rows := list(verdict_rows(trial)):
        yield from ("", *table(("against", "verdict", "gain", "interval", "reason"), rows))
    for launch in trial.launches:
        yield from _launch(launch)
    if trial.evidence:
        yield from ("", *fenced(_quotes(trial.evidence)))


def _launch(launch: LaunchFacts) -> Iterator[str]:
    yield from ("", f"Load {launch.number}: {escaped(outcome(launch))}. {phases_text(launch)}".rstrip())
    for measured in launch.measured:
        yield from ("", *table(*measured_table(measured)))
        if measured.repeated:
            yield from ("", *(f"- spoilt, and repeated: {escaped(text)}" for text in measured.repeated))


def _quotes(quotes: Sequence[Quote]) -> list[str]:
    return [f"{quote.path}:{quote.line}: {quote.text}" for quote in quotes]


def _dead_ends(report: Report) -> Iterator[str]:
    rows = [
        (code(name), word, reason, code(where), code(again)) for name, word, reason, where, again in dead_ends(report)
    ]
    if not rows:
        return
    yield from ("", "## Dead ends", "", *table(("experiment", "verdict", "reason", "evidence", "tried again as"), rows))
    yield from ("", "What they were seen on, and may not hold without:", "")
    for names, scope in scopes(report):
        yield f"- {escaped(names)}: {escaped(scope)}"
    if changes := list(doubts(report)):
        yield from ("", "These may not hold any more:", "")
    for name, change in changes:
        yield f"- {code(name)}: {escaped(change)}"


def _plans(report: Report) -> Iterator[str]:
    if strategies := list(strategy_rows(report)):
        yield from ("", "## Strategies", "", *table(STRATEGY_NAMES, strategies))
    if expected := [(code(name), *rest) for name, *rest in expected_rows(report)]:
        yield from ("", "## Expected", "", *table(EXPECTED_NAMES, expected))


def _task(task: TaskFacts) -> Iterator[str]:
    yield from ("", f"### {escaped(task.id)}: {task_word(task)}", "")
    yield f"{task.kind} {code(task.title)}, {lasting(task.end_s - task.start_s)}: {escaped(task.summary)}"
    if task.requires:
        yield from ("", "Demands " + ", ".join(code(f"{flag} {value}") for flag, value in task.requires) + ".")
    if task.answer:
        yield from ("", *(f"> {escaped(line)}".rstrip() for line in task.answer.text.splitlines()), "")
        for claim in task.answer.claims:
            yield f"- {escaped(claim.text)} ({code(f'{claim.path}:{claim.line}')}, {claim_word(claim)})"
        yield from (f"- risk: {escaped(risk)}" for risk in task.answer.risks)
    elif task.quotes:
        yield from ("", *fenced(_quotes(shown_quotes(task))))
