"""The run screen of a recorded session: the same picture, with a scrub bar and the keys that move it."""

from collections.abc import Collection
from typing import ClassVar, cast

from textual.binding import Binding, BindingType

from agent.replay import MarkKind
from tui.replay_source import PHASES, VERDICTS, ReplaySource
from tui.screens.run import RunScreen
from tui.widgets.keys import Keys
from tui.widgets.scrub import ScrubBar

_EVENT, _PHASE, _VERDICT, _SPEED = (
    Binding.Group(name, compact=True) for name in ("event", "phase", "verdict", "speed")
)

_LIVE_ONLY = frozenset({"ask", "grep", "new", "skip", "retry", "pause", "end"})
"""Actions of the run screen that hand in an event."""


class ReplayScreen(RunScreen):
    """Reviews a session: nothing in it can be changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play", id="replay.play"),
        Binding("left", "step(-1)", "back to the event before", key_display="←", group=_EVENT, id="replay.back"),
        Binding("right", "step(1)", "on to the next event", key_display="→", group=_EVENT, id="replay.forward"),
        Binding(
            "comma,shift+left",
            "phase(False)",
            "back to the phase before",
            key_display=",",
            group=_PHASE,
            id="replay.phase-back",
        ),
        Binding(
            "full_stop,shift+right",
            "phase(True)",
            "on to the next phase",
            key_display=".",
            group=_PHASE,
            id="replay.phase",
        ),
        Binding(
            "{",
            "verdict(False)",
            "back to the verdict before",
            key_display="{",
            group=_VERDICT,
            id="replay.verdict-back",
        ),
        Binding("}", "verdict(True)", "on to the next verdict", key_display="}", group=_VERDICT, id="replay.verdict"),
        Binding("minus", "pace(-1)", "slower", key_display="-", group=_SPEED, id="replay.slower"),
        Binding("plus,equals_sign", "pace(1)", "faster", key_display="+", group=_SPEED, id="replay.faster"),
        Binding("home", "seek(0)", "to the start", show=False, id="replay.start"),
        Binding("end", "seek(1)", "to the end", show=False, id="replay.end"),
    ]

    @property
    def replay(self) -> ReplaySource:
        """The source, which is a replay."""
        return cast(ReplaySource, self.source)

    def on_mount(self) -> None:
        """Add the bar above the footer."""
        self.mount(ScrubBar(self.replay), before=self.query_one(Keys))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What would change a session has no key here."""
        return action not in _LIVE_ONLY and super().check_action(action, parameters)

    def action_play(self) -> None:
        """Play or pause."""
        self.replay.toggle()
        self._follow()

    def action_step(self, events: int) -> None:
        """One event on or back."""
        self.replay.step(events)
        self._follow()

    def action_phase(self, forward: bool) -> None:
        """The next or previous phase of a load."""
        self._jump(PHASES, forward)

    def action_verdict(self, forward: bool) -> None:
        """The next or previous verdict, dead ends among them."""
        self._jump(VERDICTS, forward)

    def action_pace(self, steps: int) -> None:
        """Faster or slower."""
        self.replay.pace(steps)
        self._follow()

    def action_seek(self, fraction: float) -> None:
        """The start or the end."""
        self.replay.seek(fraction)
        self._follow()

    def _jump(self, kinds: Collection[MarkKind], forward: bool) -> None:
        if not self.replay.jump(kinds, forward):
            self.app.bell()
        self._follow()

    def _follow(self) -> None:
        # A key answers at once, not at the next frame.
        self.show(self.source.state, self.source.now())
        self.query_one(ScrubBar).follow()
