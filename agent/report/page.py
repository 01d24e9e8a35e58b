"""A report as one HTML page that needs nothing else: no script, no font, no picture."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from agent.core.model import Quote
from agent.report.markup import Safe, el, joined
from agent.report.model import BoardLine, LaunchFacts, Report, TaskFacts, Trial
from agent.report.plans import EXPECTED_NAMES, STRATEGY_NAMES, expected_rows, strategy_rows
from agent.report.style import STYLE, colours
from agent.report.timeline import LEGEND, TASK_LEGEND, svg_of
from agent.report.words import (
    LABELS,
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

_NUMBERS = frozenset(
    {
        *("gain", "interval", "against baseline", "at", "loading", "measuring", "stopping", "at best", "measured"),
        *LABELS.values(),
    }
)
_KINDS = {
    "reason": "text",
    "its experiments": "text",
    "how it follows": "text",
    "outcome": "text",
    "how it is counted": "note",
    "estimated by": "note",
    "evidence": "path",
    "verdict": "word",
    "amount": "word",
}
_SECTIONS = ("Board", "Timeline", "Ledger", "Experiments", "Dead ends", "Strategies", "Expected", "Research")


def page(report: Report) -> str:
    """The whole page. Every text in it is escaped."""
    title = f"tunebot report: {report.head.playbook}"
    style = STYLE + colours(tuple(name for name, _ in (*LEGEND, *TASK_LEGEND)))
    # The style is ours alone, so nothing of it needs to be escaped.
    head = joined(
        Safe('<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Safe('<meta name="referrer" content="no-referrer">\n'),
        el("title", title),
        Safe(f"\n<style>\n{style}</style>\n"),
    )
    body = joined(_header(report, title), el("main", *_sections(report)), _footer(report))
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _header(report: Report, title: str) -> Safe:
    notice = el("p", SIMULATED, class_="notice") if report.head.simulated else Safe("")
    facts = [joined(el("dt", name), el("dd", value)) for name, value in head_rows(report.head)]
    plans = {"Strategies": bool(report.strategies), "Expected": any(expected_rows(report))}
    links = [el("a", name, href=f"#{_anchor(name)}") for name in _SECTIONS if plans.get(name, True)]
    return el(
        "header", el("h1", title), notice, el("dl", *facts, class_="facts"), el("nav", *links, aria_label="Parts")
    )


def _footer(report: Report) -> Safe:
    return el("footer", el("p", f"As of {moment(report.head.now)}.", class_="faint"))


def _sections(report: Report) -> Iterator[Safe]:
    if report.best:
        what = el("p", "That of ", el("code", report.best.experiment), ":")
        # A flag that is broken at its hyphens is hard to read.
        words = [joined(el("span", word), " ") for word in report.best.command.split(" ")]
        yield _section("Best launch command", what, el("pre", el("code", *words), class_="unbroken"))
    yield _section("Board", _board(report), *_todos(report))
    yield _section("Timeline", *_timeline(report))
    yield _section("Ledger", *_ledger(report))
    yield _section("Experiments", *(_trial(trial) for trial in report.trials))
    yield _section("Dead ends", *_dead_ends(report))
    yield from _plans(report)
    yield _section("Research", *(_task(task) for task in report.tasks))


def _section(name: str, *children: str) -> Safe:
    return joined(el("section", el("h2", name), *children, id=_anchor(name)), Safe("\n"))


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _scroll(child: Safe, label: str, kind: str = "") -> Safe:
    """A box that what is too wide for the screen scrolls in, also by keyboard."""
    return el("div", child, class_=f"scroll {kind}".rstrip(), role="region", aria_label=label, tabindex="0")


def _table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Safe:
    """A table whose first column names its rows; the last one is text where it is a reason."""
    head = el("tr", *(el("th", name, scope="col", class_=_kind(name)) for name in names))
    body = [
        joined(
            Safe("\n"),
            el("tr", el("th", row[0], scope="row"), *map(_data, names[1:], row[1:])),
        )
        for row in rows
    ]
    return _captioned(caption, el("table", el("thead", head), el("tbody", *body)))


def _captioned(caption: str, table: Safe) -> Safe:
    """The caption stays in sight while the table scrolls."""
    return el("figure", el("figcaption", caption), _scroll(table, caption))


def _data(name: str, value: str) -> Safe:
    return el("td", _worded(value) if name == "verdict" else value, class_=_kind(name))


def _kind(name: str) -> str | bool:
    if name in _NUMBERS:
        return "number"
    return _KINDS.get(name, False)


def _worded(value: str) -> Safe:
    word = next((part for part in value.split() if part[0].isalpha()), "")
    return el("span", value, class_=word)


def _board(report: Report) -> Safe:
    head = report.head
    caption = f"{head.metric} of {head.workload} in {head.unit}, mean over rounds with its 95 % interval"
    names = ("experiment", "verdict", head.unit, "against baseline", "reason")
    columns = el("tr", *(el("th", n, scope="col", class_="number" if n == head.unit else _kind(n)) for n in names))
    bodies = []
    for place, lines in groupby(report.board, key=lambda line: line.place):
        title = el("tr", el("th", place, colspan=str(len(names)), scope="rowgroup"), class_="place")
        bodies.append(el("tbody", title, *map(_board_row, lines)))
    return _captioned(caption, el("table", el("thead", columns), *bodies))


def _board_row(line: BoardLine) -> Safe:
    return el(
        "tr",
        el("th", el("a", line.experiment, href=f"#experiment-{line.experiment}"), scope="row"),
        el("td", el("span", board_word(line), class_=line.word.split()[0]), class_="word"),
        el("td", with_half(line.mean, line.half_width_95), class_="number"),
        el("td", percent(line.change), class_="number"),
        el("td", line.reason, class_="text"),
    )


def _todos(report: Report) -> Iterator[Safe]:
    if report.todos:
        yield el("p", "To do:")
        yield el("ul", *(el("li", f"done: {todo.text}" if todo.done else todo.text) for todo in report.todos))


def _timeline(report: Report) -> Iterator[Safe]:
    yield _scroll(svg_of(report), "Timeline", "timeline")
    used = {name for name, _ in LEGEND} - ({"away"} if report.ledger.away_s == 0 else set())
    yield _legend("server lane", [(name, words) for name, words in LEGEND if name in used])
    yield _legend("background lane", TASK_LEGEND)
    yield _table("Loads, as numbered above", LANE_NAMES, lane_rows(report))


def _legend(label: str, entries: Iterable[tuple[str, str]]) -> Safe:
    items = [el("li", el("span", class_=f"swatch {name}"), words) for name, words in entries]
    return el("ul", *items, class_="legend", aria_label=f"Colours of the {label}")


def _ledger(report: Report) -> Iterator[Safe]:
    yield _table("Where the time went", ("", "amount", "how it is counted"), ledger_rows(report.ledger))
    if report.ledger.saved:
        rows = ((one.experiment, lasting(one.estimate_s) or "unknown", one.basis) for one in report.ledger.saved)
        yield _table("Loads that were never paid", ("experiment", "load", "estimated by"), rows)


def _trial(trial: Trial) -> Safe:
    about = trial.details
    parts = [el("h3", about.experiment, ": ", el("span", about.word, class_=about.word))]
    if about.parent:
        parts.append(el("p", "Based on ", el("code", about.parent), f": {about.why}" if about.why else ""))
    if about.notes:
        parts.append(el("ul", *(el("li", note_text(note)) for note in about.notes)))
    changes = [el("li", el("code", f"{mark} {name} {value}".strip())) for mark, name, value in change_rows(trial)]
    parts += [el("ul", *changes, class_="changes")] if changes else []
    parts += [el("p", f"Prepare step {step.number}, {step.status}: ", el("code", step.command)) for step in about.steps]
    if rows := list(verdict_rows(trial)):
        names = ("against", "verdict", "gain", "interval", "reason")
        parts.append(_table(f"Verdicts of {about.experiment}", names, rows))
    for launch in trial.launches:
        parts += _launch(launch)
    parts += _evidence(trial.evidence)
    return joined(el("article", *parts, id=f"experiment-{about.experiment}"), Safe("\n"))


def _launch(launch: LaunchFacts) -> Iterator[Safe]:
    yield el("p", f"Load {launch.number}: {outcome(launch)}. ", el("span", phases_text(launch), class_="faint"))
    for measured in launch.measured:
        yield _table(f"Rounds of load {launch.number}", *measured_table(measured))
        if measured.repeated:
            yield el("ul", *(el("li", f"spoilt, and repeated: {text}") for text in measured.repeated), class_="changes")


def _evidence(quotes: Sequence[Quote]) -> Iterator[Safe]:
    if quotes:
        lines = [joined(el("b", f"{quote.path}:{quote.line}"), f"  {quote.text}\n") for quote in quotes]
        yield el("figure", el("pre", *lines, class_="quotes"))


def _dead_ends(report: Report) -> Iterator[Safe]:
    rows = list(dead_ends(report))
    if not rows:
        yield el("p", "None.")
        return
    yield _table("Not to be pursued", ("experiment", "verdict", "reason", "evidence", "tried again as"), rows)
    yield el("p", "What they were seen on, and may not hold without:")
    yield el("ul", *(el("li", el("b", names), f": {scope}") for names, scope in scopes(report)))
    if changes := list(doubts(report)):
        yield el("p", "These may not hold any more:")
        yield el("ul", *(el("li", el("b", name), f": {change}") for name, change in changes))


def _plans(report: Report) -> Iterator[Safe]:
    """Only where the playbook has them."""
    if strategies := list(strategy_rows(report)):
        yield _section("Strategies", _table("Given up when no member is kept", STRATEGY_NAMES, strategies))
    if expected := list(expected_rows(report)):
        yield _section("Expected", _table("The most that an experiment could gain", EXPECTED_NAMES, expected))


def _task(task: TaskFacts) -> Safe:
    word = task_word(task)
    parts = [
        el("h3", task.id, ": ", el("span", word, class_=word)),
        el("p", f"{task.kind} ", el("code", task.title), f", {lasting(task.end_s - task.start_s)}"),
        el("p", task.summary),
    ]
    if task.requires:
        demands = " ".join(f"{flag} {value}" for flag, value in task.requires)
        parts.append(el("p", "Demands ", el("code", demands), "."))
    if task.answer:
        claims = [
            el("li", claim.text, " ", el("code", f"{claim.path}:{claim.line}"), f" ({claim_word(claim)})")
            for claim in task.answer.claims
        ]
        risks = [el("li", f"risk: {risk}") for risk in task.answer.risks]
        parts += [el("pre", task.answer.text), el("ul", *claims, *risks)]
    else:
        parts += _evidence(shown_quotes(task))
    return joined(el("article", *parts), Safe("\n"))
