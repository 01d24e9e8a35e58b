"""A playbook whose flags are held against its sources: every problem with its place in the file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.flags.check import NAMES, FlagProblem
from agent.flags_check import FlagReport, flag_reports
from agent.fragments import shipped_fragments
from agent.playbook.data_files import LookAt
from agent.playbook.fragments import with_fragments
from agent.playbook.load import KnownFlags, load_playbook
from agent.playbook.model import Playbook
from agent.playbook.outline import Draft, Outline, table_at
from agent.playbook.problems import Path, Place, Problem, Report
from agent.playbook.tree import Table, parse_tree
from agent.research.resolver import describe
from agent.servers.known_flags import all_known_flags
from agent.text import one_line

_LONGEST = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is said of a playbook. With `problems` it is not to be run; `warnings` stop nothing.

    `unread` are sentences about flags that no source could be asked about.
    """

    found: Playbook | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()


def load_by_source(data: bytes, file: str, look_at: LookAt) -> Playbook | list[Problem]:
    """As `load_playbook`, with our own lists of flags and those of the sources on this machine."""
    bare = load_playbook(data, file, {}, look_at, shipped_fragments())
    reports = tuple(flag_reports(bare)) if isinstance(bare, Playbook) else ()
    return load_playbook(data, file, _known(reports), look_at, shipped_fragments())


def check_by_source(data: bytes, file: str, look_at: LookAt, target: str | None) -> Checked:
    """A playbook with the flags of each experiment held against its source. `target` is that of `--target`."""
    bare = load_playbook(data, file, {}, look_at, shipped_fragments())
    reports = tuple(flag_reports(bare, target)) if isinstance(bare, Playbook) else ()
    found = load_playbook(data, file, _known(reports), look_at, shipped_fragments())
    fatal, mild = _located(data.decode().removeprefix("\ufeff"), file, reports) if reports else ([], [])
    # Of two words about one flag, that of the source is the better one.
    spots = {(problem.line, problem.column) for problem in fatal}
    general = [one for one in found if (one.line, one.column) not in spots] if isinstance(found, list) else []
    problems = sorted([*fatal, *general], key=lambda problem: (problem.line, problem.column))
    return Checked(
        found=None if problems or isinstance(found, list) else found,
        problems=tuple(problems),
        warnings=tuple(mild),
        unread=tuple(_unread(reports)),
    )


def _known(reports: Sequence[FlagReport]) -> KnownFlags:
    """The flags of our own lists and of every source that was read."""
    known = {kind: [*flags] for kind, flags in all_known_flags().items()}
    for table in {id(report.table): report.table for report in reports}.values():
        if table:
            known[table.kind] += [flag.spellings for flag in table.flags]
    return known


def _unread(reports: Sequence[FlagReport]) -> Iterator[str]:
    """A sentence for each reason."""
    experiments: dict[str, list[str]] = {}
    for report in reports:
        if report.unread:
            experiments.setdefault(report.unread, []).append(report.experiment)
    for reason, names in experiments.items():
        whose = "" if len(names) == len(reports) else f" of {', '.join(names)}"
        yield one_line(f"flags{whose} not checked by the server's source: {reason}", _LONGEST)


def _located(text: str, file: str, reports: Sequence[FlagReport]) -> tuple[list[Problem], list[Problem]]:
    """What the sources say, by place: what no server would start with, and what is only to be known."""
    fatal, mild = Report(file, text), Report(file, text)
    root = parse_tree(text, fatal)
    root = root if isinstance(root, Table) else Table(Place(1, 1), {})
    outline = Outline(with_fragments(root, fatal, shipped_fragments()))
    hit: dict[tuple[_Entry, FlagProblem], list[str]] = {}
    told: dict[str, set[str]] = {}
    for report in reports:
        own, *above = outline.lineage(outline.by_id[report.experiment])
        for problem in report.problems:
            hit.setdefault((_entry(outline, [own, *above], problem), problem), []).append(own.name)
        told[own.name] = {demand.text for demand in report.demands}
        for demand in report.demands:
            # What an experiment inherits is told of the one that it is based on.
            if own.id and not (above and demand.text in told.get(above[0].name, ())):
                says = one_line(f"'{own.name}' {describe(demand)}", _LONGEST)
                mild.add(own.id.place, own.path, says, hint=f"so says {demand.place} of {_server(report)}")
    for (entry, problem), experiments in hit.items():
        # A flag may be right where it stands, and wrong for what inherits it and runs another version.
        whose = "" if entry.owner in experiments else f" (in {', '.join(experiments)})"
        message, hint = one_line(problem.message + whose, _LONGEST), one_line(problem.hint, _LONGEST)
        (fatal if problem.fatal else mild).add(entry.place, entry.path, message, hint=hint or None)
    return fatal.sorted(), mild.sorted()


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a flag is given: the experiment whose `args` it stands in (of the server's, the baseline)."""

    owner: str
    path: Path
    place: Place


def _entry(outline: Outline, drafts: Sequence[Draft], problem: FlagProblem) -> _Entry:
    """Where the flag of a problem is given: in an experiment, in what it is based on, or in the server's `args`."""
    layers = [(draft.name, (*draft.path, "args"), table_at(draft.table, "args")) for draft in drafts]
    server = table_at(outline.root, "server", "args")
    for owner, path, table in (*layers, (drafts[-1].name, ("server", "args"), server)):
        if table and problem.flag in table.entries:
            key, value = table.entries[problem.flag]
            place = value.place if problem.kind in ("choice", "type") else key.place
            return _Entry(owner, (*path, problem.flag), place)
    raise ValueError(f"no layer gives {problem.flag}")


def _server(report: FlagReport) -> str:
    return f"{NAMES[report.table.kind]} {report.table.version}".rstrip() if report.table else ""
