"""From plain data to frozen dataclasses, strictly: what is unknown, missing or of another type raises ValueError."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


def build(cls: type[T], data: object, where: str) -> T:
    """An instance of a dataclass made of a mapping; `where` is its place in the file, for the message."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected a mapping")
    hints = _hints(cast(Any, cls))
    known = {item.name: item for item in fields(cast(Any, cls))}
    for key in data:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}")
    for name, item in known.items():
        if name not in data and item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{where}: missing key {name!r}")
    return cls(**{key: _convert(hints[key], value, f"{where}.{key}") for key, value in data.items()})


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        if value is None and type(None) in arguments:
            return None
        return _convert(next(item for item in arguments if item is not type(None)), value, where)
    if is_dataclass(hint):
        return build(cast(type[Any], hint), value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: expected a list")
        return tuple(_convert(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected a mapping")
        return {str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        raise ValueError(f"{where}: expected int, not {value!r}")
    if not isinstance(value, hint):
        raise ValueError(f"{where}: expected {hint.__name__}, not {value!r}")
    return value
