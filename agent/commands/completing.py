"""What a shell may put in the place of a word: playbooks, sessions, targets, settings. Asked at each tab."""

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Words = Mapping[str, str]
"""Words with a few words about each, or with nothing."""
Completer = Callable[..., Words]
"""Called with `prefix` (what is typed so far) and `parsed_args` (the words before it), by name."""

_NAME = re.compile(r"""^["']?([A-Za-z0-9][A-Za-z0-9._-]*)["']?\s*:""", re.MULTILINE)
_LARGEST = 64 * 1024


def complete(action: argparse.Action, completer: Completer) -> None:
    """Have the words for an argument come from `completer`."""
    action.completer = completer  # type: ignore[attr-defined]  # argcomplete looks for it there


def nothing(**_: object) -> Words:
    """Whatever a person types: it cannot be guessed."""
    return {}


def playbooks(prefix: str, **_: object) -> Words:
    """The shipped playbooks by name, and files that may be some."""
    from agent.paths import shipped_playbooks

    shipped = {path.stem: "shipped" for path in shipped_playbooks().glob("*.yaml")}
    return {**shipped, **_paths(prefix, _may_be_playbook)}


def _may_be_playbook(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml") and path.name != "targets.yaml"


def files(*words: str) -> Completer:
    """Files of any kind, and `words`."""

    def complete_files(prefix: str, **_: object) -> Words:
        return {**dict.fromkeys(words, ""), **_paths(prefix, lambda path: True)}

    return complete_files


def folders(prefix: str, **_: object) -> Words:
    """Folders."""
    return _paths(prefix, lambda path: False)


def sessions(parsed_args: argparse.Namespace, **_: object) -> Words:
    """The folders of recorded sessions."""
    logs = getattr(parsed_args, "logs", None) or _configured_logs()
    return dict.fromkeys((str(path.parent) for path in Path(logs).glob("*/journal.jsonl")), "")


def running_sessions(**_: object) -> Words:
    """The sessions that run here."""
    from agent.control.places import running

    return {note.session: f"{note.name} in {note.folder}" for note in running()}


def targets(**_: object) -> Words:
    """The names that always mean a machine, and those of targets.yaml."""
    from agent.paths import targets_files

    found = {"local": "this machine", "simulated": "a host that is only played"}
    for file in targets_files():
        found |= dict.fromkeys(_NAME.findall(_text(file)), str(file))
    return found


def setting_keys(prefix: str, **_: object) -> Words:
    """The keys of the configuration."""
    from agent.config.settings import KEYS, SETTINGS

    if not prefix.startswith(KEYS):
        return {KEYS: "keys of an action of the screen"} | {setting.key: setting.about for setting in SETTINGS}
    # The screen takes a moment to import.
    from agent.config.screen import default_keys

    return {KEYS + action: about for action, (_, about) in default_keys().items()}


def commands(parsed_args: argparse.Namespace, **_: object) -> Words:
    """The commands of tunebot."""
    from agent.commands.every import COMMANDS

    return {} if parsed_args.words else {command.name: command.help for command in COMMANDS}


def _paths(prefix: str, fits: Callable[[Path], bool]) -> Words:
    """What stands in the folder that `prefix` leads to: folders and files that fit; hidden ones only when asked for."""
    typed, _, begun = prefix.rpartition("/")
    folder = Path(typed + "/" if prefix.startswith("/") else typed or ".").expanduser()
    within = f"{typed}/" if typed or prefix.startswith("/") else ""
    shown = [entry for entry in _entries(folder) if begun.startswith(".") or not entry.name.startswith(".")]
    return {f"{within}{entry.name}{'/' * entry.is_dir()}": "" for entry in shown if entry.is_dir() or fits(Path(entry))}


def _entries(folder: Path) -> Iterable["os.DirEntry[str]"]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return ()


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:_LARGEST].decode("utf-8", "replace")
    except OSError:
        return ""


def _configured_logs() -> str:
    from agent.config.force import in_force
    from agent.diagnostics import UserError

    try:
        return str(in_force(os.environ)["defaults.logs"].value)
    except UserError:
        return "logs"
