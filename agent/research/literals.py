"""Dict and list literals in a source text, found by name with `ast`. Pure, and it never runs the text."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.syntax import parse

_MUTATORS = ("update", "setdefault", "append", "extend", "insert", "add", "pop", "remove", "clear")


@dataclass(frozen=True, slots=True)
class Item:
    """A key of a dict or an item of a list, as its source text says it (strings without their quotes)."""

    text: str
    line: int
    number: float | None = None

    def matches(self, wanted: str) -> bool:
        """Whether this is `wanted`: the same text, or for a number the same number."""
        if self.text == wanted:
            return True
        try:
            return self.number is not None and self.number == float(wanted)
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Collection:
    """One literal: where it begins and what it holds. `complete` is False where it may hold more than that."""

    line: int
    items: tuple[Item, ...]
    complete: bool

    def get(self, wanted: str) -> Item | None:
        """The item that matches, if any."""
        return next((item for item in self.items if item.matches(wanted)), None)


Answer = Literal["present", "absent", "unclear"]


def look_up(collections: Sequence[Collection], wanted: str) -> Answer:
    """Whether `wanted` is in the literal. Several of one name must agree."""
    held = [collection.get(wanted) is not None for collection in collections]
    if held and all(held):
        return "present"
    if held and not any(held) and all(collection.complete for collection in collections):
        return "absent"
    return "unclear"


def dicts(source: str, name: str) -> tuple[Collection, ...]:
    """The dict literals assigned to `name` anywhere in the file. Raises Unparsable."""
    tree = parse(source)
    values = [value for value in _assigned(tree, name) if not _is_none(value)]
    open_ended = _is_changed(tree, name) or any(not isinstance(value, ast.Dict) for value in values)
    return tuple(_of_dict(value, open_ended) for value in values if isinstance(value, ast.Dict))


def lists(source: str, name: str, function: str | None) -> tuple[Collection, ...]:
    """The list, tuple or set literals given to the variable or keyword argument `name`, inside `function` if named.

    Raises Unparsable.
    """
    tree = parse(source)
    scopes: list[ast.AST] = [tree]
    if function is not None:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        scopes = [node for node in ast.walk(tree) if isinstance(node, kinds) and node.name == function]
    values: list[ast.expr] = []
    changed = False
    for scope in scopes:
        values += [value for value in (*_assigned(scope, name), *_keywords(scope, name)) if not _is_none(value)]
        changed = changed or _is_changed(scope, name)
    literals = [value for value in values if isinstance(value, ast.List | ast.Tuple | ast.Set)]
    open_ended = changed or len(literals) < len(values)
    return tuple(_collection(value, value.elts, open_ended) for value in literals)


def _assigned(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_is_name(target, name) for target in targets):
            yield node.value


def _keywords(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if isinstance(node, ast.keyword) and node.arg == name:
            yield node.value


def _is_changed(scope: ast.AST, name: str) -> bool:
    """Whether the collection is changed after it was written down, so that it may hold more."""
    for node in ast.walk(scope):
        if isinstance(node, ast.AugAssign) and _is_name(node.target, name):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_name(node.value, name):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _MUTATORS and _is_name(node.value, name):
            return True
    return False


def _is_name(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _of_dict(node: ast.Dict, open_ended: bool) -> Collection:
    keys = [key for key in node.keys if key is not None]
    return _collection(node, keys, open_ended or len(keys) < len(node.keys))


def _collection(node: ast.expr, elements: Sequence[ast.expr], open_ended: bool) -> Collection:
    found = [_item(element) for element in elements]
    items = tuple(item for item, _ in found)
    return Collection(node.lineno, items, not open_ended and all(is_literal for _, is_literal in found))


def _item(node: ast.expr) -> tuple[Item, bool]:
    try:
        value = ast.literal_eval(node)
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        return Item(str(value), node.lineno, number), True
    except (ValueError, TypeError, SyntaxError, OverflowError, RecursionError, MemoryError):
        return Item(_unparsed(node), node.lineno), False


def _unparsed(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError):  # a number of thousands of digits, a nest of thousands of brackets
        return "?"
