"""table-has-key, list-contains: whether a literal of the source holds something, and what happens where it does not."""

import ast
import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.core.model import Host, PreflightOutcome, Quote
from agent.playbook.preflights import ListContains, Otherwise, TableHasKey
from agent.research.common import Progress, ResearchError, base_name
from agent.research.fates import Facts, Fate, Known, Raises, fates, functions
from agent.research.grep import search
from agent.research.literals import Collection, dicts, lists, look_up
from agent.research.preflights.reports import Report, fill
from agent.research.read import SourceFile, load
from agent.research.sources import Sources
from agent.syntax import Unparsable, parse

_MAX_SHOWN = 12
_MAX_EVIDENCE = 4
_MAX_QUOTES = 12
_MAX_FILES = 8
_MAX_HITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Whether a literal of a file holds something, and how that is said: `NAME has key 9`."""

    file: str
    name: str
    shown: str
    wanted: str
    has: str
    has_not: str
    extract: Callable[[str], tuple[Collection, ...]]
    otherwise: Otherwise | None


@dataclass(frozen=True, slots=True)
class _Use:
    """What code that looks the literal up does without the item."""

    file: SourceFile
    fate: Fate


async def check_table(sources: Sources, check: TableHasKey, host: Host, progress: Progress) -> Report:
    """Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    question = _Question(
        file=check.file,
        name=check.table,
        shown=check.table,
        wanted=fill(check.key, host),
        has="has key",
        has_not="has no key",
        extract=lambda text: dicts(text, check.table),
        otherwise=check.otherwise,
    )
    return await _look(sources, question, progress)


async def check_list(sources: Sources, check: ListContains, host: Host, progress: Progress) -> Report:
    """Raises as `check_table`."""
    question = _Question(
        file=check.file,
        name=check.name,
        shown=f"{check.name} in {check.function}" if check.function else check.name,
        wanted=fill(check.item, host),
        has="contains",
        has_not="does not contain",
        extract=lambda text: lists(text, check.name, check.function),
        # A list inside a function is handed on under other names.
        otherwise=check.otherwise or ("fails" if check.function else None),
    )
    return await _look(sources, question, progress)


async def _look(sources: Sources, question: _Question, progress: Progress) -> Report:
    progress(f"reading {base_name(question.file)}")
    file = await load(sources, question.file)
    try:
        # Parsing thousands of lines takes tens of milliseconds: not on the loop that answers keys.
        found = await asyncio.to_thread(question.extract, file.text)
    except Unparsable as error:
        raise ResearchError(f"{base_name(file.label)} cannot be checked: {error}") from error
    name, wanted = question.shown, question.wanted
    if not found:
        raise ResearchError(f"{base_name(file.label)} has no literal named {name}")
    quotes = _evidence(sources, file, found, wanted)
    match look_up(found, wanted):
        case "present":
            return Report("fine", f"{name} {question.has} {wanted}", quotes)
        case "absent":
            return await _without(sources, question, file.label, _shown(found), quotes, progress)
    summary = f"whether {name} {question.has} {wanted} cannot be read: it is not written out in one place"
    return Report("unknown", summary, quotes)


async def _without(
    sources: Sources, question: _Question, home: str, held: str, quotes: tuple[Quote, ...], progress: Progress
) -> Report:
    """The item is not there: what that leads to."""
    summary = f"{question.shown} {question.has_not} {question.wanted}, only {held}"
    if question.otherwise:
        return Report(question.otherwise, summary, quotes)
    progress(f"reading what looks {question.name} up")
    uses = await _uses(sources, question, home)
    outcome, use = _judge(uses)
    if use is None:
        return Report(outcome, summary, quotes)
    shown = [use.fate.because, use.fate.line] if outcome == "no-effect" else [use.fate.line]
    quotes += tuple(quote for line in dict.fromkeys(shown) for quote in use.file.quotes(sources, line, 1))
    return Report(outcome, f"{summary}: {_told(use, question.wanted)}", quotes)


def _judge(uses: Sequence[_Use]) -> tuple[PreflightOutcome, _Use | None]:
    """The worst that any of the uses does. Where none decides, the playbook's word holds: the item must be there."""
    outcomes: tuple[tuple[str, PreflightOutcome], ...] = (
        ("raises", "fails"),
        ("gives-up", "no-effect"),
        ("goes-on", "unknown"),
    )
    for how, outcome in outcomes:
        for use in uses:
            if use.fate.how == how:
                return outcome, use
    return "fails", None


def _told(use: _Use, wanted: str) -> str:
    place = f"{base_name(use.file.label)}:{use.fate.line}"
    match use.fate.how:
        case "raises" if use.fate.exception == "KeyError":
            return f"KeyError: {wanted} at {place}"
        case "raises":
            return f"{use.fate.exception or 'an exception'} at {place}"
        case "gives-up":
            return f"{place} gives it up without an error"
    return f"{place} has another way for that"


async def _uses(sources: Sources, question: _Question, home: str) -> list[_Use]:
    """What every function of the same source does that looks the literal up, which stands in the file `home`."""
    if not question.name.isidentifier():
        return []
    root = f"{question.file.partition(':')[0]}:"
    hits = await search(sources, rf"(^|[^A-Za-z0-9_]){re.escape(question.name)}([^A-Za-z0-9_]|$)", [root], _MAX_HITS)
    paths = list(dict.fromkeys(hit.path for hit in hits.quotes if hit.path.endswith(".py")))
    found: list[_Use] = []
    for path in paths[:_MAX_FILES]:
        file = await load(sources, path)
        decided = await asyncio.to_thread(_fates, file.text, question.name, path == home)
        found += [_Use(file, fate) for fate in decided]
    return found


def _fates(text: str, name: str, is_home: bool) -> list[Fate]:
    try:
        tree = parse(text)
        if not is_home and _defines(tree, name):
            return []  # another literal of the same name
        return [fate for function in functions(tree) for fate in fates(function, missing_from(name))]
    except (Unparsable, RecursionError):
        return []  # what cannot be read decides nothing


def _defines(tree: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in ast.walk(tree)
    )


def missing_from(name: str) -> Facts:
    """The facts of an item that is not in the literal `name`, whatever expression stands for it."""

    def is_it(node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            node = node.func.value
        return (isinstance(node, ast.Name) and node.id == name) or (
            isinstance(node, ast.Attribute) and node.attr == name
        )

    def facts(node: ast.expr) -> Known | Raises | None:
        match node:
            case ast.Subscript(value=value, slice=key, ctx=ast.Load()) if is_it(value):
                return None if isinstance(key, ast.Constant | ast.Slice) else Raises("KeyError")
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[_, *default]) if is_it(value):
                is_none = all(isinstance(other, ast.Constant) and other.value is None for other in default)
                return Known(None) if is_none else None
            case ast.Compare(ops=[ast.In() | ast.NotIn() as op], comparators=[right]) if is_it(right):
                return Known(isinstance(op, ast.NotIn))
        return None

    return facts


def _evidence(sources: Sources, file: SourceFile, found: tuple[Collection, ...], wanted: str) -> tuple[Quote, ...]:
    """The lines where the literals begin, and the item that decides, or else those that are there instead."""
    lines: list[int] = []
    for collection in found:
        item = collection.get(wanted)
        others = [item] if item else collection.items[:_MAX_EVIDENCE]
        lines += [collection.line, *(other.line for other in others)]
    shown = list(dict.fromkeys(lines))[:_MAX_QUOTES]
    return tuple(quote for line in shown for quote in file.quotes(sources, line, 1))


def _shown(found: tuple[Collection, ...]) -> str:
    texts = list(dict.fromkeys(item.text for collection in found for item in collection.items))
    if not texts:
        return "nothing"
    more = [f"{len(texts) - _MAX_SHOWN} others"] if len(texts) > _MAX_SHOWN else []
    return ", ".join([*texts[:_MAX_SHOWN], *more])
