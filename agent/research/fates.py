"""What a function of somebody's source does under known facts: whether it raises, gives up, or goes on. Pure.

The function is walked, never run. Of its expressions only those that the facts speak of have a value, and what
follows from them; a branch on anything else is walked both ways.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Known:
    """What the facts say of an expression: its value, True, False or None."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Raises:
    """The facts say that an expression raises an exception of this name."""

    exception: str


Facts = Callable[[ast.expr], Known | Raises | None]
"""What is known of an expression; None where the facts do not speak of it."""


How = Literal["raises", "gives-up", "goes-on"]


@dataclass(frozen=True, slots=True)
class Fate:
    """One way in which the facts decide: at `line` an exception leaves the function, it returns nothing of use, or
    it goes another way. `because` is the line of the expression that decided. `sure` is False under a condition that
    nobody knows.
    """

    how: How
    line: int
    because: int
    sure: bool
    exception: str = ""


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, name: str | None = None) -> Iterator[Function]:
    """The functions of a tree, those in classes and in other functions too; with `name` those of that name."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and name in (None, node.name):
            yield node


def fates(function: Function, facts: Facts) -> tuple[Fate, ...]:
    """What the facts decide in a function, in the order of its lines; nothing where they decide nothing."""
    walk = _Walk(facts)
    try:
        walk.block(function.body)
    except _Ended:
        pass
    except _Thrown as thrown:
        walk.add("raises", thrown.line, thrown.line, thrown.exception)
    return tuple(sorted(walk.fates, key=lambda fate: fate.line))


class _Ended(Exception):
    """The path ends here: it returned, or left a loop."""


class _Thrown(Exception):
    """An exception that the facts lead to."""

    def __init__(self, exception: str, line: int) -> None:
        super().__init__(exception)
        self.exception = exception
        self.line = line


@dataclass(slots=True)
class _Walk:
    facts: Facts
    fates: set[Fate] = field(default_factory=set)
    names: dict[str, Known] = field(default_factory=dict)
    because: int = 0
    """The line that decided that we are here, 0 while nothing did."""
    depth: int = 0
    """How many branches around us nobody could decide."""

    def add(self, how: How, line: int, because: int, exception: str = "") -> None:
        self.fates.add(Fate(how, line, because, self.depth == 0, exception))

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If():
                self.branch(node)
            case ast.Return():
                self.returns(node)
            case ast.Raise():
                if self.because:
                    raise _Thrown(_exception_name(node.exc), node.lineno)
                raise _Ended
            case ast.Break() | ast.Continue():
                raise _Ended
            case ast.Try() | ast.TryStar():
                self.attempt(node)
            case ast.For() | ast.AsyncFor() | ast.While():
                self.value(node.test if isinstance(node, ast.While) else node.iter)
                self.either(node.body, node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.value(item.context_expr)
                self.block(node.body)
            case ast.Match():
                self.value(node.subject)
                self.either(*(case.body for case in node.cases), [])
            case ast.Assert():
                known = self.value(node.test)
                if known and not known.value:
                    raise _Thrown("AssertionError", node.lineno)
            case ast.Assign() | ast.AnnAssign():
                self.assign(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass  # they run later, if ever
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        if node.value is None:
            return
        known = self.value(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.keep(target, known)

    def keep(self, target: ast.expr, known: Known | None) -> None:
        if not isinstance(target, ast.Name | ast.Attribute):
            self.value(target)
        elif known is None:
            self.names.pop(ast.unparse(target), None)
        else:
            self.names[ast.unparse(target)] = known

    def branch(self, node: ast.If) -> None:
        known = self.value(node.test)
        if known is None:
            self.either(node.body, node.orelse)
            return
        before, self.because = self.because, self.because or node.test.lineno
        try:
            self.block(node.body if known.value else node.orelse)
        finally:
            self.because = before
        self.add("goes-on", node.lineno, node.test.lineno)

    def either(self, *blocks: Sequence[ast.stmt]) -> None:
        """Nobody knows which of the blocks runs. What is known afterwards is what is known after each that ends."""
        before = self.names
        after: list[dict[str, Known]] = []
        self.depth += 1
        for statements in blocks:
            self.names = dict(before)
            try:
                self.block(statements)
                after.append(self.names)
            except _Ended:
                pass
            except _Thrown as thrown:
                self.add("raises", thrown.line, thrown.line, thrown.exception)
        self.depth -= 1
        if not after:
            raise _Ended
        self.names = {name: known for name, known in after[0].items() if all(o.get(name) == known for o in after)}

    def attempt(self, node: ast.Try | ast.TryStar) -> None:
        before, names = self.because, dict(self.names)
        try:
            self.block([*node.body, *node.orelse])
        except _Thrown as thrown:
            handler = next((h for h in node.handlers if _catches(h, thrown.exception)), None)
            if handler is None:
                raise
            self.names, self.because = names, thrown.line
            self.block(handler.body)
            self.add("goes-on", handler.lineno, thrown.line)
        finally:
            self.because = before
        self.block(node.finalbody)

    def returns(self, node: ast.Return) -> None:
        known = self.value(node.value) if node.value else None
        useless = not known.value if known else node.value is None
        if known or self.because:
            self.add("gives-up" if useless else "goes-on", node.lineno, self.because or node.lineno)
        raise _Ended

    def value(self, node: ast.expr) -> Known | None:
        """What the facts make of an expression. Raises _Thrown where they say that it raises."""
        said = self.facts(node)
        if isinstance(said, Raises):
            raise _Thrown(said.exception, node.lineno)
        if said is not None:
            return said
        match node:
            case ast.Constant() if self.because:
                return _plain(node)
            case ast.Name() | ast.Attribute():
                return self.names.get(ast.unparse(node)) or self.unsaid(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self.value(operand)
                return known and Known(not known.value)
            case ast.BoolOp():
                return self.combined(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.value(test)
                if known is None:
                    return self.unsaid(node)
                return _plain(chosen := body if known.value else orelse) or self.value(chosen)
            case ast.NamedExpr(target=target, value=value):
                known = self.value(value)
                self.keep(target, known)
                return known
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                known = self.value(left)
                return known and Known((known.value is None) is isinstance(op, ast.Is))
            case ast.Lambda():
                return None
        return self.unsaid(node)

    def unsaid(self, node: ast.expr) -> Known | None:
        """An expression of which nothing is known: its parts may raise nevertheless."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, ast.keyword):
                self.value(child.value)
        return None

    def combined(self, node: ast.BoolOp) -> Known | None:
        """`and` and `or`: the first that decides ends it, as it does in Python."""
        ends_with = isinstance(node.op, ast.Or)
        unknown = False
        last: Known | None = None
        for operand in node.values:
            if unknown:
                # Whether it is asked at all nobody knows: that it would raise is no fact.
                try:
                    last = self.value(operand)
                except _Thrown:
                    last = None
            else:
                last = self.value(operand)
            if last is None:
                unknown = True
            elif bool(last.value) is ends_with:
                return last
        return None if unknown else last


def _plain(node: ast.expr) -> Known | None:
    match node:
        case ast.Constant(value=None | True | False as value):
            return Known(value)
    return None


def _exception_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return ast.unparse(node).rpartition(".")[2] if node is not None else ""


def _catches(handler: ast.ExceptHandler, exception: str) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"BaseException" if kind is None else ast.unparse(kind).rpartition(".")[2] for kind in kinds}
    bases = {"LookupError"} if exception == "KeyError" else set()
    return bool(names & {exception, "Exception", "BaseException"} | names & bases)
