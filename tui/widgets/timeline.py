"""How the loads of an experiment are drawn: one bar a phase on a common time line."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.views.basics import SMOKE_LOAD
from agent.core.views.loads import Load, PhaseBar
from agent.text import one_line
from tui.content import plain, row
from tui.flow import hang, lines
from tui.words import glyph_of, style_of

_NAME = 14
_TIME = 8


def draw_loads(loads: Sequence[Load], width: int) -> Content:
    """One launch under the other."""
    return lines(*(part for load in loads for part in _load(load, width, first=load is loads[0])))


def seconds(value: float) -> str:
    """`0.6s` below ten seconds, `42s` below two minutes, then `6:52`."""
    if value < 10:
        return f"{value:.1f}s"
    if value < 120:
        return f"{value:.0f}s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _load(load: Load, width: int, *, first: bool) -> list[Content]:
    told = "after" if load.ready or load.stage in ("failed", "stopped") else "for"
    what = f"launch {load.number}" + {"serve": " to serve", "smoke": f", {SMOKE_LOAD}"}.get(load.purpose, "")
    word = plain(f"{glyph_of(load.stage)} {load.stage}", style_of(load.stage) or "$text-primary")
    made = [] if first else [Content("")]
    made.append(row(f"{what}  ", word, plain(f"  {told} {seconds(load.total_s)}", "$foreground-muted")))
    room = max(8, min(60, width - _NAME - _TIME - 14))
    made += [_phase(phase, load.total_s, room) for phase in load.phases]
    if load.failure:
        made.append(hang(plain("✖ ", "$text-error"), plain(one_line(load.failure, 600), "$text-error"), width))
    if load.left:
        left = ", ".join(map(str, load.left))
        made.append(hang(plain("! ", "$text-warning"), plain(f"still alive: {left}", "$text-warning"), width))
    return made


def _phase(phase: PhaseBar, total_s: float, room: int) -> Content:
    scale = room / total_s if total_s > 0 else 0.0
    start = min(room - 1, int(phase.start_s * scale))
    length = min(room - start, max(1, round(phase.duration_s * scale)))
    style = {"done": "$primary", "running": "$accent", "failed": "$error"}[phase.status]
    shape = {"done": "━", "running": "━", "failed": "╳"}[phase.status]
    track = row(" " * start, plain(shape * length, style), " " * (room - start - length))
    end = "" if phase.status == "done" else f"  {glyph_of(phase.status)} {phase.status}"
    return row(
        plain(f"{phase.phase:<{_NAME}}", "$text-error" if phase.status == "failed" else ""),
        plain(f"{seconds(phase.duration_s):>{_TIME}}  ", "$foreground-muted"),
        track,
        plain(end, style_of(phase.status)),
    )
