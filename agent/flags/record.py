"""What a call of `add_argument` means, as a Flag."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.flags.interpret import Interpreter
from agent.flags.model import Flag, Place, Takes
from agent.flags.names import Names
from agent.flags.values import UNKNOWN, ClassValue, External, FunctionValue, Made, Member, Value, text_of
from agent.text import clean

SOURCE = "tunebot:source"
"""The key under which arguments of `add_argument` carry the Field that they were made from."""

PARSER = Made(External("argparse.ArgumentParser"))

_SWITCHES = ("store_true", "store_false", "store_const", "append_const", "count", "help", "version")
_DEPRECATED = re.compile(r"^\W*deprecated\b|\b(?:is|are|will be|was)\s+deprecated\b", re.IGNORECASE)
_INSTEAD = re.compile(r"(?:[Uu]se|renamed to|replaced by)\s+[`'\"]?(--[a-z0-9][a-z0-9-]*)")
_NAME = re.compile(r"-{0,2}[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*")
_BRACED = re.compile(r"(--[a-z0-9-]*)\{([a-z0-9,-]+)\}")


class Recorder:
    """Collects the flags that a reading of the source registers."""

    def __init__(self, owner: str) -> None:
        self.flags: dict[str, Flag] = {}
        self.unnamed: list[Place] = []
        self.owner = owner

    def hook(self, read: Interpreter, args: Sequence[Value], kwargs: Mapping[Any, Value], call: Place) -> Value:
        """`parser.add_argument(...)`."""
        names, known = args[1:], dict(kwargs)
        source = known.pop(SOURCE, None)
        place = source.place if source else call
        if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
            self.unnamed.append(place)
        elif names and all(name.startswith("-") for name in names):
            owner = source.owner if source else self.owner
            self._add(flag_of(read.names, tuple(names), known, owner, source.name if source else "", place))
        return None

    def _add(self, flag: Flag) -> None:
        # A second registration of a name replaces the first, as a parser that resolves conflicts would have it.
        self.flags[flag.names[0]] = flag


def flag_of(
    names: Names, spellings: tuple[str, ...], kwargs: dict[Any, Value], owner: str, field: str, place: Place
) -> Flag:
    """The flag that `add_argument(*spellings, **kwargs)` registers."""
    action = kwargs.get("action")
    help_ = clean(_text(kwargs.get("help")))
    long = next((name for name in spellings if name.startswith("--")), spellings[0])
    takes = _takes(names, action, kwargs)
    if _last(action) == "BooleanOptionalAction":
        spellings += tuple(f"--no-{name[2:]}" for name in spellings if name.startswith("--"))
    unresolved = ["arguments"] if UNKNOWN in kwargs else []
    unset = False if action == "store_true" else _own(names, action, "default")
    default = text_of(kwargs.get("default", unset))
    type_ = "switch" if takes == "nothing" else _type(kwargs.get("type"))
    choices = _choices(names, kwargs.get("choices"))
    unresolved += [
        name for name, value in (("default", default), ("type", type_), ("choices", choices)) if value is None
    ]
    said = _last(action).startswith("Deprecated") or bool(_DEPRECATED.search(help_[:200]))
    return Flag(
        names=spellings,
        owner=owner,
        field=field or _text(kwargs.get("dest")) or long.lstrip("-").replace("-", "_"),
        takes=takes,
        type=type_,
        choices=choices or None,
        default=default,
        help=help_,
        deprecated=said,
        instead=_instead(_text(kwargs.get("new_flag")), help_, spellings) if said else (),
        place=place,
        unresolved=tuple(unresolved),
    )


def _takes(names: Names, action: Value, kwargs: Mapping[Any, Value]) -> Takes:
    nargs = kwargs.get("nargs", _own(names, action, "nargs"))
    if action in _SWITCHES or _last(action) == "BooleanOptionalAction" or nargs == 0:
        return "nothing"
    return "optional" if nargs == "?" else "one" if nargs is None else "several"


def _own(names: Names, action: Value, parameter: str) -> Value:
    """What an action of the tree takes for a parameter where the call gives none."""
    for one in names.lineage(action) if isinstance(action, ClassValue) else ():
        for node in one.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                spec = node.args
                given = dict(zip(reversed([arg.arg for arg in spec.args]), reversed(spec.defaults), strict=False))
                default = given.get(parameter)
                return default.value if isinstance(default, ast.Constant) else None
    return None


def _type(value: Value) -> str | None:
    match value:
        case None:
            return "str"
        case FunctionValue() | ClassValue():
            return value.name
        case External():
            return value.name if value.name.startswith("json.") else value.last
        case str():
            return value
    return None


def _choices(names: Names, value: Value) -> tuple[str, ...] | None:
    if value is None:
        return ()
    if isinstance(value, ClassValue) and names.is_enum(value):
        return tuple(member.name for member in names.members(value))
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return None
    items = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
    texts = [_typed(item) for item in items]
    return None if None in texts else tuple(text for text in texts if text is not None)


def _typed(value: Value) -> str | None:
    """A choice as one would type it."""
    if isinstance(value, Member):
        value = value.value
    return clean(str(value)) if isinstance(value, str | int | float) or value is None else None


def _text(value: Value) -> str:
    if isinstance(value, Made) and value.args and isinstance(value.args[0], str):
        return value.args[0]
    return value if isinstance(value, str) else ""


def _last(action: Value) -> str:
    return action.last if isinstance(action, External) else action.name if isinstance(action, ClassValue) else ""


def _instead(new_flag: str, help_: str, own: Sequence[str]) -> tuple[str, ...]:
    """The flags that are named in place of a deprecated one."""
    found = []
    for text, pattern in ((new_flag, _FLAG), (help_, _INSTEAD)):
        spelt = _BRACED.sub(lambda m: " ".join(f"use {m[1]}{end}" for end in m[2].split(",")), text)
        found += [name for name in pattern.findall(spelt) if name not in own]
        if found:
            break
    return tuple(dict.fromkeys(name.lstrip("-") for name in found))
