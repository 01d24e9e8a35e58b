"""A stage for one screen or dialog: an app that shows it, a source that records what is submitted."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from agent.core import events as ev
from agent.core.state import Launch, State
from agent.core.views.flag_help import FlagFacts
from agent.core.views.panels import GpuUse
from agent.logtimes import WHOLE, Shown
from tui.screens.base import StateScreen
from tui.source import no_flag_facts

UNSET = object()


@dataclass
class Recorder:
    """A source whose state and time the test sets."""

    state: State
    time: float = 1000.0
    version: int = 1
    folder: Path = Path()
    read_only: str = ""
    elsewhere: bool = False
    trouble: str = ""
    gpus: tuple[GpuUse, ...] = ()
    redact: Callable[[str], str] = str
    known_flags: Sequence[Sequence[str]] = ()
    flag_facts: Callable[[str], FlagFacts | None] = no_flag_facts
    submitted: list[ev.Event] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def log_shown(self, launch: Launch, now: float) -> Shown:
        return WHOLE

    def submit(self, event: ev.Event) -> None:
        self.submitted.append(event)


class Stage(App[None]):
    """Keeps the result of a dialog, and what was copied; quitting by an action would be noticed."""

    def __init__(self, source: Recorder) -> None:
        super().__init__()
        self.source = source
        self.animation_level = "none"
        self.result: Any = UNSET
        self.copied = ""

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text

    def keep(self, result: Any) -> None:
        self.result = result

    def refresh_state(self, state: State | None = None) -> None:
        """What the real app does 20 times a second."""
        if state is not None:
            self.source.state = state
        front = next(screen for screen in reversed(self.screen_stack) if isinstance(screen, StateScreen))
        front.show(self.source.state, self.source.now())

    @property
    def text(self) -> str:
        """What is on the screen."""
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@asynccontextmanager
async def on_stage(
    source: Recorder, screen: Screen[Any], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Stage, Pilot[None]]]:
    """The screen in front, drawn once."""
    app = Stage(source)
    async with app.run_test(size=size) as pilot:
        app.push_screen(screen, app.keep)
        await pilot.pause()
        await until(pilot, lambda: bool(app.text.strip()) or app.result is not UNSET)
        yield app, pilot


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for a condition, at most five seconds."""
    async with asyncio.timeout(5):
        while not holds():
            await pilot.pause(0.01)


async def type_text(pilot: Pilot[None], text: str) -> None:
    """Type into the field that has the focus; all but the last character at once, as a paste does."""
    focused = pilot.app.focused
    assert isinstance(focused, Input)
    focused.insert_text_at_cursor(text[:-1])
    names = {" ": "space", "=": "equals_sign", "-": "minus", ":": "colon", "?": "question_mark"}
    await pilot.press(names.get(text[-1], text[-1]))
