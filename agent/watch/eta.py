"""How long a load will still take: from the phases of earlier loads, and from a progress bar that is being drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.core.model import Phase

_SEVERAL_BARS = frozenset({Phase.GRAPH_CAPTURE})
"""Phases that draw bar after bar (decode, draft, draft extend): the end of one is not the end of the phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A progress bar: how much of it is done (0 to 1), and for how long it has been drawn."""

    done: float
    seconds: float


def remaining_s(
    order: Sequence[Phase],
    usual_s: Mapping[Phase, float] | None,
    spent_s: Mapping[Phase, float],
    phase: Phase,
    bar: Bar | None,
) -> float | None:
    """Seconds until ready, or None where no earlier load says how long the phases take.

    `spent_s` are the seconds of each phase so far, `order` is the order of phases of this kind of server.
    """
    if not usual_s or phase not in order:
        return None
    left = {p: max(0.0, usual_s.get(p, 0.0) - spent_s.get(p, 0.0)) for p in order[order.index(phase) :]}
    if bar is not None and bar.done > 0:
        left[phase] = _with_bar(left[phase], bar, phase)
    return sum(left.values())


def _with_bar(usual_left_s: float, bar: Bar, phase: Phase) -> float:
    pace = bar.seconds * (1 - bar.done) / bar.done
    if phase in _SEVERAL_BARS:
        return max(pace, usual_left_s)
    if bar.done >= 1:  # what follows the bar (repacking) is known from earlier loads only, and belongs to its scale
        return min(usual_left_s, bar.seconds)
    return max(pace, usual_left_s * (1 - bar.done))
