"""The server panel: the phases of the load, how far it is, the GPUs."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.views.panels import GpuUse, ServerView, Step
from tui.content import MUTED, cut, fit_right, plain, row, toned
from tui.widgets.view import ViewStatic

_GLYPHS = {"passed": "✔", "present": "●", "failed": "✖", "ahead": "○"}
_STYLES = {"passed": "$text-success", "present": "bold $text-primary", "failed": "$text-error", "ahead": MUTED}
_GAP = "  "
_STATUS_WIDTH = 24
_PARTIAL = " ▏▎▍▌▋▊▉"
_GPU_COLUMNS = 4
_GPU_ROWS = 3
_GPU_LEAST_BAR = 2
_GPU_MOST_BAR = 12


class ServerPanel(ViewStatic[ServerView]):
    """Strip, bar, note, then as many lines of GPUs as there is room for."""

    def make_room(self, gpus: int) -> None:
        """Be as high as suits a host with that many GPUs; the style sheet says how high that is."""
        rows = min(_GPU_ROWS, -(-gpus // _GPU_COLUMNS))
        for number in range(1, _GPU_ROWS + 1):
            self.set_class(number == rows, f"-gpus-{number}")

    def draw(self, view: ServerView) -> Content:
        """Lines that never wrap."""
        width, height = self.content_size
        self.border_title = plain(cut(view.title, width - 2))
        note = toned(cut(view.note, width), view.tone)
        if not view.steps:
            return row(note, "\n", plain(view.more, MUTED)) if view.more and height >= 3 else note
        lines = [strip(view.steps, width), self._bar(view, width, with_note=height < 3)]
        if height >= 3:
            lines.append(note)
        return Content("\n").join([*lines[:height], *gpu_lines(view.gpus, width, height - 3)])

    def _bar(self, view: ServerView, width: int, with_note: bool) -> Content:
        if view.tone == "bad" and with_note:
            return toned(cut(view.note, width), view.tone)
        if view.fraction is None:
            more = f"   {view.note}" if with_note and view.note else ""
            return plain(cut(f"{view.status}{more}", width))
        status = fit_right(view.status, max(_STATUS_WIDTH, len(view.status)))
        room = max(0, width - len(status) - 1)
        return row(bar(view.fraction, room), " ", plain(cut(status, width), "bold"))


def strip(steps: Sequence[Step], width: int) -> Content:
    """The phases that fit: the present one always, then ready, then the long ones of the others."""
    here = next((i for i, step in enumerate(steps) if step.stands in ("present", "failed")), len(steps) - 1)
    ahead = range(here + 1, len(steps))
    passed = sorted(range(here), key=lambda index: -steps[index].seconds)
    coming = sorted(ahead[:-1], key=lambda index: -steps[index].seconds)
    shown: set[int] = set()
    used = 0
    for index in (here, *ahead[-1:], *passed[:1], *coming, *passed[1:]):
        cells = _step(steps[index]).cell_length + (len(_GAP) if shown else 0)
        if used + cells <= width:
            shown.add(index)
            used += cells
    return Content(_GAP).join(_step(steps[index]) for index in sorted(shown)).truncate(width, ellipsis=True)


def _step(step: Step) -> Content:
    words = f"{_GLYPHS[step.stands]} {step.phase}"
    return row(plain(words, _STYLES[step.stands]), f" {step.detail}" if step.detail else "")


def bar(fraction: float, width: int) -> Content:
    """A bar of `width` cells, drawn in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    full, part = divmod(eighths, 8)
    done = "█" * full + (_PARTIAL[part] if part else "")
    return row(plain(done, "$primary"), plain("░" * (width - len(done)), "$foreground-disabled"))


def gpu_lines(gpus: Sequence[GpuUse], width: int, height: int) -> list[Content]:
    """One small bar of memory a GPU, in columns; where they do not fit, all in one line."""
    if not gpus or height < 1:
        return []
    columns = -(-len(gpus) // min(height, -(-len(gpus) // _GPU_COLUMNS)))
    texts = [f" {gpu.used_mib / 1024:.0f}/{gpu.total_mib / 1024:.0f}G" for gpu in gpus]
    names = [f"{gpu.index} " for gpu in gpus]
    words, name = max(map(len, texts)), max(map(len, names))
    room = min(_GPU_MOST_BAR, (width - len(_GAP) * (columns - 1)) // columns - words - name)
    if room < _GPU_LEAST_BAR:
        return [_all_gpus(gpus, width)]
    cells = [
        row(plain(fit_right(n, name), MUTED), bar(g.used_mib / max(1, g.total_mib), room), fit_right(t, words))
        for n, g, t in zip(names, gpus, texts, strict=True)
    ]
    return [Content(_GAP).join(cells[start : start + columns]) for start in range(0, len(gpus), columns)]


def _all_gpus(gpus: Sequence[GpuUse], width: int) -> Content:
    least, most = min(g.used_mib for g in gpus) / 1024, max(g.used_mib for g in gpus) / 1024
    text = f"{len(gpus)} GPUs  {least:.0f}-{most:.0f} of {gpus[0].total_mib / 1024:.0f} GB each"
    return plain(cut(text, width), MUTED)
