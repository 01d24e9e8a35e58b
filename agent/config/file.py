"""The user's config.toml: read as strictly as a playbook, written one line at a time."""

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.config.settings import KEYS, SETTINGS, Value
from agent.config.toml_lines import CannotEdit, entries, flat, with_value, without
from agent.diagnostics import UserError
from agent.playbook.problems import Place, Problem, Report, shown
from agent.redact import is_secret_name
from agent.text import one_line

IN_ENVIRONMENT = "no file keeps keys of an LLM: export ANTHROPIC_API_KEY in the environment"

_LARGEST = 64 * 1024
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a file says: settings by their key (those of the screen's keys too), and the place of each."""

    file: str = ""
    text: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys of the screen's actions by the action's id."""
        return {key.removeprefix(KEYS): str(value) for key, value in self.values.items() if key.startswith(KEYS)}


def read_config(path: Path) -> Config:
    """What the file says; nothing where there is none. Raises UserError with all its problems."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Config(file=str(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "tunebot config path says where it is") from error
    found = load_config(data, str(path))
    if isinstance(found, list):
        raise problems_of(path, found)
    return found


def problems_of(path: Path, problems: list[Problem]) -> UserError:
    """The problems of a file as the end of a command."""
    count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    text = "\n".join([f"the configuration has {count}:", *map(str, problems)])
    return UserError(text, "tunebot config edit opens it")


def load_config(data: bytes, file: str) -> Config | list[Problem]:
    """What a file with these bytes says, or all problems of it. Never raises."""
    text = data.decode("utf-8", "replace")
    report = Report(file, text)
    if len(data) > _LARGEST:
        report.add(Place(1, 1), (), f"the file is too large: at most {_LARGEST // 1024} KiB")
        return report.sorted()
    try:
        values = flat(tomllib.loads(data.decode()))
    except UnicodeDecodeError:
        report.add(Place(1, 1), (), "the file is not UTF-8")
        return report.sorted()
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        _tell_syntax(report, str(error), text)
        return report.sorted()
    places = {entry.path: Place(entry.line + 1, entry.column + 1, entry.width) for entry in entries(text)}
    known = {setting.key: setting for setting in SETTINGS}
    found: dict[str, Value] = {}
    at: dict[str, Place] = {}
    for path, value in values.items():
        key = ".".join(path)
        at[key] = place = places.get(path, Place(1, 1))
        if key in known or key.startswith(KEYS):
            if expected := _refusal(key, value):
                report.add(place, path, f"{shown(key)} is {expected}, found {one_line(repr(value), 60)}")
            found[key] = value
        elif is_secret_name(path[-1]):
            report.add(place, path, f"{shown(key)} does not belong here", hint=IN_ENVIRONMENT)
        else:
            report.add(place, path, f"unknown setting {shown(key)}", hint=report.guess(key, known))
    return report.sorted() or Config(file=file, text=text, values=found, places=at)


def _refusal(key: str, value: object) -> str | None:
    setting = next((setting for setting in SETTINGS if setting.key == key), None)
    if setting is not None:
        return setting.refuses(value)
    return None if isinstance(value, str) and value.strip() else "a text in quotes, such as 'enter,f5'"


def _tell_syntax(report: Report, message: str, text: str) -> None:
    at = _AT.search(message)
    lines = text.split("\n")
    place = Place(int(at[1]), int(at[2])) if at and at[1] else Place(len(lines), len(lines[-1]) + 1)
    report.add(place, (), f"this is no TOML: {one_line(_AT.sub('', message))}")


def set_value(config: Config, key: str, value: Value) -> str:
    """The file's text with a setting set. Raises UserError where no single line says it."""
    path = next((entry.path for entry in entries(config.text) if ".".join(entry.path) == key), tuple(key.split(".")))
    try:
        return with_value(config.text, path, literal(value))
    except CannotEdit:
        raise _by_hand(config, key) from None


def unset_value(config: Config, key: str) -> str:
    """The file's text without a setting that it has. Raises UserError where more than its line would have to go."""
    path = next((entry.path for entry in entries(config.text) if ".".join(entry.path) == key), ())
    try:
        return without(config.text, path)
    except CannotEdit:
        raise _by_hand(config, key) from None


def _by_hand(config: Config, key: str) -> UserError:
    return UserError(f"{key} cannot be changed by one line of {config.file}", "change it by hand: tunebot config edit")


def literal(value: Value) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
        case _:
            return repr(value)


def write_config(path: Path, text: str) -> None:
    """Put a text in the place of the file, whole or not at all; a link to it stays one. Raises UserError."""
    try:
        real = path.resolve()
        real.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(prefix=".config-", dir=real.parent)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as output:
                output.write(text)
            Path(temporary).chmod(real.stat().st_mode & 0o777 if real.exists() else 0o644)
            Path(temporary).replace(real)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "XDG_CONFIG_HOME names another folder") from error
