"""Preflights: whether an experiment would fail, or have no effect, before its load is paid.

Only what was really read rules out. Everything else is `unknown` with the reason, and that never rules out.
"""

import asyncio
import re
from collections.abc import Callable

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


async def preflight(
    sources: Sources, entry: PreflightEntry, host: Host, config: LaunchConfig, progress: Progress
) -> Finding:
    """Carry out one check. Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    match entry:
        case TableHasKeyEntry(check=check):
            return await _table(sources, check, host, progress)
        case ListContainsEntry(check=check):
            return await _list(sources, check, host, progress)
        case ModuleImportableEntry(check=check):
            return await check_import(sources, check, config, progress)
        case EnvEntry(check=check):
            return _env(sources, check, config)
        case _:
            return Finding(summary="how the GPUs are connected: a check that is not carried out yet", outcome="unknown")


async def _table(sources: Sources, check: TableHasKey, host: Host, progress: Progress) -> Finding:
    key = fill(check.key, host)
    file = await _source(sources, check.file, progress)
    found = await _parsed(file, lambda text: dicts(text, check.table))
    if not found:
        raise ResearchError(f"{base_name(file.label)} has no dict literal named {check.table}")
    answer = look_up(found, key)
    if answer == "present":
        return _finding(sources, file, found, "fine", f"{check.table} has key {key}", key)
    if answer == "absent":
        missing = f"{check.table} has no key {key}, only {_shown(found)}"
        return _finding(sources, file, found, check.otherwise, missing, key)
    unclear = f"{check.table} is not written out in full: whether it has key {key} cannot be read"
    return _finding(sources, file, found, "unknown", unclear, key)


async def _list(sources: Sources, check: ListContains, host: Host, progress: Progress) -> Finding:
    item = fill(check.item, host)
    file = await _source(sources, check.file, progress)
    found = await _parsed(file, lambda text: lists(text, check.name, check.function))
    name = f"{check.name} in {check.function}" if check.function else check.name
    if not found:
        raise ResearchError(f"{base_name(file.label)} has no list literal named {name}")
    answer = look_up(found, item)
    if answer == "present":
        return _finding(sources, file, found, "fine", f"{name} contains {item}", item)
    if answer == "absent":
        missing = f"{name} does not contain {item}, only {_shown(found)}"
        return _finding(sources, file, found, check.otherwise, missing, item)
    unclear = f"{name} is not written out in full: whether it contains {item} cannot be read"
    return _finding(sources, file, found, "unknown", unclear, item)


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


async def _source(sources: Sources, path: str, progress: Progress) -> SourceFile:
    progress(f"reading {base_name(path)}")
    return await load(sources, path)


async def _parsed(file: SourceFile, extract: Callable[[str], tuple[Collection, ...]]) -> tuple[Collection, ...]:
    try:
        # Parsing thousands of lines takes tens of milliseconds: not on the loop that answers keys.
        return await asyncio.to_thread(extract, file.text)
    except Unparsable as error:
        raise ResearchError(f"{base_name(file.label)} cannot be checked: {error}") from error


def _finding(
    sources: Sources,
    file: SourceFile,
    found: tuple[Collection, ...],
    outcome: PreflightOutcome,
    summary: str,
    wanted: str,
) -> Finding:
    """The lines where the collection stands, and the item that decides, or else those that are there instead."""
    lines: list[int] = []
    for collection in found:
        item = collection.get(wanted)
        lines += [collection.line, *(other.line for other in ([item] if item else collection.items))]
    quotes: list[Quote] = []
    for line in dict.fromkeys(lines):
        quotes += file.quotes(sources, line, 1)
    return Finding(
        summary=sentence(summary, sources.redact), quotes=tuple(quotes[: _MAX_EVIDENCE + len(found)]), outcome=outcome
    )


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
