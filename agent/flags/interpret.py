"""Reads expressions and statements for what they are worth, without running anything of them.

What cannot be told is UNKNOWN, and spreads. A test that cannot be told has both its branches read, and what they
change is in doubt.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent.flags import builtin
from agent.flags.expressions import Expressions, Scope
from agent.flags.model import Place
from agent.flags.modules import Module, Modules
from agent.flags.values import (
    UNKNOWN,
    ClassValue,
    External,
    FunctionValue,
    Made,
    Method,
    Super,
    Value,
    truth,
)

Hook = Callable[["Interpreter", Sequence[Value], Mapping[Any, Value], Place], Value]
"""What a call of a function that we know means. The arguments begin with what a method is bound to."""

_DEPTH = 40


class _End(Exception):
    """The rest of a function is not reached."""


class _Next(_End):
    """The rest of this turn of a loop is not reached."""


class _Break(_End):
    """The rest of a loop is not reached."""


class Interpreter(Expressions):
    """An abstract reading of one tree. `hooks` are the functions that it takes our word for, by name."""

    def __init__(self, modules: Modules, hooks: Mapping[str, Hook]) -> None:
        super().__init__(modules)
        self._hooks = hooks
        self._depth = 0
        self.doubt = 0
        self.fields: dict[ast.ClassDef, tuple[Any, ...]] = {}

    def replay(self, module: Module, node: ast.stmt, scope: dict[str, Value], doubtful: bool) -> None:
        """Carry out a statement of a module's top level."""
        doubt, self.doubt = self.doubt, int(doubtful)
        try:
            self._statement(node, Scope(module, scope))
        except _End:
            pass
        finally:
            self.doubt = doubt

    def called(self, node: ast.Call, scope: Scope) -> Value:
        """What a call is worth."""
        called = self.value(node.func, scope)
        args: list[Value] = []
        for arg in node.args:
            args += (
                self.items(self.value(arg.value, scope)) if isinstance(arg, ast.Starred) else [self.value(arg, scope)]
            )
        kwargs: dict[Any, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            else:
                kwargs |= value if isinstance(value, dict) else {UNKNOWN: UNKNOWN}
        if isinstance(called, External) and called.name == "super" and scope.owner:
            return Super(scope.owner, scope.first)
        return self.call(called, args, kwargs, Place(scope.module.path, node.lineno))

    def call(self, called: Value, args: Sequence[Value], kwargs: Mapping[Any, Value], place: Place) -> Value:
        """What a call gives."""
        for name in _called_names(called):
            if name in self._hooks:
                bound = {Method: "of", FunctionValue: "first"}.get(type(called), "")
                first = getattr(called, bound, None)
                return self._hooks[name](self, [*([] if first is None else [first]), *args], kwargs, place)
        match called:
            case FunctionValue():
                return self._run(called, args, kwargs)
            case Method(of=of, name=name):
                return builtin.call_method(of, name, args, dict(kwargs), self.doubt > 0)
            case ClassValue():
                return Made(called, tuple(args), kwargs)
            case External(name=name):
                values = [self._as_collection(arg) for arg in args]
                known = builtin.call_function(name, values, dict(kwargs))
                return Made(called, tuple(args), kwargs) if known is UNKNOWN and "." in name else known
        return UNKNOWN

    def _as_collection(self, value: Value) -> Value:
        return self.items(value) if isinstance(value, ClassValue) and self.names.is_enum(value) else value

    def _run(self, function: FunctionValue, args: Sequence[Value], kwargs: Mapping[Any, Value]) -> Value:
        scope = Scope(function.module, dict(function.scope), function.owner)
        bound = [function.first] if function.first is not None else []
        scope.first = bound[0] if bound else UNKNOWN
        if self._depth > _DEPTH:
            return UNKNOWN
        self._bind_parameters(function, [*bound, *args], kwargs, scope)
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        self._depth += 1
        try:
            self.block(function.node.body, scope)
        except _End:
            pass
        finally:
            self._depth -= 1
        values = scope.returned or [None]
        return values[0] if all(value is values[0] for value in values) else UNKNOWN

    def _bind_parameters(
        self, function: FunctionValue, args: Sequence[Value], kwargs: Mapping[Any, Value], scope: Scope
    ) -> None:
        spec = function.node.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        outside = Scope(function.module, {})
        for name, default in zip(reversed(names), reversed(spec.defaults), strict=False):
            scope.names[name] = self.value(default, outside)
        for arg, only in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            scope.names[arg.arg] = self.value(only, outside) if only else UNKNOWN
        scope.names |= {name: UNKNOWN for name in names if name not in scope.names}
        scope.names |= dict(zip(names, args, strict=False))
        scope.names |= {name: value for name, value in kwargs.items() if isinstance(name, str)}

    # Statements

    def block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Carry statements out in order."""
        for node in body:
            self._statement(node, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        self.step()
        match node:
            case ast.Expr(value=value):
                self.value(value, scope)
            case ast.Assign(targets=targets, value=value):
                worth = self.value(value, scope)
                for target in targets:
                    self.assign(target, worth, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                before = self.value(ast.Name(id=name), scope)
                self.assign(node.target, builtin.binary(op, before, self.value(value, scope)), scope)
            case ast.If(test=test, body=body, orelse=orelse):
                self._branch(truth(self.value(test, scope)), body, orelse, scope)
            case ast.For(target=target, iter=iterated, body=body):
                self._loop(target, self.items(self.value(iterated, scope)), body, scope)
            case ast.With(body=body):
                self.block(body, scope)
            case ast.Try(body=body, orelse=orelse, finalbody=final):
                self.block([*body, *orelse, *final], scope)
            case ast.Return(value=value):
                scope.returned.append(self.value(value, scope))
                if not self.doubt:
                    raise _End
            case ast.Raise() | ast.Break() | ast.Continue():
                if not self.doubt:
                    raise {ast.Break: _Break, ast.Continue: _Next}.get(type(node), _End)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Subscript) and isinstance(of := self.value(target.value, scope), dict):
                        of.pop(self.value(target.slice, scope), None)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.names[node.name] = FunctionValue(node, scope.module, scope=scope.names)
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    scope.names[alias.asname or alias.name] = self.names.from_import(scope.module, node, alias.name)
            case ast.Import(names=aliases):
                for alias in aliases:
                    name = alias.asname or alias.name.partition(".")[0]
                    scope.names[name] = self.names.imported(alias.name if alias.asname else name)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Give a target a value; in doubt it is then not known."""
        match target:
            case ast.Name(id=name):
                same = name in scope.names and scope.names[name] is value
                scope.names[name] = value if not self.doubt or same or name not in scope.names else UNKNOWN
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                parts = self.items(value)
                fits = len(parts) == len(elements)
                for index, element in enumerate(elements):
                    self.assign(element, parts[index] if fits else UNKNOWN, scope)
            case ast.Subscript(value=of, slice=key):
                changed = self.value(of, scope)
                if isinstance(changed, dict):
                    builtin.attempt(changed.__setitem__, self.value(key, scope), UNKNOWN if self.doubt else value)

    def _branch(self, known: bool | None, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], scope: Scope) -> None:
        if known is not None:
            self.block(body if known else orelse, scope)
            return
        self.doubt += 1
        try:
            self.block(body, scope)
            self.block(orelse, scope)
        finally:
            self.doubt -= 1

    def _loop(self, target: ast.expr, items: Sequence[Value], body: Sequence[ast.stmt], scope: Scope) -> None:
        unsure = any(item is UNKNOWN for item in items)
        self.doubt += unsure
        try:
            for item in items:
                self.assign(target, item, scope)
                with suppress(_Next):
                    self.block(body, scope)
        except _Break:
            pass
        finally:
            self.doubt -= unsure


def _called_names(called: Value) -> tuple[str, ...]:
    """The names by which a hook may know what is called, the fullest first."""
    match called:
        case FunctionValue(owner=ClassValue() as owner):
            return f"{owner.name}.{called.name}", called.name
        case FunctionValue() | Method():
            return (called.name,)
        case External():
            return called.name, called.last
    return ()
