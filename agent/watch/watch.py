"""Follows one load: log bytes in; phases, progress, an ETA and, in the end, the cause of a failure out."""

from collections.abc import Mapping

from agent.core.model import Failure, Phase
from agent.ports import PhaseMark, ServerKind, WatchUpdate
from agent.watch.cause import Evidence, diagnose
from agent.watch.eta import Bar, remaining_s
from agent.watch.lines import Line, LineSplitter, origin

_HEAD_KEPT = 64 * 1024
_PROGRESS_EVERY_S = 1.0


class LoadWatch:
    """The watch of one launch. Times are seconds since it was started, of a clock that only goes forward."""

    def __init__(self, kind: ServerKind, usual_phases_s: Mapping[Phase, float] | None) -> None:
        """`usual_phases_s`: durations of earlier loads of the same target, model and kind, if there were any."""
        self._kind = kind
        self._usual = usual_phases_s
        self._order = {phase: index for index, phase in enumerate(kind.phases)}
        self._splitter = LineSplitter()
        self._evidence = Evidence()
        self._head: list[str] = []
        self._head_room = _HEAD_KEPT
        self._now_s = 0.0
        self._began_s = 0.0
        self._spent: dict[Phase, float] = {}
        self._loads: dict[str, int] = {}
        self._loading: set[str] = set()
        self._bar: tuple[int, int] | None = None
        self._bar_began_s = 0.0
        self._told: tuple[int, int] | None = None
        self._told_s = 0.0
        self._fraction = 0.0
        self.phase = Phase.LAUNCH
        self.fatal: str | None = None
        """Why the start has failed, once a line proved it, though the process may live on."""

    def feed(self, data: bytes, now_s: float) -> list[WatchUpdate]:
        """What these bytes of the log tell: phases that begin, and at most once a second how far the load is.

        To be called without bytes too while the log is silent, so that the ETA goes on.
        """
        self._now_s = now_s
        updates: list[WatchUpdate] = []
        if data and self.phase is Phase.LAUNCH:
            self._enter(Phase.IMPORT, updates)
        for line in self._splitter.feed(data):
            self._line(line, updates)
        if not self.is_up:
            mark = self._kind.phase_of(self._splitter.peek())
            if mark is not None and mark.done is not None:
                self._mark("", mark, updates)
            if self._progress_due():
                updates.append(self._update(begins=False))
        return updates

    @property
    def is_up(self) -> bool:
        """Whether the log says that the server is ready. That is not proof: the kind's ready() asks the server."""
        return self.phase in (Phase.READY, Phase.SERVING)

    def log_head(self) -> str:
        """The first 64 KiB of the log, cleaned, without redrawn bars."""
        return "\n".join(self._head)

    def durations_s(self) -> dict[Phase, float]:
        """Seconds of each phase so far (until the log's own word that it is ready), for the history of loads."""
        return dict(self._spent) if self.is_up else self._spent_now()

    def diagnose(self, exit_code: int | None, stopped_by_us: bool) -> Failure:
        """Why the launch failed, once it has ended or is given up. The texts are clean, but not redacted."""
        for line in self._splitter.end():
            self._evidence.add(line)
        return diagnose(self._evidence.lines(), exit_code, self.phase, stopped_by_us)

    def _line(self, line: Line, updates: list[WatchUpdate]) -> None:
        self._evidence.add(line)
        if self._head_room > 0 and not line.redraw:
            self._head.append(line.text[: self._head_room])
            self._head_room -= len(line.text) + 1
        if self.fatal is None:
            self.fatal = self._kind.fatal(line.text)
        if not self.is_up and (mark := self._kind.phase_of(line.text)):
            self._mark(origin(line.text).writer, mark, updates)

    def _mark(self, writer: str, mark: PhaseMark, updates: list[WatchUpdate]) -> None:
        ahead = self._order[mark.phase] - self._order[self.phase]
        if mark.begins and mark.phase is Phase.LOAD_WEIGHTS:
            self._loading.add(writer)
            rounds = max(self._loads.values(), default=0)
            self._loads[writer] = self._loads.get(writer, 0) + 1
            if self._loads[writer] > max(rounds, 1) and ahead < 0:  # the draft model's weights, under speculation
                self._enter(Phase.LOAD_WEIGHTS, updates)
        elif mark.begins and self._order[mark.phase] > self._order[Phase.LOAD_WEIGHTS]:
            self._loading.discard(writer)
            if self._loading and self.phase is Phase.LOAD_WEIGHTS and ahead == 1:
                return  # another rank still loads
        if ahead > 0:
            self._enter(mark.phase, updates)
        if mark.done is not None and mark.total and mark.phase is self.phase:
            self._drawn(mark.done, mark.total)

    def _enter(self, phase: Phase, updates: list[WatchUpdate]) -> None:
        self._spent = self._spent_now()
        self.phase = phase
        self._began_s = self._now_s
        self._bar = None
        updates.append(self._update(begins=True))

    def _drawn(self, done: int, total: int) -> None:
        if self._bar is None or total != self._bar[1] or done < self._bar[0]:  # a new bar
            self._bar_began_s = self._now_s if done == 0 else self._began_s
        self._bar = (done, total)

    def _progress_due(self) -> bool:
        news = bool(self._usual) or self._bar != self._told
        return news and self._now_s - self._told_s >= _PROGRESS_EVERY_S

    def _update(self, *, begins: bool) -> WatchUpdate:
        self._told, self._told_s = self._bar, self._now_s
        fraction, remaining = self._estimate()
        done, total = self._bar or (None, None)
        return WatchUpdate(
            phase=self.phase, begins=begins, done=done, total=total, fraction=fraction, remaining_s=remaining
        )

    def _estimate(self) -> tuple[float | None, float | None]:
        if self.is_up:
            return 1.0, 0.0
        bar = None
        if self._bar is not None:
            bar = Bar(done=self._bar[0] / self._bar[1], seconds=self._now_s - self._bar_began_s)
        remaining = remaining_s(self._kind.phases, self._usual, self._spent_now(), self.phase, bar)
        if remaining is None:
            return None, None
        if self._now_s + remaining > 0:
            # What was shown as done is not taken back, and only a ready server has all of it.
            self._fraction = min(0.99, max(self._fraction, self._now_s / (self._now_s + remaining)))
        return self._fraction, remaining

    def _spent_now(self) -> dict[Phase, float]:
        return {**self._spent, self.phase: self._spent.get(self.phase, 0.0) + self._now_s - self._began_s}
