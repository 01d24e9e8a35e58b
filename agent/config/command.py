"""`tunebot config`: every setting with its value and where that comes from, and the file's changes."""

import argparse
import os
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator

from agent.config.file import (
    IN_ENVIRONMENT,
    Config,
    load_config,
    problems_of,
    read_config,
    set_value,
    unset_value,
    write_config,
)
from agent.config.force import InForce, in_force
from agent.config.screen import default_keys, screen_problems
from agent.config.settings import KEYS, SETTINGS, Value
from agent.diagnostics import Exit, UserError
from agent.paths import config_file
from agent.playbook.problems import nearest
from agent.redact import Redactor, is_secret_name
from agent.text import one_line

Say = Callable[[str], None]

_NEW = """\
# Settings of tunebot. `tunebot config` shows all of them; the environment goes before this file.
# [llm]
# model = "claude-sonnet-5-5"
# [defaults]
# logs = "~/tunebot"
# [keys]
# run.details = "enter,f5"
"""


def configure(arguments: argparse.Namespace, say: Say) -> Exit:
    """Carry out an action of `tunebot config`. Raises UserError."""
    match arguments.action:
        case "set":
            _set(arguments.key, arguments.value, say)
        case "unset":
            _unset(arguments.key, say)
        case "edit":
            _edit(say)
        case "path":
            say(str(config_file()))
        case _:
            _show(say)
    return Exit.OK


def _show(say: Say) -> None:
    config = _sound(read_config(config_file()))
    say(f"{config_file()}{'' if config.text else '  (not there: all defaults)'}")
    rows = [*map(_row, in_force(os.environ, config).values()), *_key_rows(config)]
    width = max(len(key) for key, *_ in rows)
    redact = Redactor.of(os.environ)
    for key, value, origin, about in rows:
        say(f"{key:<{width}}  {redact(value) or '-':<22}  {origin:<30}  {about}")


def _row(found: InForce) -> tuple[str, str, str, str]:
    value = str(found.value).lower() if isinstance(found.value, bool) else str(found.value)
    origin = f"environment {found.setting.variable}" if found.origin == "environment" else found.origin
    return found.setting.key, one_line(value), origin, found.setting.about


def _key_rows(config: Config) -> Iterator[tuple[str, str, str, str]]:
    for action, (keys, about) in default_keys().items():
        ours = config.keymap.get(action)
        yield KEYS + action, keys if ours is None else ours, "default" if ours is None else "file", about


def _set(key: str, text: str, say: Say) -> None:
    config = read_config(config_file())
    if is_secret_name(key.rpartition(".")[2]) or Redactor({})(text) != text:
        raise UserError(f"{one_line(key, 80)}: this is a secret", IN_ENVIRONMENT)
    changed = set_value(config, key, _value(_known(key), text))
    found = load_config(changed.encode(), config.file)
    if isinstance(found, list):
        raise problems_of(config_file(), found)
    write_config(config_file(), _sound(found).text)
    say(f"{key} is set in {config_file()}")
    _warn_of_variable(key, say)


def _unset(key: str, say: Say) -> None:
    config = read_config(config_file())
    if key not in config.values:
        set_ = ", ".join(config.values) or "nothing"
        raise UserError(f"{one_line(key, 80)} is not set in {config_file()}", f"the file sets {set_}")
    write_config(config_file(), unset_value(config, key))
    say(f"{key} is not set in {config_file()} any more")


def _warn_of_variable(key: str, say: Say) -> None:
    found = in_force(os.environ).get(key)
    if found is not None and found.origin == "environment":
        say(f"the environment goes before it: {found.setting.variable} is set")


def _known(key: str) -> str:
    """The key, where there is such a setting. Raises UserError."""
    known = [setting.key for setting in SETTINGS]
    if key.startswith(KEYS):
        known = [KEYS + action for action in default_keys()]
    if key not in known:
        near = nearest(key, known)
        hint = f"did you mean '{near}'?" if near else "tunebot config lists them all"
        raise UserError(f"unknown setting '{one_line(key, 80)}'", hint)
    return key


def _value(key: str, text: str) -> Value:
    """What a person typed, in the type of the setting: as TOML writes it, or a text without its quotes."""
    setting = next((setting for setting in SETTINGS if setting.key == key), None)
    if setting is None or isinstance(setting.default, str):
        return _unquoted(text)
    try:
        value: Value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        value = text
    if expected := setting.refuses(value):
        raise UserError(f"{key} is {expected}, found {one_line(text, 60)}", f"such as {str(setting.default).lower()}")
    return value


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _edit(say: Say) -> None:
    path = config_file()
    if not path.exists():
        write_config(path, _NEW)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        ended = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
    except (OSError, ValueError) as error:
        hint = "set VISUAL or EDITOR to a program that is there"
        raise UserError(f"cannot start the editor {one_line(editor, 80)}: {error}", hint) from error
    if ended:
        raise UserError(f"the editor {one_line(editor, 80)} ended with {ended}", f"the file is {path}")
    _sound(read_config(path))
    say(f"{path} is sound")


def _sound(config: Config) -> Config:
    """The same, where the screen can do all that it says. Raises UserError."""
    if problems := screen_problems(config):
        raise problems_of(config_file(), problems)
    return config
