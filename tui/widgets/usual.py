"""How a load is drawn beside what is usual: two bars a phase, aligned, and in words what is slow."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.views.usual import LoadAgainst, PhaseAgainst
from agent.text import one_line
from tui.content import MUTED, plain, row
from tui.flow import hang, lines
from tui.widgets.timeline import seconds
from tui.words import glyph_of, style_of

_NAME = 14
_WORD = 7
_TIME = 8
_LEAST_SHARE = 0.02
"""Of the longest phase: what is shorter, now and usually, is left out unless it runs, broke, or is slow."""


def draw_against(loads: Sequence[LoadAgainst], width: int) -> Content:
    """One launch under the other."""
    return lines(*(part for load in loads for part in _load(load, width, first=load is loads[0])))


def _load(load: LoadAgainst, width: int, *, first: bool) -> list[Content]:
    made = [] if first else [Content("")]
    made.append(hang(plain(f"launch {load.number}  "), plain(f"usual: {one_line(load.basis)}", MUTED), width))
    longest = max(max(phase.took_s, phase.usual_s or 0.0) for phase in load.phases)
    room = max(8, min(60, width - _NAME - _WORD - _TIME - 16))
    for phase in load.phases:
        if _counts(phase, longest):
            made += _phase(phase, longest, room, width)
    return made


def _counts(phase: PhaseAgainst, longest: float) -> bool:
    long = max(phase.took_s, phase.usual_s or 0.0) >= _LEAST_SHARE * longest
    return long or bool(phase.slow) or phase.status != "done"


def _phase(phase: PhaseAgainst, longest: float, room: int, width: int) -> list[Content]:
    style = "$error" if phase.status == "failed" else "$warning" if phase.slow else "$primary"
    end = "" if phase.status == "done" else f"  {glyph_of(phase.status)} {phase.status}"
    made = [
        row(
            plain(f"{phase.phase:<{_NAME}}", "$text-error" if phase.status == "failed" else ""),
            _bar("this", phase.took_s, "━", style, longest, room),
            plain(end, style_of(phase.status)),
        )
    ]
    blank = " " * _NAME
    if phase.usual_s is None:
        made.append(row(blank, plain(f"{'usual':<{_WORD}}{'-':>{_TIME}}  no earlier load had it", MUTED)))
    else:
        made.append(row(blank, _bar("usual", phase.usual_s, "┅", MUTED, longest, room)))
    if phase.slow:
        slow = plain(one_line(phase.slow, 200), "$text-warning")
        made.append(hang(row(blank, plain("! slow  ", "$text-warning")), slow, width))
    return made


def _bar(word: str, length_s: float, shape: str, style: str, longest: float, room: int) -> Content:
    cells = max(1, round(length_s / longest * room)) if longest > 0 and length_s > 0 else 0
    return row(plain(f"{word:<{_WORD}}{seconds(length_s):>{_TIME}}  ", MUTED), plain(shape * cells, style))
