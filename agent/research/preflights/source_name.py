"""source-name: whether the code of a file of the server's source defines a name."""

import ast
import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.playbook.preflights import SourceName
from agent.research.common import Progress, ResearchError, base_name
from agent.research.preflights.reports import Report
from agent.research.read import load
from agent.research.sources import Sources
from agent.syntax import Unparsable, parse

_ROOTS = frozenset({"object", "ABC", "Generic", "Module", "Protocol"})
"""Classes of Python and PyTorch, which have no name that a server's source would ask for."""

_Within = ast.Module | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Defined:
    """Where a name is defined, `line` None for nowhere; `unclear` says why that is not certain. `within` is the line of
    the class that was asked for."""

    line: int | None
    within: int | None = None
    unclear: str = ""


async def check_name(sources: Sources, check: SourceName, progress: Progress) -> Report:
    """Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    progress(f"reading {base_name(check.file)}")
    file = await load(sources, check.file)
    place = base_name(file.label)
    try:
        found = await asyncio.to_thread(defined, file.text, check.name)
    except (Unparsable, RecursionError) as error:
        raise ResearchError(f"{place} cannot be checked: {error}") from error
    except LookupError as error:
        raise ResearchError(f"{place} has no class {error.args[0]}") from error
    line = found.line or found.within
    quotes = file.quotes(sources, line, 1) if line else ()
    if found.line:
        return Report("fine" if check.there else check.otherwise, f"{place} defines {check.name}", quotes)
    if found.unclear:
        return Report("unknown", f"whether {place} has {check.name} cannot be read: {found.unclear}", quotes)
    return Report(check.otherwise if check.there else "fine", f"{place} has no {check.name}", quotes)


def defined(text: str, name: str) -> Defined:
    """Where a text defines a name, which may be `Class.name`. Raises Unparsable, LookupError with a class not there."""
    tree = parse(text)
    *classes, last = name.split(".")
    within: _Within = tree
    for wanted in classes:
        within = _class(within, wanted)
    at = within.lineno if isinstance(within, ast.ClassDef) else None
    foreign: set[str] = set()
    for one in _with_bases(tree, within, foreign):
        if line := next((line for bound, line in _bound(one) if bound == last), None):
            return Defined(line, at)
    return Defined(None, at, _doubt(tree, text, last, foreign))


def _doubt(tree: ast.AST, text: str, name: str, foreign: set[str]) -> str:
    """Why a name that no statement defines may be there all the same."""
    if foreign:
        return f"it inherits from {', '.join(sorted(foreign))}"
    bound = {bound for bound, _ in _bound(tree)}
    if "*" in bound or "__getattr__" in bound:
        return "names come from elsewhere (import *, __getattr__)"
    if hit := re.search(rf"\b{name}\b", text):
        return f"line {text.count(chr(10), 0, hit.start()) + 1} only mentions it"
    return ""


def _class(within: ast.AST, name: str) -> ast.ClassDef:
    found = [node for node in ast.walk(within) if isinstance(node, ast.ClassDef) and node.name == name]
    if not found:
        raise LookupError(name)
    return found[0]


def _with_bases(tree: ast.Module, within: _Within, foreign: set[str]) -> Iterator[_Within]:
    """A module, or a class and those of the same file that it inherits from; `foreign` gets the names of the others."""
    waiting, seen = [within], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        for base in one.bases if isinstance(one, ast.ClassDef) else ():
            name = _name_of(base)
            try:
                waiting.append(_class(tree, name))
            except LookupError:
                foreign |= {name} - _ROOTS


def _name_of(base: ast.expr) -> str:
    match base:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _name_of(value)
    return "what is computed"


def _bound(within: ast.AST, local: bool = False) -> Iterator[tuple[str, int]]:
    """Each name that a module or a class defines, and its line; of its functions only what they set on self."""
    for node in ast.iter_child_nodes(within):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case _ if local:
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                for alias in names:
                    yield alias.asname or alias.name.partition(".")[0], node.lineno
        yield from _bound(node, local or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
