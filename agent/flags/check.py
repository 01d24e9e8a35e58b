"""The flags of a configuration against those of a server's source, as its own argparse would judge them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agent.flags.model import Flag, FlagTable
from agent.playbook.model import Args, ArgValue
from agent.playbook.problems import nearest

ProblemKind = Literal["unknown", "ambiguous", "choice", "type", "renamed", "deprecated"]
NAMES: Mapping[str, str] = {"sglang": "SGLang", "vllm": "vLLM"}
_MOST_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagProblem:
    """Something about one flag. `fatal` says that the server would not start with it; `hint` is what to write."""

    kind: ProblemKind
    flag: str
    message: str
    hint: str
    fatal: bool


def check_args(table: FlagTable, args: Args) -> tuple[FlagProblem, ...]:
    """Every problem of the flags, in their order."""
    server = f"{NAMES[table.kind]} {table.version}".strip()
    return tuple(problem for key, value in args.items() for problem in _check(table, server, key, value))


def _check(table: FlagTable, server: str, key: str, value: ArgValue) -> Iterator[FlagProblem]:
    # vLLM reads --compilation-config.mode as a key of that JSON.
    name = key.partition(".")[0] if table.kind == "vllm" else key
    if value is None or value is False:
        return
    found = table.meant(name)
    if found is None:
        yield _not_there(table, server, key, table.prefixed(name))
        return
    if found.deprecated:
        yield _old(found, key, server)
    if name == key:
        yield from _value(found, key, value)


def _not_there(table: FlagTable, server: str, key: str, meant: tuple[str, ...]) -> FlagProblem:
    if meant:
        message = f"'{key}' is short for several flags of {server}"
        hint = f"write {' or '.join(meant[:_MOST_SHOWN])}"
        return FlagProblem(kind="ambiguous", flag=key, message=message, hint=hint, fatal=True)
    near = nearest(key, [name for flag in table.flags for name in flag.spellings])
    hint = f"did you mean '{near}'?" if near else ""
    return FlagProblem(kind="unknown", flag=key, message=f"{server} has no flag '{key}'", hint=hint, fatal=True)


def _old(flag: Flag, key: str, server: str) -> FlagProblem:
    if flag.instead:
        message, hint = f"'{key}' has another name in {server}", f"write {' or '.join(flag.instead)}"
        return FlagProblem(kind="renamed", flag=key, message=message, hint=hint, fatal=False)
    message = f"'{key}' is deprecated in {server}"
    return FlagProblem(kind="deprecated", flag=key, message=message, hint=flag.help.partition("\n")[0], fatal=False)


def _value(flag: Flag, key: str, value: ArgValue) -> Iterator[FlagProblem]:
    if flag.takes == "nothing":
        if value is not True:
            yield _wrong(key, f"'{key}' is a switch and takes no value", "write true")
        return
    if value is True:
        if flag.takes != "optional":
            yield _wrong(key, f"'{key}' takes a value", _choices(flag))
        return
    values = value if isinstance(value, tuple) else (str(value),)
    if len(values) > 1 and flag.takes in ("one", "optional"):
        yield _wrong(key, f"'{key}' takes one value, found {len(values)}", "")
    for one in values:
        if flag.type in ("int", "float") and not _is_number(one, flag.type):
            kind = "a whole number" if flag.type == "int" else "a number"
            yield _wrong(key, f"'{key}' takes {kind}, found '{one}'", "")
        elif flag.choices is not None and one not in flag.choices:
            near = nearest(one, flag.choices)
            hint = f"did you mean '{near}'? {_choices(flag)}" if near else _choices(flag)
            message = f"'{one}' is no choice of '{key}'"
            yield FlagProblem(kind="choice", flag=key, message=message, hint=hint, fatal=True)


def _wrong(key: str, message: str, hint: str) -> FlagProblem:
    return FlagProblem(kind="type", flag=key, message=message, hint=hint, fatal=True)


def _choices(flag: Flag) -> str:
    return f"choices: {', '.join(flag.choices[:_MOST_SHOWN])}" if flag.choices else ""


def _is_number(text: str, kind: str) -> bool:
    try:
        int(text) if kind == "int" else float(text)
    except ValueError:
        return False
    return True
