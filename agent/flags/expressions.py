"""Expressions of a source, read for what they are worth without running anything of them."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from agent.flags import builtin
from agent.flags.model import NoFlags
from agent.flags.modules import Module, Modules
from agent.flags.names import Names
from agent.flags.values import (
    UNKNOWN,
    ClassValue,
    External,
    FunctionValue,
    Generic,
    Made,
    Value,
    is_known,
    truth,
)

_STEPS = 500_000


class Scope:
    """The names of one function, and where it stands."""

    def __init__(self, module: Module, names: dict[str, Value], owner: ClassValue | None = None) -> None:
        self.module = module
        self.names = names
        self.owner = owner
        self.first: Value = UNKNOWN
        self.returned: list[Value] = []


class Expressions(ABC):
    """What an expression is worth. Calls and statements are the matter of who makes a whole of it."""

    def __init__(self, modules: Modules) -> None:
        self.names = Names(modules, self.replay)
        self.modules = modules
        self._steps = 0

    @abstractmethod
    def replay(self, module: Module, node: ast.stmt, scope: dict[str, Value], doubtful: bool) -> None:
        """Carry out a statement of a module's top level."""

    @abstractmethod
    def called(self, node: ast.Call, scope: Scope) -> Value:
        """What a call is worth."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Give a target a value."""

    def step(self) -> None:
        """Count a step. Raises NoFlags where there have been too many."""
        self._steps += 1
        if self._steps > _STEPS:
            raise NoFlags("reading its flags does not come to an end")

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """What an expression is worth."""
        self.step()
        match node:
            case None:
                return None
            case ast.Constant(value=value):
                # Python itself refuses to write longer numbers out.
                return UNKNOWN if isinstance(value, int) and value.bit_length() > 256 else value
            case ast.Name(id=name):
                return scope.names[name] if name in scope.names else self.names.of_module(scope.module, name)
            case ast.Attribute(value=of, attr=attr):
                return self.names.attribute(self.value(of, scope), attr)
            case ast.Call():
                return self.called(node, scope)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return self._collection(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.value(left, scope), self.value(right, scope))
            case ast.BoolOp() | ast.UnaryOp() | ast.Compare() | ast.IfExp():
                return self._logic(node, scope)
            case ast.Subscript(value=of, slice=key):
                return self._item(self.value(of, scope), key, scope)
            case ast.JoinedStr(values=parts):
                return self._joined(parts, scope)
            case ast.FormattedValue(value=inner):
                return self.value(inner, scope)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.Lambda():
                return FunctionValue(node, scope.module, scope=scope.names)
        return UNKNOWN

    def _collection(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict, scope: Scope) -> Value:
        if isinstance(node, ast.Dict):
            return self._dict(node, scope)
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items += self.items(self.value(element.value, scope))
            else:
                items.append(self.value(element, scope))
        if isinstance(node, ast.List):
            return items
        return builtin.attempt(set if isinstance(node, ast.Set) else tuple, items)

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        made: dict[Value, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is not None:
                builtin.attempt(made.__setitem__, self.value(key, scope), value)
            elif isinstance(value, dict):
                made.update(value)
            else:
                made[UNKNOWN] = UNKNOWN
        return made

    def items(self, value: Value) -> list[Value]:
        """The elements of a collection; one UNKNOWN where they are not known."""
        if isinstance(value, list | tuple | dict):
            return list(value)
        if isinstance(value, set | frozenset):
            return sorted(value, key=repr)
        if isinstance(value, ClassValue) and self.names.is_enum(value):
            return list(self.names.members(value))
        return [UNKNOWN]

    def _logic(self, node: ast.BoolOp | ast.UnaryOp | ast.Compare | ast.IfExp, scope: Scope) -> Value:
        match node:
            case ast.BoolOp(op=op, values=operands):
                value: Value = UNKNOWN
                unsure = False
                for operand in operands:
                    value = self.value(operand, scope)
                    known = truth(value)
                    unsure = unsure or known is None
                    if known is isinstance(op, ast.Or):
                        return UNKNOWN if unsure and isinstance(op, ast.Or) and value is not True else value
                return UNKNOWN if unsure else value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = truth(self.value(operand, scope))
                return UNKNOWN if known is None else not known
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.value(operand, scope)
                return -number if isinstance(number, int | float) else UNKNOWN
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return builtin.compare(op, self.value(left, scope), self.value(right, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = truth(self.value(test, scope))
                return UNKNOWN if known is None else self.value(body if known else orelse, scope)
        return UNKNOWN

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        kinds = ClassValue | External | Generic
        if isinstance(op, ast.BitOr) and (isinstance(left, kinds) or isinstance(right, kinds)):
            return Generic(External("typing.Union"), (left, right))
        return builtin.binary(op, left, right)

    def _item(self, of: Value, key: ast.expr, scope: Scope) -> Value:
        if isinstance(key, ast.Slice):
            parts = [self.value(part, scope) for part in (key.lower, key.upper, key.step)]
            whole = isinstance(of, list | tuple | str) and all(map(is_known, parts))
            return builtin.attempt(lambda: of[slice(*parts)]) if whole else UNKNOWN
        index = self.value(key, scope)
        if isinstance(of, External) or (isinstance(of, ClassValue) and not self.names.is_enum(of)):
            return Generic(of, index if isinstance(index, tuple) else (index,))
        if isinstance(of, ClassValue) and self.names.is_enum(of) and isinstance(index, str):
            return self.names.attribute(of, index)
        if isinstance(of, dict | list | tuple) and is_known(index):
            return builtin.attempt(lambda: of[index])
        return UNKNOWN

    def _joined(self, parts: Sequence[ast.expr], scope: Scope) -> Value:
        texts = []
        for part in parts:
            value = self.value(part, scope)
            texts.append(value if isinstance(value, str) else str(value) if isinstance(value, int | float) else "…")
        # A text with a gap is good enough for a help, and is never taken for a value.
        return "".join(texts) if "…" not in texts else Made(External("str"), ("".join(texts),))

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, scope: Scope) -> Value:
        inner = Scope(scope.module, dict(scope.names), scope.owner)
        made: list[Value] = []
        for _ in self._bind_each(node.generators, inner):
            if isinstance(node, ast.DictComp):
                made.append((self.value(node.key, inner), self.value(node.value, inner)))
            else:
                made.append(self.value(node.elt, inner))
        kind = {ast.SetComp: set, ast.DictComp: dict}.get(type(node), list)
        return builtin.attempt(kind, made)

    def _bind_each(self, generators: Sequence[ast.comprehension], scope: Scope) -> Iterator[None]:
        if not generators:
            yield None
            return
        first, *rest = generators
        for item in self.items(self.value(first.iter, scope)):
            self.assign(first.target, item, scope)
            kept = [truth(self.value(test, scope)) for test in first.ifs]
            if False not in kept:
                if None in kept:
                    self.assign(first.target, UNKNOWN, scope)
                yield from self._bind_each(rest, scope)
