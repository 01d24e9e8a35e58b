"""Preflights: whether an experiment would fail, or have no effect, before its load is paid.

Only what was really read rules out. Everything else is `unknown` with the reason, and that never rules out.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.model import Finding, Host, LaunchConfig, PreflightOutcome, Quote
from agent.playbook.model import (
    EnvCheck,
    EnvEntry,
    ListContains,
    ListContainsEntry,
    ModuleImportableEntry,
    PreflightEntry,
    TableHasKey,
    TableHasKeyEntry,
)
from agent.research.common import Progress, ResearchError, base_name, sentence
from agent.research.imports import check_import
from agent.research.literals import Collection, Unparsable, dicts, lists, look_up
from agent.research.read import SourceFile, load
from agent.research.sources import Sources

_TEMPLATE = re.compile(r"\{(gpu\.[a-z_]+)\}")
_MAX_SHOWN = 12
_MAX_EVIDENCE = 4
_MAX_QUOTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Whether a literal of a file holds something, and how that is said: `NAME has key 9`."""

    file: str
    name: str
    wanted: str
    has: str
    has_not: str
    extract: Callable[[str], tuple[Collection, ...]]
    otherwise: PreflightOutcome


async def preflight(
    sources: Sources, entry: PreflightEntry, host: Host, config: LaunchConfig, progress: Progress
) -> Finding:
    """Carry out one check. Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    match entry:
        case TableHasKeyEntry(check=check):
            return await _look(sources, _about_table(check, host), progress)
        case ListContainsEntry(check=check):
            return await _look(sources, _about_list(check, host), progress)
        case ModuleImportableEntry(check=check):
            return await check_import(sources, check, config, progress)
        case EnvEntry(check=check):
            return _env(sources, check, config)
        case _:
            return Finding(summary="how the GPUs are connected: a check that is not carried out yet", outcome="unknown")


def _about_table(check: TableHasKey, host: Host) -> _Question:
    return _Question(
        file=check.file,
        name=check.table,
        wanted=fill(check.key, host),
        has="has key",
        has_not="has no key",
        extract=lambda text: dicts(text, check.table),
        otherwise=check.otherwise,
    )


def _about_list(check: ListContains, host: Host) -> _Question:
    return _Question(
        file=check.file,
        name=f"{check.name} in {check.function}" if check.function else check.name,
        wanted=fill(check.item, host),
        has="contains",
        has_not="does not contain",
        extract=lambda text: lists(text, check.name, check.function),
        otherwise=check.otherwise,
    )


async def _look(sources: Sources, question: _Question, progress: Progress) -> Finding:
    progress(f"reading {base_name(question.file)}")
    file = await load(sources, question.file)
    try:
        # Parsing thousands of lines takes tens of milliseconds: not on the loop that answers keys.
        found = await asyncio.to_thread(question.extract, file.text)
    except Unparsable as error:
        raise ResearchError(f"{base_name(file.label)} cannot be checked: {error}") from error
    name, wanted = question.name, question.wanted
    outcome: PreflightOutcome = "unknown"
    if not found:
        raise ResearchError(f"{base_name(file.label)} has no literal named {name}")
    match look_up(found, wanted):
        case "present":
            outcome, summary = "fine", f"{name} {question.has} {wanted}"
        case "absent":
            outcome, summary = question.otherwise, f"{name} {question.has_not} {wanted}, only {_shown(found)}"
        case _:
            summary = f"whether {name} {question.has} {wanted} cannot be read: it is not written out in one place"
    quotes = _evidence(sources, file, found, wanted)
    return Finding(summary=sentence(summary, sources.redact), quotes=quotes, outcome=outcome)


def _evidence(sources: Sources, file: SourceFile, found: tuple[Collection, ...], wanted: str) -> tuple[Quote, ...]:
    """The lines where the literals begin, and the item that decides, or else those that are there instead."""
    lines: list[int] = []
    for collection in found:
        item = collection.get(wanted)
        others = [item] if item else collection.items[:_MAX_EVIDENCE]
        lines += [collection.line, *(other.line for other in others)]
    shown = list(dict.fromkeys(lines))[:_MAX_QUOTES]
    return tuple(quote for line in shown for quote in file.quotes(sources, line, 1))


def _env(sources: Sources, check: EnvCheck, config: LaunchConfig) -> Finding:
    value = config.env.get(check.name)
    shown = f"{check.name} is {value}" if value is not None else f"{check.name} is not set"
    if value is not None and value in check.not_in:
        reason = check.why or "the experiment's check excludes that"
    elif check.one_of and value not in check.one_of:
        reason = check.why or f"it must be {' or '.join(check.one_of)}"
    else:
        return Finding(summary=sentence(shown, sources.redact), outcome="fine")
    return Finding(summary=sentence(f"{shown}: {reason}", sources.redact), outcome=check.otherwise)


def _shown(found: tuple[Collection, ...]) -> str:
    texts = list(dict.fromkeys(item.text for collection in found for item in collection.items))
    if not texts:
        return "nothing"
    more = [f"{len(texts) - _MAX_SHOWN} others"] if len(texts) > _MAX_SHOWN else []
    return ", ".join([*texts[:_MAX_SHOWN], *more])


def fill(text: str, host: Host) -> str:
    """The text with `{gpu.sm_major}` and the like filled in from the host.

    Raises ResearchError where the host does not say, or where its GPUs differ.
    """
    return _TEMPLATE.sub(lambda match: _fact(match[1], host), text)


def _fact(name: str, host: Host) -> str:
    if not host.gpus:
        raise ResearchError(f"{name} is not known: no GPU of {host.name} was found")
    values = {
        "gpu.sm_major": {str(gpu.sm_major) for gpu in host.gpus},
        "gpu.sm_minor": {str(gpu.sm_minor) for gpu in host.gpus},
        "gpu.sm": {f"{gpu.sm_major}{gpu.sm_minor}" for gpu in host.gpus},
        "gpu.name": {gpu.name for gpu in host.gpus},
        "gpu.count": {str(len(host.gpus))},
    }.get(name)
    if values is None:
        raise ResearchError(f"{name} is not a fact of a host")
    if len(values) > 1:
        raise ResearchError(f"{name} is not the same on all GPUs of {host.name}")
    return values.pop()
