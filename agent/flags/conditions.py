"""Conditions of the source over flags: an expression becomes clauses, of which each must hold."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.flags.expressions import Scope
from agent.flags.interpret import Interpreter
from agent.flags.model import Clause, Flag, Op, Test
from agent.flags.modules import Module
from agent.flags.values import Member, text_of
from agent.syntax import Unparsable, parse_expression
from agent.text import one_line

SWITCHED_OFF = ("False", "None")
"""The values of a switch that nobody gave."""

_FALSY = ("False", "None", "0", "''")
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
}  # fmt: skip
_ORDERS: dict[type[ast.cmpop], tuple[Op, Op]] = {
    ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Gt: (">", "<="), ast.GtE: (">=", "<"),
}  # fmt: skip
_SAME = (ast.Eq, ast.Is)
_OTHER = (ast.NotEq, ast.IsNot)
_MOST_CLAUSES = 40
_LONGEST = 160
_VIEWS = ("args", "server_args", "cfg", "view", "self")


class Fields:
    """Which flag stands behind `self.tp_size`, `cfg.tp_size` or `parallel_config.tensor_parallel_size`."""

    def __init__(self, flags: Iterable[Flag], main: str) -> None:
        self.main = main
        self._flags: dict[tuple[str, str], Flag] = {}
        for flag in flags:
            spelt = [name.replace("-", "_") for name in flag.spellings]
            for at in ((flag.owner, flag.field), *((main, name) for name in spelt)):
                if at not in self._flags or self._flags[at].deprecated:
                    self._flags[at] = flag
        self._owners = {owner.lower(): owner for owner, _ in self._flags}

    def get(self, owner: str, name: str) -> Flag | None:
        """The flag of a class's field."""
        return self._flags.get((owner, name))

    def owner(self, node: ast.expr, inside: str) -> str | None:
        """The class whose fields `node` holds, as far as its name tells; `inside` is the class of `self`."""
        match node:
            case ast.Name(id="self"):
                return inside if inside.lower() in self._owners else None
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self.main if name in _VIEWS else self._owners.get(name.replace("_", "").lower())
            case ast.Call(func=ast.Name(id=name)) if name.endswith("_view"):
                return self.main
        return None


@dataclass(slots=True)
class Context:
    """Where a condition stands: its module, its class, and the local names that are given once."""

    read: Interpreter
    fields: Fields
    module: Module
    inside: str = ""
    once: Mapping[str, ast.expr] = field(default_factory=dict)

    def flag(self, node: ast.expr) -> Flag | None:
        """The flag whose value an expression is."""
        match node:
            case ast.Name(id=name) if name in self.once:
                return self.without(name).flag(self.once[name])
            case ast.Attribute(value=of, attr=attr):
                if isinstance(of, ast.Name) and of.id in self.once:
                    of = self.once[of.id]
                owner = self.fields.owner(of, self.inside)
                return self.fields.get(owner, attr) if owner else None
        return None

    def plain(self, node: ast.expr) -> ast.expr:
        """The field itself where a local name stands for it."""
        return self.once[node.id] if isinstance(node, ast.Name) and node.id in self.once else node

    def without(self, name: str) -> "Context":
        """The same, but for a name that is being looked up."""
        once = {key: node for key, node in self.once.items() if key != name}
        return Context(self.read, self.fields, self.module, self.inside, once)

    def constants(self, node: ast.expr) -> tuple[str, ...] | None:
        """Python's texts of a collection's items (references to flags included), None where one is not known."""
        if isinstance(node, ast.Name) and node.id in self.once:
            return self.without(node.id).constants(self.once[node.id])
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            texts = [self.constant(item) for item in node.elts]
        else:
            value = self.read.value(node, Scope(self.module, {}))
            if not isinstance(value, list | tuple | set | frozenset | dict):
                return None
            texts = [_text(item) for item in self.read.items(value)]
        return None if None in texts else tuple(text for text in texts if text is not None)

    def constant(self, node: ast.expr) -> str | None:
        """Python's text of a constant, `--name` for the value of a flag."""
        if flag := self.flag(node):
            return f"--{flag.name}"
        if isinstance(node, ast.Name) and node.id in self.once:
            return self.without(node.id).constant(self.once[node.id])
        value = self.read.value(node, Scope(self.module, {}))
        return _text(value)


def _text(value: object) -> str | None:
    if isinstance(value, Member):
        value = value.value
    plain = isinstance(value, str | int | float) or value is None
    return text_of(value) if plain else None


def clauses(test: ast.expr, context: Context, holds: bool = True) -> tuple[Clause, ...]:
    """The clauses that say together that a test holds, or that it does not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return clauses(operand, context, not holds)
        case ast.BoolOp(op=op, values=operands):
            parts = [clauses(operand, context, holds) for operand in operands]
            if isinstance(op, ast.And) is holds:
                return tuple(clause for part in parts for clause in part)
            return _either(parts) or ((opaque(test, context, holds),),)
        case ast.Name(id=name) if name in context.once and not context.flag(test):
            return clauses(context.once[name], context.without(name), holds)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return ((_compared(left, op, right, context, holds) or opaque(test, context, holds),),)
    if flag := context.flag(test):
        return ((_truth(flag, context.plain(test), holds),),)
    return ((opaque(test, context, holds),),)


def _either(parts: list[tuple[Clause, ...]]) -> tuple[Clause, ...]:
    """(A and B) or C, as (A or C) and (B or C). Empty where that would be too many."""
    made: list[Clause] = [()]
    for part in parts:
        made = [(*clause, *other) for clause in made for other in part]
        if len(made) > _MOST_CLAUSES:
            return ()
    return tuple(made)


def _truth(flag: Flag, node: ast.expr, holds: bool) -> Test:
    text = shown(node) if holds else f"not {shown(node)}"
    if flag.takes == "nothing":
        values = ("True",) if holds else SWITCHED_OFF
        return Test(flag=flag.name, op="in", values=values, text=text)
    return Test(flag=flag.name, op="not in" if holds else "in", values=_FALSY, text=text)


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, context: Context, holds: bool) -> Test | None:
    if not _flag_of(left, context)[0] and type(op) in _MIRRORED and _flag_of(right, context)[0]:
        left, op, right = right, _MIRRORED[type(op)](), left
    flag, lower = _flag_of(left, context)
    if not flag:
        return None
    if isinstance(op, ast.In | ast.NotIn):
        values, positive = context.constants(right), isinstance(op, ast.In)
    else:
        value = context.constant(right)
        values, positive = (None if value is None else (value,)), isinstance(op, _SAME)
    if values is None:
        return None
    if type(op) in _ORDERS:
        kind: Op = _ORDERS[type(op)][0 if holds else 1]
    elif isinstance(op, (ast.In, ast.NotIn, *_SAME, *_OTHER)):
        kind = "in" if positive is holds else "not in"
    else:
        return None
    return Test(flag=flag.name, op=kind, values=values, lower=lower, text=_worded(context.plain(left), op, kind, right))


def _flag_of(node: ast.expr, context: Context) -> tuple[Flag | None, bool]:
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="lower"), args=[]):
            return context.flag(of), True
    return context.flag(node), False


def _worded(left: ast.expr, op: ast.cmpop, kind: Op, right: ast.expr) -> str:
    words = ("in", "not in") if isinstance(op, ast.In | ast.NotIn) else ("==", "!=")
    sign = {"in": words[0], "not in": words[1]}.get(kind, kind)
    return f"{shown(left)} {sign} {shown(right)}"


def opaque(test: ast.expr, context: Context, holds: bool = True) -> Test:
    """A condition that is only quoted, with the flags that it speaks of."""
    about = {flag.name for node in ast.walk(test) if isinstance(node, ast.expr) and (flag := context.flag(node))}
    return Test(about=tuple(sorted(about)), text=shown(test) if holds else f"not ({shown(test)})")


class _Bare(ast.NodeTransformer):
    """`self.tp_size` as `tp_size`, `"auto"` as `auto` where it is a word."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        inner = node.value
        if isinstance(inner, ast.Name) and inner.id in _VIEWS:
            return ast.Name(id=node.attr)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id.endswith("_view"):
            return ast.Name(id=node.attr)
        self.generic_visit(node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value: object = node.value
        return ast.Name(id=value) if isinstance(value, str) and re.fullmatch(r"[\w.-]+", value) else node


def shown(node: ast.expr) -> str:
    """An expression in few words, for people."""
    try:
        # A copy, for the tree is read again; unparse and parse are the copy.
        text = ast.unparse(_Bare().visit(parse_expression(ast.unparse(node))))
    except (ValueError, Unparsable):  # a number of thousands of digits
        return "…"
    return one_line(text, _LONGEST)
