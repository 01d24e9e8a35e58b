"""Follows one load: log bytes in; phases, progress, an ETA and, in the end, the cause of a failure out."""

from collections.abc import Mapping
from dataclasses import replace

from agent.core.model import Failure, Phase, Quote
from agent.ports import PhaseMark, ServerKind, WatchUpdate
from agent.text import decode
from agent.watch.engine import LogEngine
from agent.watch.eta import Bar, remaining_s
from agent.watch.hang import HangWatch
from agent.watch.host import Activity
from agent.watch.outcome import Diagnosis, conclude
from agent.watch.records import Record, record

_HEAD_KEPT = 256 * 1024
_PROGRESS_EVERY_S = 1.0
_LOG = "server.log"


class LoadWatch:
    """The watch of one launch. Times are seconds since it was started, of a clock that only goes forward."""

    def __init__(
        self, kind: ServerKind, usual_phases_s: Mapping[Phase, float] | None, index_shards: int | None = None
    ) -> None:
        """`usual_phases_s`: durations of earlier loads of the same target, model and kind, if there were any.

        `index_shards`: the number of weight files that the model's index lists, where it is known.
        """
        self.index_shards = index_shards
        self._hang = HangWatch(usual_phases_s)
        self._kind = kind
        self._usual = usual_phases_s
        self._engine = LogEngine(kind)
        self._head = b""
        self._now_s = 0.0
        self._began_s = 0.0
        self._spent: dict[Phase, float] = {}
        self._bar: tuple[int, int] | None = None
        self._bar_began_s = 0.0
        self._bar_drawn_s = 0.0
        self._again = False
        self._told: tuple[int, int] | None = None
        self._told_s = 0.0
        self._fraction = 0.0
        self.phase = Phase.LAUNCH

    def feed(self, data: bytes, now_s: float) -> list[WatchUpdate]:
        """What these bytes of the log tell: phases that begin, and at most once a second how far the load is.

        To be called without bytes too while the log is silent, so that the ETA goes on.
        """
        self._now_s = now_s
        updates: list[WatchUpdate] = []
        if data and self.phase is Phase.LAUNCH:
            self._engine.tracker.mark("", None, PhaseMark(phase=Phase.IMPORT))
            self._enter(Phase.IMPORT, updates)
        self._head += data[: max(0, _HEAD_KEPT - len(self._head))]
        waited = self._engine.waits
        for mark, entered in self._engine.feed(data):
            self._mark(mark, entered, updates)
        if data and self._engine.waits == waited:  # a line that only says that it waits is no progress
            self._hang.moved(now_s)
        self._hang.behind(self._engine.tracker.behind(), now_s)
        if not self.is_up:
            unfinished = self._engine.unfinished()
            if unfinished is not None and unfinished.done is not None:
                entered = self._engine.tracker.mark("", None, unfinished)
                self._mark(unfinished, entered, updates)
            if self._progress_due():
                updates.append(self._update(begins=False))
        return updates

    @property
    def fatal(self) -> str | None:
        """Why the start has failed, once a line proved it, though the process may live on."""
        return self._engine.fatal

    @property
    def is_up(self) -> bool:
        """Whether the log says that the server is ready. That is not proof: the kind's ready() asks the server."""
        return self.phase in (Phase.READY, Phase.SERVING)

    def look(self, activity: Activity) -> None:
        """What the host says of the processes, while the log is silent."""
        self._hang.look(activity, self._now_s)

    @property
    def silent_s(self) -> float:
        """Seconds since the log went on."""
        return self._hang.silent_s(self._now_s)

    def doubt(self) -> str:
        """What makes the load suspect now: a traceback, a rank that stays behind, silence. Empty if nothing does."""
        if self.is_up:
            return ""
        found = self.conclude()
        if found.outcome == "failed" and found.root is not None:
            where = "" if found.rank is None else f" on rank {found.rank}"
            return f"suspect{where}: {found.reason}"
        return self._hang.doubt(self.phase, self._now_s)

    def notes(self) -> list[str]:
        """What a person should know of a load that nothing else tells."""
        drawn = self._engine.tracker.shards
        if drawn is None or self.index_shards is None or drawn == self.index_shards:
            return []
        missing = f"only {drawn} weight files are loaded, the model's index lists {self.index_shards}"
        return [f"{missing}: the rest stays random" if drawn < self.index_shards else missing]

    def log_head(self) -> str:
        """The first 256 KiB of the log, cleaned, of redrawn bars only the last state."""
        rows = (row.rsplit(b"\r", 1)[-1] for row in self._head.replace(b"\r\n", b"\n").split(b"\n"))
        return "\n".join(text for row in rows if (text := decode(row, len(row) + 1)))

    def durations_s(self) -> dict[Phase, float]:
        """Seconds of each phase so far (until the log's own word that it is ready), for the history of loads."""
        return dict(self._spent) if self.is_up else self._spent_now()

    def conclude(self, exit_code: int | None = None, *, by_us: bool = False) -> Diagnosis:
        """What has become of the load so far, and why. `by_us`: tunebot itself stopped the server."""
        found = conclude(self._engine, exit_code, by_us=by_us)
        if exit_code is not None or by_us or found.category != "hang-silent":
            return found
        # It has not ended: silence is a hang only where the host shows no other reason for it.
        doubt = self._hang.doubt(self.phase, self._now_s)
        if doubt and not doubt.startswith("slow: "):
            return replace(found, reason=doubt)
        return replace(
            found,
            outcome="in-progress",
            category="none",
            reason=doubt or f"still in {self.phase}",
            means="",
            remedies=(),
        )

    def diagnose(self, exit_code: int | None, stopped_by_us: bool) -> Failure:
        """Why the launch failed, once it has ended or is given up. The texts are clean, but not redacted."""
        for _ in self._engine.finish():
            pass
        if stopped_by_us:
            phase = Phase.SERVING if self.phase is Phase.READY else self.phase
            return Failure(phase=phase, reason="stopped by tunebot", category="none", exit_code=exit_code)
        found = self.conclude(exit_code)
        silent = found.outcome in ("ready", "in-progress")  # so says the log; but it has ended
        return Failure(
            phase=Phase.SERVING if found.phase is Phase.READY else found.phase,
            reason=self._ended(exit_code) if silent else found.reason,
            category="root-not-in-log" if silent else found.category,
            evidence=tuple(_quote(row) for row in (found.root, *found.near[:2]) if row is not None),
            rank=found.rank,
            exit_code=exit_code,
        )

    def _ended(self, exit_code: int | None) -> str:
        last = self._engine.last_lines()
        said = f"last line: {record(0, last[-1]).message}" if last else "it wrote nothing"
        return f"gave up; {said}" if exit_code is None else f"exited with code {exit_code}; {said}"

    def _mark(self, mark: PhaseMark, entered: bool, updates: list[WatchUpdate]) -> None:
        if entered:
            self._enter(self._engine.tracker.phase, updates)
        if mark.done is not None and mark.total and mark.phase is self.phase:
            self._drawn(mark.done, mark.total)

    def _enter(self, phase: Phase, updates: list[WatchUpdate]) -> None:
        self._spent = self._spent_now()
        self._again = phase in self._spent
        self.phase = phase
        self._began_s = self._now_s
        self._bar = None
        updates.append(self._update(begins=True))

    def _drawn(self, done: int, total: int) -> None:
        if self._bar is None or total != self._bar[1] or done < self._bar[0]:  # a new bar
            self._bar_began_s = self._now_s if done == 0 else self._began_s
        if self._bar != (done, total):
            self._bar_drawn_s = self._now_s
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
            done, total = self._bar
            drawn = self._bar_drawn_s - self._bar_began_s
            bar = Bar(done=done, total=total, seconds=drawn, since=self._now_s - self._bar_drawn_s)
        remaining = remaining_s(self._kind.phases, self._usual, self._spent_now(), self.phase, bar, self._again)
        if remaining is None:
            return None, None
        if self._now_s + remaining > 0:
            # What was shown as done is not taken back, and only a ready server has all of it.
            self._fraction = min(0.99, max(self._fraction, self._now_s / (self._now_s + remaining)))
        return self._fraction, remaining

    def _spent_now(self) -> dict[Phase, float]:
        return {**self._spent, self.phase: self._spent.get(self.phase, 0.0) + self._now_s - self._began_s}


def _quote(row: Record) -> Quote:
    return Quote(path=_LOG, line=row.number, text=row.text)
