"""What the configuration says about the screen, held against the keys and themes that the screen has."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from agent.config.file import Config, problems_of, read_config
from agent.config.force import in_force
from agent.config.settings import KEYS
from agent.paths import config_file
from agent.playbook.problems import Problem, Report, shown

if TYPE_CHECKING:
    from tui.look import Look

_KEY_NAMES = "names are a, J, ?, enter, space, f5, ctrl+x; a comma between two, and 'comma' for that key"


def look_of(environ: Mapping[str, str]) -> "Look":
    """The screen as the environment and the user's file want it. Raises UserError."""
    from tui.look import Look

    config = read_config(config_file())
    if problems := screen_problems(config):
        raise problems_of(config_file(), problems)
    rings = bool(in_force(environ, config)["screen.bell"].value)
    return Look(theme=str(config.values.get("screen.theme", "")), keys=config.keymap, rings=rings)


def default_keys() -> dict[str, tuple[str, str]]:
    """The actions that have keys: by their id the keys, and what the action does."""
    from tui.keys import actions

    return {action.id: (",".join(action.keys), action.about) for action in actions().values()}


def screen_problems(config: Config) -> list[Problem]:
    """What of a file the screen cannot do: unknown actions, keys and themes, and two actions on one key."""
    if not config.keymap and "screen.theme" not in config.values:
        return []
    from tui.keys import THEMES, actions, is_key, keys_of

    report = Report(config.file, config.text)
    known = actions()
    for action, text in config.keymap.items():
        at, path = config.places[KEYS + action], ("keys", action)
        if action not in known:
            report.add(at, path, f"unknown action {shown(action)}", hint=report.guess(action, known))
        for key in keys_of(text) or ("",):
            if not is_key(key):
                report.add(at, path, f"{shown(key)} is no key", hint=_KEY_NAMES)
    for one, other, key in _clashes(config):
        given = one if one in config.keymap else other
        rest = other if given == one else one
        hint = f"give one of them another key, such as: tunebot config set {KEYS}{rest} f5"
        message = f"{shown(key)} is the key of {one} and {other}"
        report.add(config.places[KEYS + given], ("keys", given), message, hint=hint)
    theme = str(config.values.get("screen.theme", THEMES[0]))
    if theme not in THEMES:
        hint = report.guess(theme, THEMES) or f"one of {', '.join(THEMES)}"
        report.add(config.places["screen.theme"], ("screen", "theme"), f"unknown theme {shown(theme)}", hint=hint)
    return report.sorted()


def _clashes(config: Config) -> Iterator[tuple[str, str, str]]:
    """Two actions that could be in front together, and a key that both have, one of them by the file."""
    from tui.keys import actions, in_front_together, keys_of

    present = {action.id: action.keys for action in actions().values()}
    present |= {action: keys_of(text) for action, text in config.keymap.items() if action in present}
    for one, other in combinations(present, 2):
        if (one in config.keymap or other in config.keymap) and in_front_together(one, other):
            yield from ((one, other, key) for key in present[one] if key in present[other])
