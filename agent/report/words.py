"""What both written forms of a report say in the same words."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from agent.core.model import Claim, Quote, Verdict
from agent.core.scope import UNKNOWN
from agent.core.views.basics import SMOKE_LOAD, duration
from agent.core.views.details import NoteLine
from agent.report.lane import Doing, Span
from agent.report.model import (
    NOT_AS_ASKED,
    BoardLine,
    Head,
    LaunchFacts,
    Ledger,
    LlmSpent,
    Measured,
    Report,
    TaskFacts,
    Trial,
)
from agent.report.plans import pivots

SIMULATED = "SIMULATED: these numbers come from a simulated host and say nothing of a real machine."
LABELS = {
    "output_throughput": "output tok/s",
    "request_throughput": "requests/s",
    "ttft_ms": "TTFT ms",
    "tpot_ms": "TPOT ms",
}
MOST_QUOTES = 6
"""Lines of a source or log that are shown of one task; all of them are in the JSON."""

ESTIMATE = "estimated by the loads of this session, as if each had loaded to its end; measuring is not counted"


def moment(at: float) -> str:
    """`2026-11-30 01:49:47 UTC` for seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def lasting(seconds: float | None) -> str:
    """`9.4 s`, `1 min 14 s`, `1 h 02 min`; nothing for what is not known."""
    if seconds is None:
        return ""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


def percent(fraction: float | None) -> str:
    """`+12.5 %`; nothing for what is not known."""
    return "" if fraction is None else f"{fraction * 100:+.1f} %"


def with_half(mean: float | None, half: float | None = None) -> str:
    """`101.9 ±3.4`, two decimals below ten; nothing where nothing was measured."""
    if mean is None:
        return ""
    decimals = 1 if abs(mean) >= 10 else 2
    return f"{mean:.{decimals}f}" + ("" if half is None else f" ±{half:.{decimals}f}")


def measured_table(measured: Measured) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The rounds of a workload, and their means where there are several: names and rows."""
    names = (measured.workload, *(LABELS[mean.metric] for mean in measured.means))
    rows = [
        (f"round {number}", *(with_half(getattr(one, mean.metric)) for mean in measured.means))
        for number, one in enumerate(measured.rounds, 1)
    ]
    if len(rows) > 1:
        rows.append(("mean", *(with_half(mean.mean, mean.half_width_95) for mean in measured.means)))
    return names, rows


def head_rows(head: Head) -> tuple[tuple[str, str], ...]:
    """Which session it is: names with their values."""
    resumed = {0: "", 1: ", resumed once"}.get(head.resumes, f", resumed {head.resumes} times")
    return (
        ("host", head.host + (" (simulated)" if head.simulated else "")),
        ("GPUs", "; ".join(head.gpus) or "none"),
        *([("set up", "; ".join(head.host_facts))] if head.host_facts else ()),
        ("session", head.session),
        ("began", moment(head.began_at)),
        ("took", f"{lasting(head.now - head.began_at)}, {head.ending}{resumed}"),
        ("objective", f"{head.metric} ({head.unit}) of {head.workload}, gains of at least {head.min_gain:.1%}"),
    )


def board_word(line: BoardLine) -> str:
    """The verdict with its glyph, never a colour alone."""
    return f"{line.glyph} {line.word}" + (" ← incumbent" if line.incumbent else "")


def note_text(note: NoteLine) -> str:
    """`noted at 1:42:10: it swaps`: what a person wrote, and how long after the session began."""
    return f"noted at {duration(note.at_s)}: {note.text}"


def verdict_rows(trial: Trial) -> Iterator[tuple[str, str, str, str, str]]:
    """Against what, the word, the gain, its interval, the reason. Two equal verdicts make one row."""
    roles: dict[Verdict, list[str]] = {}
    for role, verdict in (("parent", trial.parent), ("incumbent", trial.incumbent)):
        if verdict is not None:
            roles.setdefault(verdict, []).append(role)
    for verdict, names in roles.items():
        interval = "" if verdict.low is None else f"{percent(verdict.low)} to {percent(verdict.high)}"
        against = "itself" if verdict.against == trial.details.experiment else verdict.against
        yield f"{against} ({' and '.join(names)})", verdict.word, percent(verdict.gain), interval, verdict.reason


def change_rows(trial: Trial) -> Iterator[tuple[str, str, str]]:
    """The changes of an experiment: mark, name, value with what became of it."""
    for row in trial.changes:
        value = f"{row.before} → {row.requested}" if row.mark == "~" else row.requested or row.before
        value += f" ({row.status}: {row.effective})" if row.status in NOT_AS_ASKED else ""
        yield row.mark, row.name, value + (f" (demanded by {row.origin})" if row.origin else "")


def dead_ends(report: Report) -> Iterator[tuple[str, str, str, str, str]]:
    """The dead ends: experiment, word, reason, where the evidence stands, as what it was tried again."""
    for trial in report.trials:
        if end := trial.details.dead_end:
            where = "; ".join(f"{path}:{','.join(lines)}" for path, lines in _lines_by_path(end.evidence).items())
            yield trial.details.experiment, trial.details.word, end.reason, where, end.reopened_as or ""


def _lines_by_path(quotes: Iterable[Quote]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for quote in quotes:
        found.setdefault(quote.path, []).append(str(quote.line))
    return found


def scopes(report: Report) -> Iterator[tuple[str, str]]:
    """What the dead ends were seen on, each scope once: experiments, and what holds for them."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for trial in report.trials:
        if end := trial.details.dead_end:
            found.setdefault(end.scope, []).append(trial.details.experiment)
    for scope, names in found.items():
        told = [f"{name} {value}" for name, value in scope if value != UNKNOWN]
        unknown = ", ".join(name for name, value in scope if value == UNKNOWN)
        yield ", ".join(names), "; ".join([*told, f"not known: {unknown}"] if unknown else told)


def doubts(report: Report) -> Iterator[tuple[str, str]]:
    """The dead ends that may not hold any more: the experiment, and what has changed since or on another one."""
    for trial in report.trials:
        if (end := trial.details.dead_end) and end.changed:
            yield trial.details.experiment, "; ".join(end.changed)


def outcome(launch: LaunchFacts) -> str:
    """`ready after 10.3 s`, or how the load ended; `smoke load ready after 2.1 s`."""
    which = f"{SMOKE_LOAD} " if launch.load.purpose == "smoke" else ""
    if launch.load_s is not None:
        return f"{which}ready after {lasting(launch.load_s)}"
    return f"{which}{launch.load.failure or launch.load.stage} after {lasting(launch.load.total_s)}"


def phases_text(launch: LaunchFacts) -> str:
    """The phases of a load that took any time, with theirs."""
    return ", ".join(f"{bar.phase} {bar.duration_s:.1f} s" for bar in launch.load.phases if bar.duration_s > 0)


def task_word(task: TaskFacts) -> str:
    """How a task ended, or what a check says."""
    return task.outcome or task.status


def shown_quotes(task: TaskFacts) -> tuple[Quote, ...]:
    """The lines that say most."""
    return task.quotes[task.gist : task.gist + MOST_QUOTES]


def claim_word(claim: Claim) -> str:
    """Whether the quote of a claim stands where the LLM says; that is no proof of the claim."""
    return "quote found" if claim.found else "quote not found"


def merged_lane(report: Report) -> Iterator[Span]:
    """The server lane with all phases of a load in one span."""
    spans: list[Span] = []
    for span in report.lane:
        act = replace(span.act, phase=None)
        start_s = spans.pop().start_s if spans and spans[-1].act == act else span.start_s
        spans.append(Span(act=act, start_s=start_s, end_s=span.end_s))
    yield from spans


LANE_NAMES = ("load", "experiment", "at", "loading", "measuring", "stopping", "outcome")


def lane_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Every load with the times that it took of the server lane: see LANE_NAMES.

    Between them what was prepared, and which strategies were given up.
    """
    launches = {launch.id: launch for trial in report.trials for launch in trial.launches}
    seconds: defaultdict[tuple[str, Doing], float] = defaultdict(float)
    for span in report.lane:
        seconds[span.act.launch, span.act.doing] += span.lasts_s
    told = set()
    given_up = pivots(report)
    for span in merged_lane(report):
        while given_up and given_up[0][0] <= span.start_s:
            yield _pivot_row(*given_up.pop(0))
        act, at = span.act, duration(span.start_s)
        if act.doing is Doing.PREPARING:
            yield "", act.experiment, at, "", "", "", f"prepared in {lasting(span.lasts_s)}"
        elif act.launch and act.launch not in told:
            told.add(act.launch)
            times = (seconds[act.launch, doing] for doing in (Doing.LOADING, Doing.MEASURING, Doing.STOPPING))
            launch = launches[act.launch]
            yield str(launch.number), act.experiment, at, *map(lasting, times), outcome(launch)
    for pivot in given_up:
        yield _pivot_row(*pivot)


def _pivot_row(at_s: float, strategy: str, what: str) -> tuple[str, ...]:
    return "", strategy, duration(at_s), "", "", "", what


def ledger_rows(ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    """Where the time went: a name, a value, and how it is to be read."""
    lane = (
        ("loading", ledger.loading_s, "from the request of a launch until ready, or until it failed"),
        ("measuring", ledger.measuring_s, "rounds, with their warm-up"),
        ("stopping", ledger.stopping_s, "until every process was gone"),
        ("preparing", ledger.preparing_s, "steps that changed the host"),
        ("idle", ledger.idle_s, "nothing to do, or waiting with a server that is up"),
        ("away", ledger.away_s, "tunebot was not there: between a cut or an interruption and a resume"),
    )
    for name, seconds, note in lane:
        share = f"{lasting(seconds)} ({seconds / ledger.elapsed_s:.0%})" if ledger.elapsed_s else lasting(seconds)
        yield name, share, note
        if name == "measuring" and ledger.spoilt_rounds:
            yield "spoilt rounds", lasting(ledger.spoilt_s), f"{ledger.spoilt_rounds}, repeated; a part of measuring"
    mean = f"{lasting(ledger.mean_load_s)} each on average until ready" if ledger.loads_ready else ""
    yield "loads paid", str(ledger.loads), f"{ledger.loads_ready} got ready" + (f", {mean}" if mean else "")
    if ledger.smoke_loads:
        failed = f"{ledger.smoke_failed} did not start, whose real loads were not paid"
        yield "smoke loads", str(ledger.smoke_loads), f"{lasting(ledger.smoke_s)} with their stops; {failed}"
    by_best_case = " and best cases" if any(one.by == "best case" for one in ledger.saved) else ""
    yield f"loads saved by checks{by_best_case}", str(len(ledger.saved)), f"about {lasting(ledger.saved_s)}: {ESTIMATE}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in ledger.tasks) or "none"
    yield (
        "background tasks",
        str(sum(count for _, count in ledger.tasks)),
        f"{kinds}; {lasting(ledger.tasks_s)} of work",
    )
    inside = f"{ledger.tasks_in_loads} tasks that ran while a server loaded: time that nobody waited for"
    yield "research inside loads", lasting(ledger.tasks_in_loads_s), inside
    yield "LLM", llm_cost(ledger.llm), llm_use(ledger.llm)


def llm_cost(spent: LlmSpent) -> str:
    """Money in US dollars; what cannot be priced is said."""
    unknown = f", and {spent.unpriced} at unknown prices" if spent.unpriced else ""
    return f"${spent.cost_usd:.2f}{unknown}"


def llm_use(spent: LlmSpent) -> str:
    """Questions, calls and tokens."""
    questions = f"{spent.questions} question{'' if spent.questions == 1 else 's'}"
    return f"{questions}, {spent.calls} tool calls, {spent.input_tokens:,} + {spent.output_tokens:,} tokens in and out"
