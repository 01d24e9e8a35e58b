"""A recorded session as a Source: the same reducer and the same screen, with a position that can be moved."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from agent.core.events import Event
from agent.core.state import Launch
from agent.core.views.flag_help import FlagFacts
from agent.core.views.panels import GpuUse
from agent.logtimes import WHOLE, LogTimes, Shown
from agent.replay import Recording, Speeds
from agent.review.marks import DECISIONS, MarkKind, Trail
from tui.source import no_flag_facts

SPEEDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
USUAL = Speeds(loads=16, decisions=1)

UNDATED = "the whole log: its lines have no dates"
"""What is said of a log that cannot be cut at a moment."""

VERDICTS: frozenset[MarkKind] = frozenset({"verdict", "dead end"})
PHASES: frozenset[MarkKind] = frozenset({"launch", "phase", "ready"})


class ReplaySource:
    """Plays a recording. Whoever asks for `now()` moves it on, so that it needs no task of its own."""

    read_only = "a recording: nothing can be changed"
    elsewhere = False

    def __init__(
        self,
        recording: Recording,
        folder: Path,
        redact: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
        trouble: str = "",
    ) -> None:
        """Begins at the first event, playing. `redact` takes secrets out of a log's line; `clock` counts seconds."""
        self.recording = recording
        self.folder = folder
        self.redact = redact
        self.trouble = trouble
        self.known_flags: Sequence[Sequence[str]] = ()
        self.flag_facts: Callable[[str], FlagFacts | None] = no_flag_facts
        # Telemetry is not recorded.
        self.gpus: tuple[GpuUse, ...] = ()
        # Playing begins with all events of the first moment; a step back leads to those before.
        self.index = recording.clock.index_at(0.0)
        self.state = recording.state_at(self.index)
        self.version = 0
        self.speeds = USUAL
        self.playing = True
        self.following = ""
        """The experiment whose moments alone are gone to; empty where it is all of them."""
        self._logs: dict[str, LogTimes] = {}
        self._cut: tuple[str, int, Shown] = "", 0, WHOLE
        self._offset = 0.0
        self._clock = clock
        self._moved_at = clock()

    @property
    def fraction(self) -> float:
        """How much of the recording has been played, 0 to 1, on the playing clock."""
        whole = self.recording.clock.whole_s
        return self._offset / whole if whole else 1.0

    @property
    def reading(self) -> bool:
        """Whether a decision is shown: the speed of decisions is in effect then, else that of loads."""
        return self.recording.clock.is_reading(self._offset)

    @property
    def trail(self) -> Trail:
        """The decisions, or all that became of the experiment that is followed."""
        return self.recording.trail(None if self.following else DECISIONS, self.following)

    def now(self) -> float:
        """The recorded time at the playing position, in seconds since the epoch."""
        self._play_on()
        return self.recording.clock.time_at(self.index, self._offset)

    def log_shown(self, launch: Launch, now: float) -> Shown:
        """What was printed by then, to a second; of a launch that has ended all."""
        if launch.ended_at is not None:
            return WHOLE
        if self._cut[:2] != (launch.id, int(now)):
            path = self.folder / "launches" / f"{launch.id}.log"
            times = self._logs.setdefault(launch.id, LogTimes(path, launch.requested_at))
            until = times.until(now)
            self._cut = launch.id, int(now), Shown(until, "" if until is not None else UNDATED)
        return self._cut[2]

    def submit(self, event: Event) -> None:
        """A replay takes no event: what happened is what happened."""

    def toggle(self) -> None:
        """Play or pause. Playing on from the end begins again."""
        self._play_on()
        if not self.playing and self.index == self.recording.last:
            self.seek(0.0)
        self.playing = not self.playing

    def pace(self, steps: int) -> None:
        """Faster or slower by that many of the SPEEDS: the one that is in effect now."""
        self._play_on()
        present = self.speeds.decisions if self.reading else self.speeds.loads
        speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(present) + steps))]
        self.speeds = replace(self.speeds, decisions=speed) if self.reading else replace(self.speeds, loads=speed)

    def follow(self, experiment: str) -> None:
        """From now on only go to the moments of this experiment; of all, where it is empty."""
        self.following = experiment

    def step(self, events: int) -> None:
        """Pause, and go on (or back) by that many events."""
        self._play_on()
        self.playing = False
        self._go(self.index + events)

    def open_at(self, time: float) -> None:
        """Pause at a recorded time (seconds since the epoch)."""
        self._play_on()
        self.playing = False
        index = self.recording.index_at(time)
        self._offset = self.recording.clock.offset_of(index, time)
        self._show(index)

    def jump(self, trail: Trail, forward: bool) -> bool:
        """Go to the next (or previous) mark of a trail; whether there is one. Playing goes on from there."""
        self._play_on()
        mark = trail.after(self.index) if forward else trail.before(self.index)
        if mark is not None:
            self._go(mark.index)
        return mark is not None

    def seek(self, fraction: float) -> None:
        """Go to a part (0 to 1) of the recording, as the playing clock counts. Playing goes on from there."""
        self._play_on()
        self._offset = max(0.0, min(1.0, fraction)) * self.recording.clock.whole_s
        self._show(self.recording.clock.index_at(self._offset))

    def _play_on(self) -> None:
        clock = self._clock()
        passed, self._moved_at = clock - self._moved_at, clock
        if not self.playing:
            return
        self._offset = self.recording.clock.played_on(self._offset, passed, self.speeds)
        # Events of one moment have one offset: a step to the first of them must not be undone by going on.
        self._show(max(self.index, self.recording.clock.index_at(self._offset)))
        if self.index == self.recording.last:
            self.playing = False

    def _go(self, index: int) -> None:
        index = max(0, min(self.recording.last, index))
        self._offset = self.recording.clock.offsets[index]
        self._show(index)

    def _show(self, index: int) -> None:
        if index != self.index:
            self.state = self.recording.state_at(index)
            self.index = index
            self.version += 1
