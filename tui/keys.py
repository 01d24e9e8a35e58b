"""The actions that have keys, on all screens: what a person may give other keys."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding
from textual.keys import REPLACED_KEYS, Keys, key_to_character
from textual.theme import BUILTIN_THEMES

import tui

THEMES = tuple(BUILTIN_THEMES)
"""The themes by name."""

_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMED = frozenset(key.value for key in Keys)
_TOGETHER = frozenset({"run", "board", "replay"})
"""What ids begin with whose actions are in front at the same time."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its id, its keys as they are unless somebody says otherwise, and what it does."""

    id: str
    keys: tuple[str, ...]
    about: str


def actions() -> dict[str, Action]:
    """All actions by their id, in the order of their modules."""
    found: dict[str, Action] = {}
    for binding in _bindings():
        if binding.id:
            known = found.get(binding.id, Action(binding.id, (), binding.description or binding.action))
            keys = dict.fromkeys((*known.keys, *keys_of(binding.key)))
            found[binding.id] = Action(known.id, tuple(keys), known.about)
    return found


def keys_of(text: str) -> tuple[str, ...]:
    """The keys in a text such as `enter,?`, each as Textual calls it."""
    words = [Binding(word.strip(), "") for word in text.split(",") if word.strip()]
    return tuple(binding.key for binding in Binding.make_bindings(words))


def is_key(name: str) -> bool:
    """Whether a terminal could send it."""
    *modifiers, last = name.split("+")
    is_known = last in _NAMED or key_to_character(REPLACED_KEYS.get(last, last)) is not None
    return is_known and set(modifiers) <= _MODIFIERS


def in_front_together(one: str, other: str) -> bool:
    """Whether the actions of two ids may be in front at the same time, so that a key can mean only one of them."""
    places = {one.partition(".")[0], other.partition(".")[0]}
    return len(places) == 1 or "app" in places or places <= _TOGETHER


def _bindings() -> Iterator[Binding]:
    for info in pkgutil.walk_packages(tui.__path__, "tui."):
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == info.name:
                yield from (each for each in vars(kind).get("BINDINGS", ()) if isinstance(each, Binding))
