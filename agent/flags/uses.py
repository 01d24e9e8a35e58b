"""The blocks of a source that test flags: under which conditions it asserts, refuses, sets or warns."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agent.flags.conditions import Context, Fields, clauses, opaque, shown
from agent.flags.interpret import Interpreter
from agent.flags.model import Clause, Place, Test, Use
from agent.flags.modules import Module, last_name, statements
from agent.text import one_line

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_LOGGERS = ("warning", "warning_once", "error", "warn")
_DECLARES = ("declare_resolution", "override", "replace")


_ENTRIES = (
    "__post_init__", "check_server_args", "run_resolution_pipeline", "resolve_once", "create_engine_config",
    "prepare_server_args", "add_cli_args",
)  # fmt: skip
"""The functions by which a server itself begins to look at its flags."""

_VALIDATORS = ("model_validator", "field_validator")


@dataclass(slots=True)
class _Sites:
    """Where each function is called from: the function around the call, and the conditions there."""

    entries: frozenset[str]
    listed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, tuple[Clause, ...]]]] = field(default_factory=dict)

    def reached(self, name: str, seen: frozenset[str] = frozenset()) -> tuple[Clause, ...]:
        """The conditions under which a function runs."""
        if name in self.entries:
            return ()
        sites = [site for site in self.calls.get(name, ()) if site[0] not in seen | {name}]
        ways = [(*self.reached(caller, seen | {name}), *when) for caller, when in sites]
        if () in ways:
            return ()
        return ways[0] if len(ways) == 1 else ((Test(text=f"{name} is called"),),)


def _entries(functions: Sequence[Function]) -> frozenset[str]:
    """The functions that run in any case. Where none of the known ones is there, it is a part: all count."""
    names = {node.name for node in functions}
    known = names.intersection(_ENTRIES)
    checked = {
        node.name for node in functions if any(last_name(decorator) in _VALIDATORS for decorator in node.decorator_list)
    }
    return frozenset((known | checked) if known else names)


def _listed(modules: Sequence[Module], known: set[str]) -> dict[str, tuple[str, ...]]:
    """The functions of each list of functions at the top of a module: `PIPELINE = [first, second]`."""
    found: dict[str, tuple[str, ...]] = {}
    for module in modules:
        for node in module.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=items) | ast.Tuple(elts=items)):
                    called = tuple(last_name(item) for item in items)
                    if called and known.issuperset(called):
                        found[name] = called
    return found


def uses(read: Interpreter, fields: Fields, modules: Sequence[Module]) -> tuple[Use, ...]:
    """Every use of a flag in some modules, in their order."""
    found: list[tuple[str, Use]] = []
    functions = [node for module in modules for node in statements(module.tree.body) if isinstance(node, Function)]
    names = {node.name for node in functions}
    sites = _Sites(_entries(functions), _listed(modules, names))
    for module in modules:
        for inside, function in _functions(module.tree.body, ""):
            context = Context(read, fields, module, inside, _given_once(function))
            walk = _Walk(context, function, names, sites)
            found += [(function.name, use) for use in walk.block(function.body, _At(walk.place(function)))]
    found = [(name, use) for name, use in found if use.tested or use.flag]
    return tuple(replace(use, reached=(*sites.reached(name), *use.reached)) for name, use in found)


def _functions(body: Sequence[ast.stmt], inside: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function):
            yield inside, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, node.name)
        elif isinstance(node, ast.If):
            yield from _functions([*node.body, *node.orelse], inside)


def _given_once(function: Function) -> dict[str, ast.expr]:
    """The local names that a function gives exactly once, by an assignment of an expression."""
    stored: Counter[str] = Counter()
    given: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] += 1
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given[node.targets[0].id] = node.value
    return {name: value for name, value in given.items() if stored[name] == 1}


@dataclass(frozen=True, slots=True)
class _At:
    """A point of a function: its block, the conditions written around it, and those that led there."""

    block: Place
    when: tuple[Clause, ...] = ()
    led: tuple[Clause, ...] = ()

    def where(self, more: tuple[Clause, ...]) -> "_At":
        return replace(self, when=(*self.when, *more))

    def led_by(self, more: tuple[Clause, ...]) -> "_At":
        return replace(self, led=(*self.led, *more))


@dataclass(slots=True)
class _Walk:
    context: Context
    function: Function
    known: set[str]
    sites: _Sites

    def place(self, node: ast.stmt | ast.expr) -> Place:
        return Place(self.context.module.path, node.lineno)

    def block(self, body: Sequence[ast.stmt], at: _At) -> Iterator[Use]:
        for node in body:
            if isinstance(node, ast.If):
                self._note_calls(node.test, at)
                yield from self._branches(node, at)
                if isinstance(node.body[-1], _LEAVES) and not node.orelse:
                    at = at.led_by(clauses(node.test, self.context, holds=False))
            elif isinstance(node, ast.For | ast.While | ast.AsyncFor):
                test = node.test if isinstance(node, ast.While) else node.iter
                for name in self.sites.listed.get(last_name(test), ()):
                    self._note(name, at)
                yield from self.block(node.body, at.where(((opaque(test, self.context),),)))
            elif isinstance(node, ast.With):
                yield from self.block(node.body, at)
            elif isinstance(node, ast.Try):
                yield from self._tried(node, at)
            elif not isinstance(node, Function | ast.ClassDef):
                self._note_calls(node, at)
                yield from self._effects(node, at)

    def _branches(self, node: ast.If, at: _At) -> Iterator[Use]:
        here = replace(at, block=self.place(node))
        yield from self.block(node.body, here.where(clauses(node.test, self.context)))
        # Where the branch before raises, its opposite says nothing that matters: there is no server then.
        raises = isinstance(node.body[-1], ast.Raise)
        opposite = () if raises or not node.orelse else clauses(node.test, self.context, holds=False)
        is_elif = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
        yield from self.block(node.orelse, here.led_by(opposite) if is_elif else here.where(opposite))

    def _tried(self, node: ast.Try, at: _At) -> Iterator[Use]:
        yield from self.block([*node.body, *node.orelse, *node.finalbody], at)
        for handler in node.handlers:
            caught = shown(handler.type) if handler.type else "any exception"
            yield from self.block(handler.body, at.where(((Test(text=f"after {caught}"),),)))

    def _note_calls(self, node: ast.AST, at: _At) -> None:
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                for part in (call.func, *call.args):
                    name = "" if isinstance(part, ast.Call) else last_name(part)
                    if name in self.known:
                        self._note(name, at)

    def _note(self, name: str, at: _At) -> None:
        self.sites.calls.setdefault(name, []).append((self.function.name, (*at.led, *at.when)))

    def _effects(self, node: ast.stmt, at: _At) -> Iterator[Use]:
        use = partial(Use, when=at.when, reached=at.led, place=self.place(node), block=at.block)
        match node:
            case ast.Assert(test=test, msg=message):
                for clause in clauses(test, self.context):
                    text = " or ".join(part.text for part in clause)
                    yield use(effect="asserts", clause=clause, text=text, says=said(message))
            case ast.Raise(exc=ast.Call(func=kind, args=args)):
                yield use(effect="refuses", text=shown(kind), says=said(args[0] if args else None))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if made := self._set(target, value):
                        yield use(effect="sets", **made)
            case ast.Return(value=ast.Dict(keys=keys, values=values)):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and (made := self._declared(str(key.value), value)):
                        yield use(effect="sets", **made)
            case ast.Expr(value=ast.Call() as call):
                for made in self._called(call):
                    yield use(**{"effect": "sets", **made})

    def _set(self, target: ast.expr, value: ast.expr) -> dict[str, Any] | None:
        if isinstance(target, ast.Attribute) and (flag := self.context.flag(target)):
            return self._becomes(flag.name, shown(target), value)
        match target:
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=name)):
                return {"text": f"{name!s}={shown(value)}"}
        return None

    def _becomes(self, flag: str, name: str, value: ast.expr) -> dict[str, Any]:
        return {"flag": flag, "value": self.context.constant(value), "text": f"{name} = {shown(value)}"}

    def _declared(self, name: str, value: ast.expr) -> dict[str, Any] | None:
        flag = self.context.fields.get(self.context.fields.main, name)
        return self._becomes(flag.name, name, value) if flag else None

    def _called(self, call: ast.Call) -> Iterator[dict[str, Any]]:
        name = last_name(call)
        if name in _DECLARES:
            for keyword in call.keywords:
                if keyword.arg and (made := self._declared(keyword.arg, keyword.value)):
                    yield made
        elif name in _LOGGERS and call.args:
            yield {"effect": "warns", "says": said(call.args[0])}
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=variable), attr="set"), args=[value]):
                yield {"text": f"{variable}={shown(value)}"}


def said(message: ast.expr | None) -> str:
    """The words of a message, with … for what is filled in."""
    match message:
        case ast.Constant(value=str() as text):
            return one_line(text, 400)
        case ast.JoinedStr(values=parts):
            texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
            return one_line("".join(map(str, texts)), 400)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{said(left)}{said(right)}"
    return ""
