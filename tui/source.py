"""Where the screen gets its state from, and where a person's wishes go. Live and replay fill the same Protocol."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from agent.core.events import Event, SessionEnded
from agent.core.state import State
from agent.core.views.panels import GpuUse


class Source(Protocol):
    """A session that can be looked at. `version` grows with every change of `state`."""

    state: State
    version: int
    folder: Path
    live: bool
    gpus: tuple[GpuUse, ...]
    """What the GPUs do at the moment; empty where nobody looks."""
    redact: Callable[[str], str]
    """Takes the secrets out of a line of a log before it is drawn."""
    known_flags: Sequence[Sequence[str]]
    """The spellings of each flag that the server has; empty where nobody knows."""

    def now(self) -> float:
        """The time to show, in seconds since the epoch: the clock's, or that of the recorded moment."""

    def submit(self, event: Event) -> None:
        """Hand in an event from a person. A replay takes none."""


class Live:
    """The running session: the engine calls it after every event, the screen looks at it 20 times a second."""

    live = True

    state: State
    folder: Path

    def __init__(self) -> None:
        self.version = 0
        self.gpus: tuple[GpuUse, ...] = ()
        self.end: SessionEnded | None = None
        self.redact: Callable[[str], str] = str
        self.known_flags: Sequence[Sequence[str]] = ()
        self._submit: Callable[[Event], None] | None = None

    def connect(self, submit: Callable[[Event], None], folder: Path) -> None:
        """Take the engine's submit function and the session's folder, before the screen is shown."""
        self._submit, self.folder = submit, folder

    def __call__(self, before: State, event: Event, after: State) -> None:
        """The engine's listener."""
        self.state = after
        self.version += 1
        if isinstance(event, SessionEnded):
            self.end = event

    def watch_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        """Take what the telemetry saw."""
        if gpus != self.gpus:
            self.gpus = gpus
            self.version += 1

    def now(self) -> float:
        """The clock's time."""
        return time.time()

    def submit(self, event: Event) -> None:
        """Hand the event to the engine."""
        if self._submit is not None:
            self._submit(event)
