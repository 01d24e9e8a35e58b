"""The keys at the foot of a screen. What is least needed goes first where the terminal is narrow."""

from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.content import plain, row

_SPARED = ("end", "compare", "research", "needs")
"""Actions whose keys are left out where not everything fits."""
_KEPT = ("help",)
"""Actions whose keys stay: the others are told there."""


class _Item(NamedTuple):
    """What stands at the foot for a key: the key that a click presses, its action, its sign, how it is drawn."""

    key: str
    action: str
    sign: str
    drawn: Content


class Keys(Static):
    """One line that is drawn, not a Footer: that mounts a widget a key, twice at each change of the focus (60 ms).

    Every key that has no room is under `?` and in the palette.
    """

    DEFAULT_CSS = """
    Keys { dock: bottom; height: 1; background: $footer-background; color: $footer-foreground; }
    """
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[tuple[int, str]] = []  # the cell after each key, and the key

    def on_mount(self) -> None:
        """Follow the keys that apply."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        self._draw()

    def on_resize(self) -> None:
        """Leave out what has no room."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """A click on a key presses it."""
        key = next((key for end, key in self._ends if event.x < end), None)
        if key is not None:
            self.app.simulate_key(key)

    def _changed(self, screen: Screen[object]) -> None:
        if self.app.screen is screen:
            self._draw()

    def _draw(self) -> None:
        items = self._items()
        shown = [item for item in items if item.action != "quit"]
        quits = [item for item in items if item.action == "quit"]
        last = row(*(item.drawn for item in quits), " ")
        room = self.size.width - last.cell_length
        others = [item for item in reversed(shown) if item.action not in _KEPT]
        for spared in (*(item for item in shown if item.action in _SPARED), *others):
            if sum(item.drawn.cell_length for item in shown) <= room:
                break
            if spared in shown:
                shown.remove(spared)
        gap = " " * max(0, room - sum(item.drawn.cell_length for item in shown))
        self._ends, at = [], 0
        for item in shown:
            at += item.drawn.cell_length
            self._ends.append((at, item.key))
        self._ends += [(at + len(gap), ""), *((self.size.width, item.key) for item in quits)]
        self.update(row(*(item.drawn for item in shown), gap, last), layout=False)

    def _items(self) -> list[_Item]:
        """The keys that apply now. Those of one group stand together; of several keys for one action the first."""
        items: dict[object, _Item] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if not binding.show or not enabled:
                continue
            name = binding.group or binding.action
            sign = self.app.get_key_display(binding)
            if binding.group and name in items:
                if sign in items[name].sign:
                    continue
                sign = items[name].sign + sign
            elif name in items:
                continue
            words = binding.group.description if binding.group else binding.description
            first = items[name].key if name in items else binding.key
            drawn = row(plain(f" {sign} ", "bold $footer-key-foreground"), words)
            items[name] = _Item(first, binding.action, sign, drawn)
        return list(items.values())
