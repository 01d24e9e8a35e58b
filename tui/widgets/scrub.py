"""The scrub bar of a replay: what is playing, where it is, and the moments worth going to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from textual import events
from textual.content import Content

from agent.core.views.basics import GLYPHS, duration
from agent.replay import Recording, Speeds
from agent.review.marks import Mark, MarkKind
from tui.content import MUTED, fit_right, plain, row
from tui.replay_source import ReplaySource
from tui.widgets.view import ViewStatic

FRAMES_PER_SECOND = 20

_LAUNCH = "┼"
_KNOB = "●"
_RANK: tuple[MarkKind, ...] = ("plan", "launch", "wish", "needs", "verdict", "dead end")
"""The marks of the track; where several fall on one cell, the last of these is drawn."""
_FINE: tuple[MarkKind, ...] = ("start", "research", "check", "step", "phase", "doubt", "ready", "round")
"""What the track has besides, below those, while one experiment is followed."""

_STYLES: Mapping[str, str] = {
    "keep": "$text-success",
    "no-gain": MUTED,
    "inconclusive": "$text-warning",
    "invalid": "$text-warning",
    "worse": "$text-warning",
    "failed": "$text-error",
    "ruled-out": "$text-error",
}
_WIDE = 112
"""From so many cells on there is room for whole words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubView:
    """What the bar shows. Times are seconds of the session; `knob` is the cell of the position on the track.

    `latest` is the mark that the position has come to last: number `reached` of `marks`, which are the decisions, or
    all moments of the experiment that is followed.
    """

    playing: bool
    ended: bool
    speeds: Speeds
    reading: bool
    elapsed_s: int
    whole_s: int
    index: int
    last: int
    following: str
    latest: Mark | None
    reached: int
    marks: int
    knob: int
    width: int


def scrub_view(source: ReplaySource, width: int) -> ScrubView:
    """The view of a replay on a bar of `width` cells."""
    recording, trail = source.recording, source.trail
    start, now = recording.times[0], source.now()
    reached = trail.reached(source.index)
    return ScrubView(
        playing=source.playing,
        ended=source.index == recording.last,
        speeds=source.speeds,
        reading=source.reading,
        elapsed_s=round(now - start),
        whole_s=round(recording.times[-1] - start),
        index=source.index + 1,
        last=recording.last + 1,
        following=source.following,
        latest=trail.marks[reached - 1] if reached else None,
        reached=reached,
        marks=len(trail.marks),
        knob=cell_of(source.fraction, width),
        width=width,
    )


def cell_of(fraction: float, width: int) -> int:
    """The cell of a track of `width` cells for a part of the recording."""
    return round(fraction * max(0, width - 1))


def track_marks(recording: Recording, following: str, width: int) -> dict[int, tuple[str, str]]:
    """For each cell of the track that has a mark its glyph and style."""
    clock = recording.clock
    cells: dict[int, tuple[str, str]] = {}
    for kind in (*_FINE, *_RANK) if following else _RANK:
        for mark in recording.trail(frozenset({kind}), following).marks:
            share = clock.offsets[mark.index] / clock.whole_s if clock.whole_s else 1.0
            cells[cell_of(share, width)] = glyph_of(mark)
    return cells


def glyph_of(mark: Mark) -> tuple[str, str]:
    """The glyph and the style of a mark."""
    if mark.kind in ("verdict", "dead end"):
        return GLYPHS[mark.word], _STYLES[mark.word]
    if mark.kind in ("needs", "wish"):
        return "!", "$text-warning"
    return (_LAUNCH if mark.kind == "launch" else "·"), MUTED


class ScrubBar(ViewStatic[ScrubView]):
    """Two lines above the footer: the state of the replay, and the track. A click on the track goes there."""

    DEFAULT_CSS = """
    ScrubBar {
        height: 2;
        width: 100%;
        padding: 0 1;
        background: $surface;
    }
    """

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        self._source = source
        self._marks: dict[int, tuple[str, str]] = {}
        self._marked: tuple[str, int] = "", 0

    def on_mount(self) -> None:
        """Follow the position."""
        self.set_interval(1 / FRAMES_PER_SECOND, self.follow)

    def on_resize(self) -> None:
        """The track is as wide as the bar."""
        self.follow()

    def follow(self) -> None:
        """Show where the replay is."""
        if self.content_size.width:
            self.show(scrub_view(self._source, self.content_size.width))

    def on_click(self, event: events.Click) -> None:
        """Go to the moment under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == 1:
            self._source.seek(offset.x / max(1, self.content_size.width - 1))
            self.follow()

    def draw(self, view: ScrubView) -> Content:
        """The two lines."""
        return row(_status(view), "\n", self._track(view))

    def _track(self, view: ScrubView) -> Content:
        if (view.following, view.width) != self._marked:
            self._marked = view.following, view.width
            self._marks = track_marks(self._source.recording, view.following, view.width)
        cells = (self._cell(cell, view.knob) for cell in range(view.width))
        runs = groupby(cells, key=lambda drawn: drawn[1])
        return row(*(plain("".join(glyph for glyph, _ in run), style) for style, run in runs))

    def _cell(self, cell: int, knob: int) -> tuple[str, str]:
        if cell == knob:
            return _KNOB, "bold $text-primary"
        if cell in self._marks:
            return self._marks[cell]
        return ("━", "$primary") if cell < knob else ("─", MUTED)


def _status(view: ScrubView) -> Content:
    wide = view.width >= _WIDE
    glyph, word = ("▶", "playing") if view.playing else ("■", "the end") if view.ended else ("‖", "paused")
    # What changes while it plays has a width of its own, so that nothing jumps.
    whole = duration(view.whole_s)
    time = f"{duration(view.elapsed_s):>{len(whole)}}{f' of {whole}' if wide else ''}"
    parts: list[str | Content] = [
        plain("replay ", "bold $text-warning"),
        plain(f"{glyph} {word:<7} {time} "),
        *_speed("loads", view.speeds.loads, not view.reading),
        " ",
        *_speed("decisions", view.speeds.decisions, view.reading),
    ]
    if wide:
        parts.append(plain(f"  event {view.index:>{len(str(view.last))}}/{view.last}", MUTED))
    room = view.width - row(*parts).cell_length
    style = glyph_of(view.latest)[1] if view.latest else MUTED
    return row(*parts, plain(fit_right(f"  {_place(view, wide)}", max(0, room)), style)).truncate(view.width)


def _speed(name: str, speed: int, in_effect: bool) -> Sequence[Content]:
    return plain("▸" if in_effect else " ", "bold"), plain(f"{name} {speed}x", "bold" if in_effect else MUTED)


def _place(view: ScrubView, wide: bool) -> str:
    """`decision 7 of 31: ▼ eagle3 worse`, or `eagle3 4/12: · load-weights`."""
    count = f"{view.reached}/{view.marks}"
    if view.following:
        told = f"{'follows ' if wide else ''}{view.following} {count}"
        return f"{told}: {view.latest.word}" if view.latest else told
    told = f"decision {view.reached} of {view.marks}" if wide else count
    return f"{told}{':' if wide else ''} {glyph_of(view.latest)[0]} {view.latest.text}" if view.latest else told
