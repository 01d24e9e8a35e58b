"""Which flags a block of the server's source demands beside those of an experiment. Pure: text in, demands out.

It knows the direct form only: a function of `ServerArgs` that says `if self.X == "v":` and in that block asserts
`self.Y in [...]` or `self.Y == ...`. A condition around the `if` could make it not apply, so such are left alone.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.playbook.model import Args
from agent.research.literals import Unparsable, parse

_OWNERS = ("self", "args", "server_args")
# A choice becomes an element of an argv: nothing but what a flag's value looks like.
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:/@-]{0,99}")


@dataclass(frozen=True, slots=True)
class Demand:
    """The flag that the source demands, its allowed values in the source's order, and the line of the assertion."""

    flag: str
    choices: tuple[str | bool, ...]
    line: int


def demands(source: str, first: int, last: int, args: Args) -> tuple[Demand, ...]:
    """What the `if` blocks that touch the lines `first` to `last` demand and `args` do not have."""
    try:
        tree = parse(source)
    except Unparsable:
        return ()
    flags = _Flags(tree, args)
    found: dict[str, Demand] = {}
    for block in _direct_ifs(tree):
        if block.lineno > last or (block.end_lineno or block.lineno) < first:
            continue
        condition = _comparison(block.test)
        if condition and flags.value(condition[0]) == condition[1]:
            for demand in _unmet(block.body, flags):
                found.setdefault(demand.flag, demand)
    return tuple(found.values())


class _Flags:
    """The experiment's flags by the source's field names, with the source's own aliases and defaults."""

    def __init__(self, tree: ast.Module, args: Args) -> None:
        self._aliases: dict[str, set[str]] = {}
        self._defaults: dict[str, ast.Constant] = {}
        self._args: Mapping[str, object] = {_field(flag): value for flag, value in args.items()}
        self._written = {_field(flag): flag for flag in args}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                names = {_field(text) for text in map(_text, node.args) if text and text.startswith("--")}
                for name in names:
                    self._aliases.setdefault(name, set()).update(names)
            elif isinstance(node, ast.ClassDef):
                self._defaults.update(_defaults(node))

    def _given(self, field: str) -> str | None:
        names = self._aliases.get(field, set()) | {field}
        return next((name for name in self._args if name in names), None)

    def name(self, field: str) -> str:
        """The flag as the experiment writes it, or as the field is called."""
        given = self._given(field)
        return self._written[given] if given else field.replace("_", "-")

    def value(self, field: str) -> str | None:
        """The value that the experiment gives, as text; None where it gives none."""
        value = self._args.get(self._given(field) or "")
        return _as_text(value)

    def allowed(self, field: str, choices: Sequence[object]) -> bool:
        """Whether the experiment's value, or the source's default where it gives none, is among the choices."""
        texts = [_as_text(choice) for choice in choices]
        value = self.value(field)
        if value is None and field in self._defaults:
            value = _as_text(self._defaults[field].value)
        return value in texts


def _defaults(node: ast.ClassDef) -> Iterator[tuple[str, ast.Constant]]:
    for item in node.body:
        match item:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant() as value):
                yield name, value


def _unmet(body: Sequence[ast.stmt], flags: _Flags) -> Iterator[Demand]:
    assigned: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Assert):
            field, choices = _asserted(statement.test) or ("", ())
            # What the server has set itself just before, it need not be given.
            if field and field not in assigned and not flags.allowed(field, choices):
                usable = tuple(choice for choice in map(_choice, choices) if choice is not None)
                if usable:
                    yield Demand(flags.name(field), usable, statement.lineno)
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                assigned.add(node.attr)


def _direct_ifs(tree: ast.Module) -> Iterator[ast.If]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                while isinstance(statement, ast.If):
                    yield statement
                    # An elif applies where the tests before it fail: known only if they are about the same field.
                    follows = statement.orelse[0] if len(statement.orelse) == 1 else None
                    if not isinstance(follows, ast.If) or not _same_field(statement.test, follows.test):
                        break
                    statement = follows


def _same_field(one: ast.expr, other: ast.expr) -> bool:
    left, right = _comparison(one), _comparison(other)
    return left is not None and right is not None and left[0] == right[0]


def _comparison(test: ast.expr) -> tuple[str, str] | None:
    asserted = _asserted(test)
    if asserted is None or len(asserted[1]) != 1 or not isinstance(test, ast.Compare):
        return None
    value = asserted[1][0]
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    return (asserted[0], str(value)) if is_plain and isinstance(test.ops[0], ast.Eq) else None


def _asserted(test: ast.expr) -> tuple[str, tuple[object, ...]] | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Attribute):
        return None
    owner, right = test.left.value, test.comparators[0]
    if not isinstance(owner, ast.Name) or owner.id not in _OWNERS:
        return None
    if isinstance(test.ops[0], ast.Eq):
        items: list[ast.expr] = [right]
    elif isinstance(test.ops[0], ast.In) and isinstance(right, ast.List | ast.Tuple | ast.Set):
        items = right.elts
    else:
        return None
    values = [item.value for item in items if isinstance(item, ast.Constant) and _is_short(item.value)]
    return (test.left.attr, tuple(values)) if values and len(values) == len(items) else None


def _is_short(value: object) -> bool:
    return isinstance(value, str | bool | None) or (isinstance(value, int) and value.bit_length() < 64)


def _choice(value: object) -> str | bool | None:
    if isinstance(value, bool):
        return value
    text = str(value) if isinstance(value, str | int) else ""
    return text if _PLAIN_VALUE.fullmatch(text) else None


def _as_text(value: object) -> str | None:
    if isinstance(value, tuple):
        return str(value[0]) if len(value) == 1 else None
    # False is a switch's absence, and so is a default of False.
    return None if value is None or value is False else str(value)


def _field(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
