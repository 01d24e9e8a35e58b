"""The run screen of a recorded session: the same picture, with a scrub bar and the keys that move it."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from agent.review.marks import Trail
from tui.replay_source import PHASES, VERDICTS, ReplaySource
from tui.screens.run import RunScreen
from tui.widgets.board import Board
from tui.widgets.keys import Keys
from tui.widgets.scrub import ScrubBar

if TYPE_CHECKING:
    from tui.app import TunebotApp

_EVENT, _DECISION, _PHASE, _VERDICT, _SPEED = (
    Binding.Group(name, compact=True) for name in ("event", "decision", "phase", "verdict", "speed")
)

_LIVE_ONLY = frozenset(
    {
        "ask",
        "grep",
        "new",
        "idea",
        "edit",
        "reorder",
        "dead_end",
        "note",
        "todo",
        "tick",
        "skip",
        "retry",
        "pause",
        "end",
    }
)
"""Actions of the run screen that hand in an event."""


class ReplayScreen(RunScreen):
    """Reviews a session: nothing in it can be changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play", id="replay.play"),
        Binding("left", "event(-1)", "back to the event before", key_display="←", group=_EVENT, id="replay.back"),
        Binding("right", "event(1)", "on to the next event", key_display="→", group=_EVENT, id="replay.forward"),
        Binding(
            "left_square_bracket",
            "decision(False)",
            "back to the decision before",
            key_display="[",
            group=_DECISION,
            id="replay.decision-back",
        ),
        Binding(
            "right_square_bracket",
            "decision(True)",
            "on to the next decision",
            key_display="]",
            group=_DECISION,
            id="replay.decision",
        ),
        Binding("f", "follow", "follow", id="replay.follow"),
        Binding("escape", "let_go", "follow all again", show=False, id="replay.let-go"),
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
        if self.replay.following:
            self.query_one(Board).cursor = self.replay.following

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What would change a session has no key here."""
        if action == "let_go":
            return bool(self.replay.following)
        return action not in _LIVE_ONLY and super().check_action(action, parameters)

    def action_play(self) -> None:
        """Play or pause."""
        self.replay.toggle()
        self._follow()

    def action_event(self, events: int) -> None:
        """One event on or back."""
        self.replay.step(events)
        self._follow()

    def action_decision(self, forward: bool) -> None:
        """The next or previous decision, or moment of the experiment that is followed."""
        self._jump(self.replay.trail, forward)

    def action_phase(self, forward: bool) -> None:
        """The next or previous phase of a load."""
        self._jump(self.replay.recording.trail(PHASES, self.replay.following), forward)

    def action_verdict(self, forward: bool) -> None:
        """The next or previous verdict, dead ends among them."""
        self._jump(self.replay.recording.trail(VERDICTS, self.replay.following), forward)

    def action_follow(self) -> None:
        """Go only through what became of the experiment under the cursor, or through all again."""
        name = self._chosen()
        if not name or name == self.replay.following:
            self.action_let_go()
            return
        self.replay.follow(name)
        self._follow()

    def action_let_go(self) -> None:
        """Go through all that happened again."""
        self.replay.follow("")
        self._follow()

    def action_pace(self, steps: int) -> None:
        """Faster or slower: loads while one waits, decisions while one is shown."""
        self.replay.pace(steps)
        self._follow()

    def action_seek(self, fraction: float) -> None:
        """The start or the end."""
        self.replay.seek(fraction)
        self._follow()

    def _jump(self, trail: Trail, forward: bool) -> None:
        if not self.replay.jump(trail, forward):
            self.app.bell()
        self._follow()

    def _follow(self) -> None:
        # A key answers at once, not at the next frame.
        cast("TunebotApp", self.app).refresh_state()
        self.query_one(ScrubBar).follow()
