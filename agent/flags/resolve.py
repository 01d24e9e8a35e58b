"""From a source tree to everything that is known of its flags."""

import ast
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent.flags import sglang, vllm
from agent.flags.conditions import Fields
from agent.flags.interpret import Hook, Interpreter
from agent.flags.model import FlagTable, Kind, NoFlags, Place
from agent.flags.modules import Module, Modules, statements
from agent.flags.record import Recorder
from agent.flags.tree import Tree
from agent.flags.uses import uses
from agent.flags.values import Value

_DIALECTS = {"sglang": sglang, "vllm": vllm}
_OWNERS = {"sglang": "ServerArgs", "vllm": "EngineArgs"}


def flag_table(tree: Tree, kind: Kind) -> FlagTable:
    """Read a tree's flags and their uses. Raises NoFlags, also as soon as the tree turns out not to be complete."""
    dialect = _DIALECTS[kind]
    modules = Modules(tree, dialect.PACKAGE)
    recorder = Recorder(_OWNERS[kind])
    read = Interpreter(modules, {**_HOOKS, "add_argument": recorder.hook, **dialect.hooks()})
    try:
        with _collector_at_rest():
            return _read(read, recorder, kind)
    except RecursionError as error:
        raise NoFlags("it nests too deeply") from error


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Syntax trees of a million nodes, all in use, are not searched for garbage: that takes as long as the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(read: Interpreter, recorder: Recorder, kind: Kind) -> FlagTable:
    dialect = _DIALECTS[kind]
    version = _version(read, dialect.PACKAGE)
    dialect.read_flags(read, recorder)
    logic = _logic(read.modules, dialect.LOGIC)
    if not read.modules.complete:
        raise NoFlags("not all of its files are at hand")
    if not recorder.flags:
        raise NoFlags("no flag could be read from it")
    flags = tuple(recorder.flags.values())
    return FlagTable(
        kind=kind,
        version=version,
        flags=flags,
        uses=uses(read, Fields(flags, _OWNERS[kind]), logic),
        unnamed=tuple(recorder.unnamed),
    )


def _logic(modules: Modules, paths: Sequence[str]) -> list[Module]:
    """The modules that test flags: those in `paths` that are parsed, and what they import from there."""
    found: dict[str, Module] = {}
    waiting = [module for module in modules.parsed if module.path.startswith(tuple(paths))]
    while waiting:
        module = waiting.pop(0)
        if module.path not in found:
            found[module.path] = module
            waiting += _imported(modules, module, tuple(paths))
    return [found[path] for path in sorted(found)]


def _imported(modules: Modules, module: Module, paths: tuple[str, ...]) -> list[Module]:
    names = []
    for node in statements(module.tree.body):
        if isinstance(node, ast.ImportFrom):
            names.append(module.absolute(node))
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    inside = [name for name in dict.fromkeys(names) if modules.inner(name).startswith(paths)]
    return [other for name in inside if (other := modules.get(name))]


def _version(read: Interpreter, package: str) -> str:
    for name in ("_version", "version"):
        module = read.modules.get(f"{package}.{name}")
        for variable in ("__version__", "version"):
            if module and isinstance(found := read.names.of_module(module, variable), str):
                return found
    return ""


def _same_parser(_: Interpreter, args: Sequence[Value], __: Mapping[Any, Value], ___: Place) -> Value:
    return args[0]


def _unset(_: Interpreter, args: Sequence[Value], __: Mapping[Any, Value], ___: Place) -> Value:
    return args[1] if len(args) > 1 else None


_HOOKS: dict[str, Hook] = {
    "add_argument_group": _same_parser,
    "add_mutually_exclusive_group": _same_parser,
    # Flags are read as they are where no variable of the environment changes them.
    "os.getenv": _unset,
    "os.environ.get": _unset,
    # Nothing has been imported yet when the command line is parsed.
    "sys.modules.get": _unset,
}
