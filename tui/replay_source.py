"""A recorded session as a Source: the same reducer and the same screen, with a position that can be moved."""

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from agent.core.events import Event
from agent.core.views.panels import GpuUse
from agent.replay import MarkKind, Recording

SPEEDS = (1, 2, 4, 8, 16, 32, 64)
USUAL_SPEED = 8

VERDICTS: frozenset[MarkKind] = frozenset({"verdict", "dead end"})
PHASES: frozenset[MarkKind] = frozenset({"launch", "phase", "ready"})


class ReplaySource:
    """Plays a recording. Whoever asks for `now()` moves it on, so that it needs no task of its own."""

    read_only = "a recording: nothing can be changed"
    elsewhere = False
    trouble = ""

    def __init__(
        self,
        recording: Recording,
        folder: Path,
        redact: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins at the first event, playing. `redact` takes secrets out of a log's line; `clock` counts seconds."""
        self.recording = recording
        self.folder = folder
        self.redact = redact
        self.known_flags: Sequence[Sequence[str]] = ()
        # Telemetry is not recorded.
        self.gpus: tuple[GpuUse, ...] = ()
        # Playing begins with all events of the first moment; a step back leads to those before.
        self.index = recording.index_played(0.0)
        self.state = recording.state_at(self.index)
        self.version = 0
        self.speed = USUAL_SPEED
        self.playing = True
        self._offset = 0.0
        self._clock = clock
        self._moved_at = clock()

    @property
    def fraction(self) -> float:
        """How much of the recording has been played, 0 to 1, on the playing clock."""
        whole = self.recording.playing_s
        return self._offset / whole if whole else 1.0

    def now(self) -> float:
        """The recorded time at the playing position, in seconds since the epoch."""
        self._play_on()
        return self.recording.time_played(self.index, self._offset)

    def submit(self, event: Event) -> None:
        """A replay takes no event: what happened is what happened."""

    def toggle(self) -> None:
        """Play or pause. Playing on from the end begins again."""
        self._play_on()
        if not self.playing and self.index == self.recording.last:
            self.seek(0.0)
        self.playing = not self.playing

    def pace(self, steps: int) -> None:
        """Faster or slower by that many of the SPEEDS."""
        self._play_on()
        place = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, place))]

    def step(self, events: int) -> None:
        """Pause, and go on (or back) by that many events."""
        self._play_on()
        self.playing = False
        self._go(self.index + events)

    def jump(self, kinds: Collection[MarkKind], forward: bool) -> bool:
        """Go to the next (or previous) mark of these kinds; whether there is one. Playing goes on from there."""
        self._play_on()
        recording = self.recording
        mark = recording.next_mark(self.index, kinds) if forward else recording.previous_mark(self.index, kinds)
        if mark is not None:
            self._go(mark.index)
        return mark is not None

    def seek(self, fraction: float) -> None:
        """Go to a part (0 to 1) of the recording, as the playing clock counts. Playing goes on from there."""
        self._play_on()
        self._offset = max(0.0, min(1.0, fraction)) * self.recording.playing_s
        self._show(self.recording.index_played(self._offset))

    def _play_on(self) -> None:
        clock = self._clock()
        passed, self._moved_at = clock - self._moved_at, clock
        if not self.playing:
            return
        self._offset = min(self._offset + passed * self.speed, self.recording.playing_s)
        # Events of one moment have one offset: a step to the first of them must not be undone by going on.
        self._show(max(self.index, self.recording.index_played(self._offset)))
        if self.index == self.recording.last:
            self.playing = False

    def _go(self, index: int) -> None:
        index = max(0, min(self.recording.last, index))
        self._offset = self.recording.offsets[index]
        self._show(index)

    def _show(self, index: int) -> None:
        if index != self.index:
            self.state = self.recording.state_at(index)
            self.index = index
            self.version += 1
