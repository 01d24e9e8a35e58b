"""The tree's values as Python values: the text as written under `args` and `env`, YAML 1.2 everywhere else."""

import math
import re
from collections.abc import Set
from typing import Any

from agent.playbook.problems import Path, Report, shown
from agent.playbook.tree import NULLS, Broken, Items, Node, Scalar, Table, found

_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_SWITCHES: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def resolve(scalar: Scalar) -> str | int | float | bool | None:
    """What a scalar means in YAML 1.2: `no`, `on`, `1:30` and `1_000` are text."""
    text = scalar.text
    if not scalar.plain:
        return text
    if text in NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def plain_value(node: Node, report: Report, as_text: Set[int] = frozenset(), path: Path = ()) -> Any:
    """The value for the model. Scalars whose `id()` is in `as_text` are taken as written."""
    match node:
        case Scalar():
            return node.text if id(node) in as_text else resolve(node)
        case Items(nodes=nodes):
            return [plain_value(item, report, as_text, (*path, index)) for index, item in enumerate(nodes)]
        case Table(entries=entries):
            if holds_args(path):
                return {key: _arg(value, report, (*path, key)) for key, (_, value) in entries.items()}
            if holds_env(path):
                return {key: _variable(*entry, report, (*path, key)) for key, entry in entries.items()}
            return {key: plain_value(value, report, as_text, (*path, key)) for key, (_, value) in entries.items()}
        case Broken():
            return None


def holds_args(path: Path) -> bool:
    """Whether the flags of a server stand under this path."""
    return path == ("server", "args") or (len(path) == 3 and path[0] == "experiments" and path[2] == "args")


def holds_env(path: Path) -> bool:
    """Whether the variables of a launch stand under this path."""
    if path and path[0] == "experiments":
        return path[2:] in (("env",), ("server", "env"))
    return path == ("server", "env")


def _arg(node: Node, report: Report, path: Path) -> str | bool | tuple[str, ...] | None:
    match node:
        case Scalar(text=text, plain=plain):
            return _SWITCHES[text] if plain and text in _SWITCHES else text
        case Items(nodes=()):
            report.add(node.place, path, "a list of values needs at least one; null takes a flag away")
        case Items(nodes=nodes):
            return tuple(_element(item, report, (*path, index)) for index, item in enumerate(nodes))
        case Table():
            hint = """JSON must be quoted as a whole: '{"key": 1}'"""
            report.add(node.place, path, "the value of a flag cannot be a mapping", hint=hint)
    return None


def _element(node: Node, report: Report, path: Path) -> str:
    if isinstance(node, Scalar):
        return node.text
    if not isinstance(node, Broken):
        report.add(node.place, path, f"several values of a flag must each be text, found {found(node)}")
    return ""


def _variable(key: Scalar, node: Node, report: Report, path: Path) -> str | None:
    if not _VARIABLE.fullmatch(key.text):
        report.add(key.place, path, f"{shown(key.text)} cannot be the name of an environment variable")
    if isinstance(node, Scalar):
        return None if node.plain and node.text in NULLS else node.text
    if not isinstance(node, Broken):
        report.add(node.place, path, f"the value of a variable must be text, found {found(node)}")
    return None
