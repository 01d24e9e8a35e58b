"""Whether a load still moves: a timer for each phase, and evidence beyond silence."""

from collections.abc import Mapping

from agent.core.model import Phase
from agent.core.views.basics import duration
from agent.watch.host import Activity, Look

# Seconds of silence in a phase before anybody needs to know, where no earlier load says how long it takes.
_QUIET_S: Mapping[Phase, float] = {
    Phase.LAUNCH: 60, Phase.IMPORT: 60, Phase.ARGS: 30, Phase.CONFIG: 60, Phase.DIST_INIT: 60,
    Phase.LOAD_WEIGHTS: 120, Phase.KV_CACHE: 60, Phase.PROFILE: 120, Phase.COMPILE: 300, Phase.GRAPH_CAPTURE: 180,
    Phase.HTTP_START: 30, Phase.WARMUP: 90,
}  # fmt: skip
_LEAST_QUIET_S = 20.0
_BEHIND_S = 15.0
_BETWEEN_S = 15.0
"""How long after a compiler the next one may begin: the same build goes on meanwhile."""
_IDLE_SHARE = 0.02
"""CPU seconds a second of all processes together below which they wait."""


class HangWatch:
    """Takes in what moved and what the host says; tells what there is to be said of it."""

    def __init__(self, usual_s: Mapping[Phase, float] | None) -> None:
        self._usual = usual_s or {}
        self._moved_s = 0.0
        self._first: tuple[float, Activity] | None = None
        self._last: tuple[float, Activity] | None = None
        self._compiled: tuple[float, Activity] | None = None
        self._behind: dict[str, float] = {}

    def moved(self, now_s: float) -> None:
        """The log went on."""
        self._moved_s = now_s
        self._first = self._compiled = None

    def silent_s(self, now_s: float) -> float:
        """Seconds since the log went on."""
        return now_s - self._moved_s

    def look(self, activity: Activity, now_s: float) -> None:
        """What the host says now; only what it says while the log is silent is compared."""
        if self._first is None:
            self._first = (now_s, activity)
        self._last = (now_s, activity)
        if activity.compilers:
            self._compiled = self._last

    def behind(self, writers: Mapping[str, Phase], now_s: float) -> None:
        """The ranks that have not passed what another one has."""
        self._behind = {writer: self._behind.get(writer, now_s) for writer in writers}

    def doubt(self, phase: Phase, now_s: float) -> str:
        """What makes the load look stuck or slow; empty if nothing does."""
        silent = self.silent_s(now_s)
        activity = self._last[1] if self._last is not None and self._first is not None else None
        if silent >= _LEAST_QUIET_S and self._compiled is not None and now_s - self._compiled[0] <= _BETWEEN_S:
            compilers = ", ".join(self._compiled[1].compilers)
            return f"slow: compiling in {phase} for {duration(silent)} ({compilers})"
        late = sorted(writer for writer, since in self._behind.items() if now_s - since >= _BEHIND_S)
        if late and silent >= _BEHIND_S:
            waited = duration(now_s - min(self._behind[writer] for writer in late))
            return f"{_names(late)} has not passed {phase}, other ranks did {waited} ago{_frozen(activity)}"
        if activity is not None and activity.stopped and silent >= _BEHIND_S:
            return f"no progress for {duration(silent)} in {phase}{_frozen(activity)}"
        if silent < self._limit_s(phase):
            return ""
        usual = f"; usually {duration(self._usual[phase])}" if phase in self._usual else ""
        return f"no progress for {duration(silent)} in {phase}{usual}{self._evidence()}"

    def _limit_s(self, phase: Phase) -> float:
        if phase in self._usual:
            return max(_LEAST_QUIET_S, 3 * self._usual[phase])
        return _QUIET_S.get(phase, 60)

    def _evidence(self) -> str:
        if self._first is None or self._last is None or self._last[0] - self._first[0] < 1:
            return ""
        seconds = self._last[0] - self._first[0]
        share = (self._last[1].cpu_s - self._first[1].cpu_s) / seconds
        before, after = self._first[1].gpu_mib, self._last[1].gpu_mib
        if before is not None and after is not None and before != after:
            return "; GPU memory still moves"
        if share < _IDLE_SHARE:
            return "; the processes wait (no CPU time)"
        return f"; the processes use {share:.1f} CPUs"


def _names(writers: list[str]) -> str:
    return ", ".join(writers[:4]) + (f" and {len(writers) - 4} more" if len(writers) > 4 else "")


def _frozen(activity: Activity | None) -> str:
    stopped = activity.stopped if activity is not None else ()
    return f"; stopped (state T): {', '.join(_named(look) for look in stopped[:3])}" if stopped else ""


def _named(look: Look) -> str:
    if look.rank is not None:
        return f"rank {look.rank}"
    titled = look.title if look.title and " " not in look.title else look.name  # a name is cut at 15 characters
    return f"{titled} ({look.pid})"
