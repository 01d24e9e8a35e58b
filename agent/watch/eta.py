"""How long a load will still take: from the phases of earlier loads, and from a progress bar that is being drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.core.model import Phase

_SEVERAL_BARS = frozenset({Phase.GRAPH_CAPTURE})
"""Phases that draw bar after bar (decode, draft, draft extend): the end of one is not the end of the phase."""


_TRUSTED = 0.08
"""From this much of a bar on its pace counts alone: the first files come from a cold disk, or a warm cache."""
_AFTER_BAR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A progress bar: steps done of all, the seconds it took to draw those, and the seconds since the last one."""

    done: int
    total: int
    seconds: float
    since: float = 0.0

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1: between two steps it goes on at the pace so far, up to the next one."""
        on = self.since * self.done / self.seconds if self.seconds > 0 else 0.0
        return min(self.total, self.done + min(1.0, on)) / self.total

    @property
    def left_s(self) -> float:
        """The seconds that the rest takes at the pace so far."""
        return (self.seconds + self.since) * (1 - self.share) / self.share


def remaining_s(
    order: Sequence[Phase],
    usual_s: Mapping[Phase, float] | None,
    spent_s: Mapping[Phase, float],
    phase: Phase,
    bar: Bar | None,
    again: bool = False,
) -> float | None:
    """Seconds until ready, or None where no earlier load says how long the phases take.

    `spent_s` are the seconds of each phase so far, `order` is the order of phases of this kind of server. `again`: the
    load came back to this phase.
    """
    if not usual_s or phase not in order:
        return None
    left = {p: max(0.0, usual_s.get(p, 0.0) - spent_s.get(p, 0.0)) for p in order[order.index(phase) :]}
    if again and phase is Phase.LOAD_WEIGHTS:  # the weights of a draft model are small beside the first ones
        left[phase] = min(left[phase], _AFTER_BAR * usual_s.get(phase, 0.0))
    if bar is not None and bar.done > 0:
        left[phase] = _with_bar(left[phase], usual_s.get(phase, 0.0), bar, phase)
    return sum(left.values())


def _with_bar(left_s: float, usual_s: float, bar: Bar, phase: Phase) -> float:
    pace = bar.left_s
    if phase in _SEVERAL_BARS:
        return max(pace, left_s)
    if bar.done >= bar.total:  # what follows the bar (repacking) is known from earlier loads only
        return min(left_s, max(_AFTER_BAR * usual_s, bar.seconds if bar.seconds < usual_s / 2 else 0.0))
    trust = min(1.0, bar.share / _TRUSTED)
    return trust * pace + (1 - trust) * left_s
