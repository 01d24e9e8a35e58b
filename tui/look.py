"""How a person wants the screen: its colours, its keys, its bell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from textual.app import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The name of a theme (empty: the usual one), the keys of actions by the action's id, whether the bell rings."""

    theme: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    rings: bool = True


def dress(app: App[Any], look: Look) -> None:
    """Give an app its colours and keys."""
    if look.theme:
        app.theme = look.theme
    app.set_keymap(dict(look.keys))
