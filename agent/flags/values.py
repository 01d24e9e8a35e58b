"""The values that reading a source without running it can give: Python's own constants, and stand-ins for the rest."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.flags.modules import Module

Value = Any
"""A constant, a list, tuple, set or dict of values, or one of the classes below."""


class _Unknown:
    """What cannot be told from the source alone."""

    def __repr__(self) -> str:
        return "?"

    def __deepcopy__(self, _: object) -> "_Unknown":
        return self


UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class External:
    """Something outside the tree, by its dotted name: `argparse.BooleanOptionalAction`, `int`."""

    name: str

    @property
    def last(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module of the tree."""

    module: "Module"


@dataclass(frozen=True, slots=True)
class ClassValue:
    """A class of the tree."""

    node: ast.ClassDef
    module: "Module"

    @property
    def name(self) -> str:
        """The class's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function or lambda of the tree. `first` is what it is bound to; `scope` holds an enclosing function's names."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: "Module"
    owner: ClassValue | None = None
    first: Value = None
    scope: Mapping[str, Value] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The function's name, `lambda` for one that has none."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that Python itself provides: `["a"].append`."""

    of: Value
    name: str


@dataclass(frozen=True, slots=True)
class Generic:
    """A type with arguments: `Literal["a", "b"]`, `list[int]`; `A | B` is a Union."""

    of: ClassValue | External
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` inside a method of `owner`, bound to `first`."""

    owner: ClassValue
    first: Value


@dataclass(frozen=True, slots=True)
class Made:
    """An instance: what was called, and with what."""

    of: ClassValue | External
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration."""

    of: ClassValue
    name: str
    value: Value


def is_known(value: Value) -> bool:
    """Whether a value is known down to its last element."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_known, value))
    if isinstance(value, dict):
        return all(map(is_known, value)) and all(map(is_known, value.values()))
    return value is not UNKNOWN


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None where that is not known."""
    if value is UNKNOWN or isinstance(value, External | Made | Member | Method | Generic):
        return None
    if isinstance(value, ClassValue | FunctionValue | ModuleValue):
        return True
    return bool(value)


def text_of(value: Value) -> str | None:
    """Python's text of a value, None where it is not known. Sets are sorted, since theirs has no order."""
    match value:
        case Member(of=of, name=name):
            return f"{of.name}.{name}"
        case External(name=name):
            return name
        case ClassValue() | FunctionValue():
            return value.name
        case Made(of=ClassValue() as of):
            return f"{of.name}()"
        case list() | tuple():
            texts = [text_of(item) for item in value]
            inner = ", ".join(text or "" for text in texts)
            shown = f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
            return None if None in texts else shown
        case set() | frozenset():
            known = sorted(text for text in map(text_of, value) if text is not None)
            return None if len(known) < len(value) else f"{{{', '.join(known)}}}" if known else "set()"
        case dict():
            pairs = [(text_of(key), text_of(item)) for key, item in value.items()]
            shown = ", ".join(f"{key}: {item}" for key, item in pairs)
            return None if any(None in pair for pair in pairs) else f"{{{shown}}}"
        case str() | int() | float() | bool() | bytes() | None:
            return repr(value)
    return None
