"""The background panel: what is looked up while the server loads."""

from textual.content import Content

from agent.core.views.background import BackgroundView, TaskRow
from tui.content import MUTED, cut, fit, fit_right, plain, row, toned
from tui.widgets.view import ViewStatic

_KIND = 9
_TIME = 6


class BackgroundPanel(ViewStatic[BackgroundView]):
    """One line a task, as many as fit."""

    def draw(self, view: BackgroundView) -> Content:
        """The running ones first; what does not fit is counted."""
        width, height = self.content_size
        self.border_title = plain(cut(view.title, width - 2))
        rows = view.rows if len(view.rows) <= height else view.rows[: max(0, height - 1)]
        lines = [self._one(task, width) for task in rows]
        if hidden := len(view.rows) - len(rows):
            lines.append(plain(f"… {hidden} more: v", MUTED))
        return Content("\n").join(lines) if lines else plain("nothing to look up", MUTED)

    def _one(self, task: TaskRow, width: int) -> Content:
        room = max(0, width - 2 - _KIND - 1 - 2 - _TIME)
        title = room * 45 // 100
        return row(
            toned(f"{task.glyph} ", task.tone),
            plain(fit(task.kind, _KIND) + " "),
            plain(fit(task.title, title) + "  "),
            toned(fit(task.text, room - title), task.tone if task.tone in ("warn", "bad", "busy") else "muted"),
            plain(fit_right(task.elapsed, _TIME), MUTED),
        )
