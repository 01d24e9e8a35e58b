"""What Python itself provides, on values that are known: functions, methods and operators that only compute."""

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from agent.flags.values import UNKNOWN, External, Made, Member, Value, is_known, truth

_LONGEST = 100_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict, "sorted": sorted, "len": len,
    "str": str, "int": int, "float": float, "bool": bool, "min": min, "max": max, "any": any, "all": all, "abs": abs,
    "range": lambda *ends: list(range(*ends)) if all(abs(end) < _LONGEST for end in ends) else UNKNOWN,
    "enumerate": lambda items: list(enumerate(items)), "zip": lambda *items: list(zip(*items, strict=False)),
    "reversed": lambda items: list(reversed(items)), "sum": sum, "next": lambda items: items[0],
    "typing.cast": lambda _, value: value,
}  # fmt: skip
METHODS: dict[type, tuple[str, ...]] = {
    str: ("lower", "upper", "strip", "lstrip", "rstrip", "replace", "split", "join", "startswith", "endswith",
          "removeprefix", "removesuffix", "title", "capitalize"),
    list: ("append", "extend", "insert", "remove", "copy", "index", "count", "pop"),
    dict: ("keys", "values", "items", "get", "pop", "update", "setdefault", "copy"),
    set: ("add", "update", "discard", "remove", "copy", "union", "difference", "intersection"),
    frozenset: ("union", "difference", "intersection"),
    tuple: ("index", "count"),
}  # fmt: skip
CHANGES = ("append", "extend", "insert", "remove", "pop", "update", "setdefault", "add", "discard")
CONSTANTS: dict[str, Value] = {
    "ssl.CERT_NONE": 0, "ssl.CERT_OPTIONAL": 1, "ssl.CERT_REQUIRED": 2, "sys.maxsize": (1 << 63) - 1,
    "math.inf": math.inf, "typing.TYPE_CHECKING": False, "os.environ": External("os.environ"),
}  # fmt: skip


def binary(op: ast.operator, left: Value, right: Value) -> Value:
    """The result of an operator, UNKNOWN where an operand is not known or the result would be huge."""
    if isinstance(op, ast.Pow | ast.LShift):
        return _power(op, left, right)
    compute = _OPERATORS.get(type(op))
    if compute is None or not (is_plain(left) and is_plain(right)):
        return UNKNOWN
    if isinstance(op, ast.Mod) and isinstance(left, str):
        return UNKNOWN
    if isinstance(op, ast.Mult) and not (isinstance(left, int | float) and isinstance(right, int | float)):
        return UNKNOWN
    return attempt(compute, left, right)


def _power(op: ast.operator, left: Value, right: Value) -> Value:
    small = isinstance(left, int) and isinstance(right, int) and abs(left) <= 1 << 20 and 0 <= right <= 64
    if not small:
        return UNKNOWN
    return left**right if isinstance(op, ast.Pow) else left << right


def compare(op: ast.cmpop, left: Value, right: Value) -> Value:
    """The result of a comparison, UNKNOWN where it cannot be told."""
    # Two stand-ins may be the same thing under different names: only what is equal is told.
    if isinstance(left, External | Made) or isinstance(right, External | Made):
        return UNKNOWN
    if not (is_known(left) and is_known(right)):
        return UNKNOWN
    return attempt(_COMPARES[type(op)], left, right)


def attempt(compute: Callable[..., Any], *args: Value) -> Value:
    """The result of a computation on known values, UNKNOWN where it fails or is huge."""
    try:
        result = compute(*args)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
        return UNKNOWN
    if isinstance(result, str | list | tuple | set | dict) and len(result) > _LONGEST:
        return UNKNOWN
    if isinstance(result, int) and result.bit_length() > 256:
        return UNKNOWN
    return result


def call_function(name: str, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """A function of Python's own, by name."""
    if name == "isinstance" or name not in FUNCTIONS:
        return UNKNOWN
    if name == "typing.cast":
        return attempt(FUNCTIONS[name], *args)
    if name in ("any", "all"):
        return _quantified(name, args)
    if not all(isinstance(arg, str | bool | int | float | list | tuple | set | frozenset | dict) for arg in args):
        return UNKNOWN
    if name in ("next", "list", "tuple", "dict", "set", "frozenset", "reversed", "enumerate", "zip"):
        made = attempt(FUNCTIONS[name], *map(_as_items, args))
        return {**made, **kwargs} if name == "dict" and isinstance(made, dict) else made
    if not all(map(is_known, args)) or kwargs:
        return UNKNOWN
    return attempt(FUNCTIONS[name], *args)


def _as_items(value: Value) -> Value:
    return list(value) if isinstance(value, str) else value


def _quantified(name: str, args: Sequence[Value]) -> Value:
    items = args[0] if args and isinstance(args[0], list | tuple | set) else [UNKNOWN]
    truths = [truth(item) for item in items]
    decisive = name == "any"
    if decisive in truths:
        return decisive
    return UNKNOWN if None in truths else not decisive


def call_method(of: Value, name: str, args: Sequence[Value], kwargs: dict[str, Value], doubtful: bool) -> Value:
    """A method of a known value. A change that may not happen leaves something unknown in what it changes."""
    if isinstance(of, Member):
        of = of.value
    if name not in next((names for kind, names in METHODS.items() if isinstance(of, kind)), ()):
        return UNKNOWN
    if name in CHANGES and isinstance(of, list | set | dict) and doubtful:
        _taint(of)
        return UNKNOWN
    if kwargs and name == "update" and isinstance(of, dict):
        of.update(kwargs)
        return None
    if isinstance(of, str) and not all(map(is_known, args)):
        return UNKNOWN
    if name in ("extend", "update") and not all(isinstance(arg, list | tuple | set | dict | frozenset) for arg in args):
        _taint(of)
        return UNKNOWN
    result = attempt(getattr(of, name), *args)
    return list(result) if name in ("keys", "values", "items") and result is not UNKNOWN else result


def _taint(of: Value) -> None:
    match of:
        case list():
            of.append(UNKNOWN)
        case set():
            of.add(UNKNOWN)
        case dict():
            of[UNKNOWN] = UNKNOWN


def is_plain(value: Value) -> bool:
    """Whether operators can work on it: a constant, or a collection of anything."""
    return isinstance(value, str | int | float | list | tuple | set | frozenset | dict) or value is None
