"""Where the settings of a TOML file stand, and the file with one of them changed: all its other lines stay as they are.

Settings are scalars, each on a line of its own. Whatever else a file holds is passed over, and an edit is looked at
with a real parser before it is given back.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KeyPath = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\\\n]*"|'[^'\n]*')"""
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*\[[ \t]*(?P<key>{_KEY})[ \t]*\][ \t]*(?:#.*)?\r?$")
_ENTRY = re.compile(rf"[ \t]*(?P<key>{_KEY})[ \t]*=[ \t]*")
_SCALAR = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^#\r\n]*[^#\r\n \t])""")
_LONG = ('"""', "'''")


class CannotEdit(Exception):
    """The file is written in a way that an edit of one line does not fit into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A setting in a file: `line` and `column` count from zero; its value stands from `start` to `end` of the line."""

    path: KeyPath
    line: int
    column: int
    width: int
    start: int
    end: int


def entries(text: str) -> Iterator[Entry]:
    """All settings of a file, in its order."""
    table: KeyPath = ()
    until = ""
    for number, line in enumerate(text.split("\n")):
        if until:
            until = "" if until in line else until
            continue
        if header := _HEADER.match(line):
            table = _parts(header["key"])
        elif entry := _ENTRY.match(line):
            rest = line[entry.end() :]
            mark = next((mark for mark in _LONG if rest.startswith(mark)), "")
            until = mark if mark and mark not in rest[3:] else ""
            value = _SCALAR.match(rest)
            yield Entry(
                path=table + _parts(entry["key"]),
                line=number,
                column=entry.start("key"),
                width=len(entry["key"]),
                start=entry.end(),
                end=entry.end() + (value.end() if value else 0),
            )


def flat(tree: Mapping[str, Any], at: KeyPath = ()) -> dict[KeyPath, Any]:
    """The values of a parsed file by their path; empty tables have none."""
    found: dict[KeyPath, Any] = {}
    for key, value in tree.items():
        found |= flat(value, (*at, key)) if isinstance(value, dict) else {(*at, key): value}
    return found


def with_value(text: str, path: KeyPath, literal: str) -> str:
    """The file with a setting set to a value written in TOML. Raises CannotEdit."""
    wanted = flat(tomllib.loads(text)) | {path: tomllib.loads(f"x = {literal}")["x"]}
    return _first_right(_ways_to_set(text, path, literal), wanted)


def without(text: str, path: KeyPath) -> str:
    """The file without a setting that it has. Raises CannotEdit."""
    wanted = {other: value for other, value in flat(tomllib.loads(text)).items() if other != path}
    lines = text.split("\n")
    return _first_right(("\n".join(_cut(lines, entry.line)) for entry in entries(text) if entry.path == path), wanted)


def _first_right(ways: Iterator[str], wanted: Mapping[KeyPath, Any]) -> str:
    """The first text that says what is wanted, and nothing else."""
    for text in ways:
        try:
            if flat(tomllib.loads(text)) == wanted:
                return text
        except tomllib.TOMLDecodeError:
            continue
    raise CannotEdit


def _ways_to_set(text: str, path: KeyPath, literal: str) -> Iterator[str]:
    lines = text.split("\n")
    for entry in entries(text):
        if entry.path == path:
            line = lines[entry.line]
            changed = line[: entry.start] + literal + line[entry.end :]
            yield "\n".join([*lines[: entry.line], changed, *lines[entry.line + 1 :]])
    tables = {_parts(match["key"]): number for number, line in enumerate(lines) if (match := _HEADER.match(line))}
    for size in range(len(path) - 1, 0, -1):
        if (number := tables.get(path[:size])) is not None:
            after = _last_of(text, lines, number) + 1
            yield "\n".join([*lines[:after], f"{'.'.join(path[size:])} = {literal}", *lines[after:]])
    size = 1 if path[0] == "keys" else len(path) - 1
    gap = "\n" if text.strip() else ""
    begun = text if not text or text.endswith("\n") else f"{text}\n"
    yield f"{begun}{gap}[{'.'.join(path[:size])}]\n{'.'.join(path[size:])} = {literal}\n"
    yield f"{'.'.join(path)} = {literal}\n{text}"


def _last_of(text: str, lines: list[str], header: int) -> int:
    """The line after which a table goes on: its last setting, or its header."""
    end = next((n for n in range(header + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    return max((entry.line for entry in entries(text) if header < entry.line < end), default=header)


def _cut(lines: list[str], number: int) -> list[str]:
    return lines[:number] + lines[number + 1 :]


def _parts(key: str) -> KeyPath:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, key))
