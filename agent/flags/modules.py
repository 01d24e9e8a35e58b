"""The modules of a tree: where a dotted name is, what its top level binds, each file parsed once."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agent.flags.tree import Tree
from agent.syntax import Unparsable, parse

_MUTATORS = ("append", "extend", "insert", "remove", "add", "update", "discard", "setdefault")


@dataclass(frozen=True, slots=True)
class Binding:
    """A statement at a module's top level (or a class's) that gives or changes a name; `sure` unless it may not run."""

    node: ast.stmt | ast.alias
    sure: bool = True
    origin: str = ""


@dataclass(slots=True, eq=False)
class Module:
    """One parsed file. `name` is dotted and begins with the package's."""

    name: str
    path: str
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """The dotted name that relative imports start from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]

    def absolute(self, node: ast.ImportFrom) -> str:
        """The dotted name of the module that an import names."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        base = parts[: len(parts) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])


class Modules:
    """The modules of one package, found through a tree."""

    def __init__(self, tree: Tree, package: str) -> None:
        self._tree = tree
        self._package = package
        self._known: dict[str, Module | None] = {}

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is at hand, or known to be missing."""
        return self._tree.complete

    @property
    def parsed(self) -> Sequence[Module]:
        """Every module that was asked for and is there."""
        return [module for module in self._known.values() if module]

    def has(self, name: str) -> bool:
        """Whether a dotted name is inside the package, there or not."""
        return name == self._package or name.startswith(self._package + ".")

    def inner(self, name: str) -> str:
        """Where a dotted name would be as a file, "" outside the package."""
        inner = name.removeprefix(self._package).strip(".").replace(".", "/")
        return f"{inner}.py" if self.has(name) and inner else ""

    def get(self, name: str) -> Module | None:
        """The module of a dotted name, or None where the tree has none that can be parsed."""
        if name not in self._known:
            self._known[name] = self._load(name) if self.has(name) else None
        return self._known[name]

    def _load(self, name: str) -> Module | None:
        file = self.inner(name)
        for path in (file, f"{file[:-3]}/__init__.py") if file else ("__init__.py",):
            text = self._tree.read(path)
            if text is None:
                continue
            try:
                tree = self._tree.parsed.get(path) or parse(text)
            except Unparsable:
                return None
            self._tree.parsed[path] = tree
            return Module(name, path, tree, bindings(tree.body))
        return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and those inside them, without their expressions: `ast.walk` takes far longer."""
    for node in body:
        yield node
        for inner in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, inner, ()))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from statements(part.body)


def bindings(body: Sequence[ast.stmt]) -> dict[str, list[Binding]]:
    """What the statements of a top level bind, by name, in order."""
    found: dict[str, list[Binding]] = {}
    for name, binding in _walk(body, sure=True):
        found.setdefault(name, []).append(binding)
    return found


def _walk(body: Sequence[ast.stmt], sure: bool) -> Iterator[tuple[str, Binding]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, Binding(node, sure)
            case ast.Import():
                for alias in node.names:
                    yield alias.asname or alias.name.partition(".")[0], Binding(alias, sure)
            case ast.ImportFrom():
                for alias in node.names:
                    yield alias.asname or alias.name, Binding(node, sure, alias.name)
            case ast.Assign():
                for target in node.targets:
                    for name in _names(target):
                        yield name, Binding(node, sure)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
                yield name, Binding(node, sure)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr in _MUTATORS:
                yield name, Binding(node, sure)
            case ast.If():
                yield from _branches(node, sure)
            case ast.Try():
                yield from _walk([*node.body, *node.orelse, *node.finalbody], sure)
            case ast.With():
                yield from _walk(node.body, sure)


def _branches(node: ast.If, sure: bool) -> Iterator[tuple[str, Binding]]:
    if last_name(node.test) == "TYPE_CHECKING":
        # What only a type checker sees is a last resort: the same name from elsewhere wins.
        yield from _walk(node.body, sure=False)
        yield from _walk(node.orelse, sure)
    else:
        yield from _walk([*node.body, *node.orelse], sure=False)


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=ast.Name(id=name)):
            yield name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _names(element)


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`, of `c` and of a call of either; "" for anything else."""
    match node:
        case ast.Call(func=func):
            return last_name(func)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
