"""The scrub bar of a replay: what is playing, where it is, and the moments worth going to."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from textual import events
from textual.content import Content

from agent.core.views.basics import GLYPHS, duration
from agent.replay import Mark, MarkKind, Recording
from tui.content import MUTED, cut, plain, row
from tui.replay_source import ReplaySource
from tui.widgets.view import ViewStatic

FRAMES_PER_SECOND = 20

_LAUNCH = "┼"
_KNOB = "●"
_RANK: tuple[MarkKind, ...] = ("launch", "needs", "verdict", "dead end")
"""The marks of the track; where several fall on one cell, the last of these is drawn."""

_STYLES: Mapping[str, str] = {
    "keep": "$text-success",
    "no-gain": MUTED,
    "inconclusive": "$text-warning",
    "invalid": "$text-warning",
    "worse": "$text-warning",
    "failed": "$text-error",
    "ruled-out": "$text-error",
}
_LATEST_WIDTH = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubView:
    """What the bar shows. Times are seconds of the session; `knob` is the cell of the position on the track."""

    playing: bool
    ended: bool
    speed: int
    elapsed_s: int
    whole_s: int
    index: int
    last: int
    latest: Mark | None
    knob: int
    width: int


def scrub_view(source: ReplaySource, width: int) -> ScrubView:
    """The view of a replay on a bar of `width` cells."""
    recording = source.recording
    start = recording.times[0]
    return ScrubView(
        playing=source.playing,
        ended=source.index == recording.last,
        speed=source.speed,
        elapsed_s=round(source.now() - start),
        whole_s=round(recording.times[-1] - start),
        index=source.index + 1,
        last=recording.last + 1,
        latest=recording.mark_before(source.index, _RANK),
        knob=cell_of(source.fraction, width),
        width=width,
    )


def cell_of(fraction: float, width: int) -> int:
    """The cell of a track of `width` cells for a part of the recording."""
    return round(fraction * max(0, width - 1))


def track_marks(recording: Recording, width: int) -> dict[int, tuple[str, str]]:
    """For each cell of the track that has a mark its glyph and style."""
    whole = recording.playing_s
    cells: dict[int, tuple[str, str]] = {}
    for kind in _RANK:
        for mark in (mark for mark in recording.marks if mark.kind == kind):
            share = recording.offsets[mark.index] / whole if whole else 1.0
            cells[cell_of(share, width)] = glyph_of(mark)
    return cells


def glyph_of(mark: Mark) -> tuple[str, str]:
    """The glyph and the style of a mark."""
    if mark.kind == "launch":
        return _LAUNCH, MUTED
    if mark.kind == "needs":
        return "!", "$text-warning"
    word = mark.text.rpartition(" ")[2]
    return GLYPHS[word], _STYLES[word]


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
        self._marks_width = 0

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
        if view.width != self._marks_width:
            self._marks, self._marks_width = track_marks(self._source.recording, view.width), view.width
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
    glyph, word = ("▶", "playing") if view.playing else ("■", "the end") if view.ended else ("‖", "paused")
    # Every part has a width of its own, so that nothing jumps while it plays.
    whole = duration(view.whole_s)
    time = f"{duration(view.elapsed_s):>{len(whole)}} of {whole}"
    event = f"event {view.index:>{len(str(view.last))}}/{view.last}"
    left = f"{glyph} {word:<7} {view.speed:>2}x   {time}   "
    parts: list[str | Content] = [plain("replay ", "bold $text-warning"), left, plain(event, MUTED)]
    room = view.width - len("replay ") - len(left) - len(event)
    if view.latest is not None and room > 12:
        mark, style = glyph_of(view.latest)
        word = "launch " if view.latest.kind == "launch" else ""
        latest = cut(f"{mark} {word}{view.latest.text}", min(_LATEST_WIDTH, room - 2))
        parts += [" " * (room - len(latest)), plain(latest, style)]
    return row(*parts)
