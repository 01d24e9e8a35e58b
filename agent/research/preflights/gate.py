"""gpu-gate: whether a function of the server's source lets these GPUs pass, as its own tests of them say."""

import ast
import asyncio
import re

from agent.core.model import Host
from agent.playbook.preflights import GpuGate
from agent.research.common import Progress, ResearchError, base_name
from agent.research.fates import Facts, Fate, Known, fates, functions
from agent.research.preflights.reports import Report, fill
from agent.research.read import load
from agent.research.sources import Sources
from agent.syntax import Unparsable, parse

_TEST = re.compile(r"_?is_sm([0-9]+)[0-9](?:_supported)?")


async def check_gate(sources: Sources, check: GpuGate, host: Host, progress: Progress) -> Report:
    """Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    major, shown = int(fill("{gpu.sm_major}", host)), f"SM{fill('{gpu.sm}', host)}"
    progress(f"reading {base_name(check.file)}")
    file = await load(sources, check.file)
    try:
        decided, tests = await asyncio.to_thread(gate, file.text, check.name, major)
    except (Unparsable, RecursionError) as error:
        raise ResearchError(f"{base_name(file.label)} cannot be checked: {error}") from error
    except LookupError as error:
        raise ResearchError(f"{base_name(file.label)} has no function {check.name}") from error
    place = f"{check.name} ({base_name(file.label)})"
    if not tests:
        return Report("unknown", f"{place} tests nothing that says SM in its name")
    shut = [fate for fate in decided if fate.how != "goes-on"]
    worst = min(shut, key=lambda fate: (not fate.sure, fate.how != "raises", fate.line), default=None)
    lines = [*tests, worst.line] if worst else tests
    quotes = tuple(quote for line in dict.fromkeys(lines) for quote in file.quotes(sources, line, 1))
    if worst is None:
        return Report("fine", f"{place} lets {shown} pass", quotes)
    does = f"raises {worst.exception}".rstrip() if worst.how == "raises" else "gives up"
    if not worst.sure:
        return Report("unknown", f"{place} {does} on {shown} under a condition, line {worst.line}", quotes)
    if worst.how == "raises":
        return Report("fails", f"{place} {does} on {shown}, line {worst.line}", quotes)
    return Report("no-effect", f"{place} {does} on {shown} without an error, line {worst.line}", quotes)


def gate(text: str, name: str, major: int) -> tuple[list[Fate], list[int]]:
    """What a GPU of that major capability decides in a function, and the lines of its tests.

    Raises Unparsable, LookupError where there is no such function, RecursionError.
    """
    found = list(functions(parse(text), name))
    if not found:
        raise LookupError(name)
    facts = _of_gpu(major)
    tests = [
        node.lineno for function in found for node in ast.walk(function) if isinstance(node, ast.expr) and facts(node)
    ]
    return [fate for function in found for fate in fates(function, facts)], sorted(set(tests))


def _of_gpu(major: int) -> Facts:
    def facts(node: ast.expr) -> Known | None:
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            node = node.func
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        match = _TEST.fullmatch(name)
        return Known(int(match[1]) == major) if match else None

    return facts
