"""Where a load stands: phases in their order, bars, and how far each rank has come."""

from agent.core.model import Phase
from agent.ports import PhaseMark, ServerKind

_EARLY = (Phase.CONFIG, Phase.DIST_INIT, Phase.LOAD_WEIGHTS)


class PhaseTracker:
    """Follows the marks of a log. Late lines of other ranks never turn it back."""

    def __init__(self, kind: ServerKind) -> None:
        self._order = {phase: index for index, phase in enumerate(kind.phases)}
        self._loads: dict[str, int] = {}
        self._loading: set[str] = set()
        self._reached: dict[str, tuple[int, bool]] = {}
        self.phase = Phase.LAUNCH
        self.passed: dict[str, int] = {}
        """How many marks each writer has passed: a suspect after which its writer went on is none."""
        self.bar: tuple[int, int] | None = None
        self.bars_ended = 0
        self.shards: int | None = None
        """The total of the weight bar, which counts the files that are there."""

    @property
    def is_up(self) -> bool:
        """Whether the log says that the server is ready."""
        return self.phase in (Phase.READY, Phase.SERVING)

    def mark(self, writer: str, rank: int | None, mark: PhaseMark) -> bool:
        """Take a mark in; whether a phase begins."""
        if mark.phase not in self._order:
            return False
        if mark.done is not None and mark.total:
            return self._drawn(mark, mark.done, mark.total)
        self.passed[writer] = self.passed.get(writer, 0) + 1
        index = self._order[mark.phase]
        if rank is not None:
            self._reached[writer] = max(self._reached.get(writer, (0, False)), (index, not mark.begins))
        if self.is_up and mark.begins and mark.phase in _EARLY:
            self._restart()
        ahead = index - self._order[self.phase]
        if mark.begins and mark.phase is Phase.LOAD_WEIGHTS:
            self._loading.add(writer)
            rounds = max(self._loads.values(), default=0)
            self._loads[writer] = self._loads.get(writer, 0) + 1
            if self._loads[writer] > max(rounds, 1) and ahead < 0:  # the draft model's weights, under speculation
                return self._enter(Phase.LOAD_WEIGHTS)
        elif mark.begins and index > self._order[Phase.LOAD_WEIGHTS]:
            self._loading.discard(writer)
            if self._loading and self.phase is Phase.LOAD_WEIGHTS and ahead == 1:
                return False  # another rank still loads
        return ahead > 0 and self._enter(mark.phase)

    def behind(self) -> dict[str, Phase]:
        """Writers (with a rank) that have not come to a mark that another one passed, and the phase of that mark."""
        if len(self._reached) < 2:
            return {}
        furthest = max(self._reached.values())
        phases = list(self._order)
        return {writer: phases[furthest[0]] for writer, at in self._reached.items() if at < furthest}

    def _enter(self, phase: Phase) -> bool:
        self.phase, self.bar = phase, None
        return True

    def _drawn(self, mark: PhaseMark, done: int, total: int) -> bool:
        entered = self._order[mark.phase] > self._order[self.phase] and self._enter(mark.phase)
        if mark.phase is self.phase:
            if done == total and self.bar != (done, total):
                self.bars_ended += 1
            self.bar = (done, total)
            if mark.phase is Phase.LOAD_WEIGHTS and self.shards is None:
                self.shards = total
        return entered

    def _restart(self) -> None:
        """A log with a second start in it: what the first one did is past."""
        self._loads.clear()
        self._loading.clear()
        self._reached.clear()
        self.phase, self.bar, self.bars_ended, self.shards = Phase.IMPORT, None, 0, None
