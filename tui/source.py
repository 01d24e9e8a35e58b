"""Where the screen gets its state from, and where a person's wishes go. Live and replay fill the same Protocol."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from agent.core.events import Event, SessionEnded
from agent.core.state import Launch, State
from agent.core.views.flag_help import FlagFacts
from agent.core.views.panels import GpuUse
from agent.logtimes import WHOLE, Shown


def no_flag_facts(name: str) -> FlagFacts | None:
    """Nothing is known of any flag."""
    return None


class Source(Protocol):
    """A session that can be looked at. `version` grows with every change of `state`."""

    state: State
    version: int
    folder: Path
    read_only: str
    """Why nothing can be changed from here; empty where it can."""
    elsewhere: bool
    """Whether the session runs in another process: leaving the screen ends nothing."""
    trouble: str
    """What keeps tunebot from working as it should; empty where all is well."""
    gpus: tuple[GpuUse, ...]
    """What the GPUs do at the moment; empty where nobody looks."""
    redact: Callable[[str], str]
    """Takes the secrets out of what is drawn, lines of a log among it."""
    known_flags: Sequence[Sequence[str]]
    """The spellings of each flag that the server has; empty where nobody knows."""
    flag_facts: Callable[[str], FlagFacts | None]
    """What the server's source says of the flag of a name, None where that is not known (yet)."""

    def now(self) -> float:
        """The time to show, in seconds since the epoch: the clock's, or that of the recorded moment."""

    def submit(self, event: Event) -> None:
        """Hand in an event from a person. A replay takes none."""

    def log_shown(self, launch: Launch, now: float) -> Shown:
        """What of a launch's log is shown at `now`: the whole of it, but in a replay."""


class Live:
    """A session that goes on: whoever follows it calls this after every event, the screen looks 20 times a second."""

    state: State
    folder: Path

    def __init__(self, *, elsewhere: bool = False, read_only: str = "") -> None:
        self.elsewhere, self.read_only = elsewhere, read_only
        self.version = 0
        self.trouble = ""
        self.gpus: tuple[GpuUse, ...] = ()
        self.end: SessionEnded | None = None
        self.redact: Callable[[str], str] = str
        self.known_flags: Sequence[Sequence[str]] = ()
        self.flag_facts: Callable[[str], FlagFacts | None] = no_flag_facts
        self._submit: Callable[[Event], None] | None = None
        self._ahead_s = 0.0

    def connect(self, submit: Callable[[Event], None], folder: Path) -> None:
        """Take the engine's submit function and the session's folder, before the screen is shown."""
        self._submit, self.folder = submit, folder

    def __call__(self, before: State, event: Event, after: State) -> None:
        """The engine's listener."""
        self.state = after
        self.version += 1
        self.end = event if isinstance(event, SessionEnded) else None

    def watch_gpus(self, gpus: tuple[GpuUse, ...]) -> None:
        """Take what the telemetry saw."""
        if gpus != self.gpus:
            self.gpus = gpus
            self.version += 1

    def tell_trouble(self, text: str) -> None:
        """Take what is wrong, or that nothing is."""
        if text != self.trouble:
            self.trouble = text
            self.version += 1

    def set_clock(self, ahead_s: float) -> None:
        """By how much the session's clock is ahead of this machine's."""
        self._ahead_s = ahead_s

    def now(self) -> float:
        """The time where the session runs."""
        return time.time() + self._ahead_s

    def log_shown(self, launch: Launch, now: float) -> Shown:
        """All that was printed."""
        return WHOLE

    def submit(self, event: Event) -> None:
        """Hand the event to the engine."""
        if self._submit is not None:
            self._submit(event)
