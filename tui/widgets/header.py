"""The head of the screen: playbook, host, time; the best so far; what needs a person."""

from textual.content import Content

from agent.core.views.panels import HeaderView
from tui.content import cut, plain, row, toned
from tui.widgets.view import ViewStatic

_LEAST_NAME = 12
_GAP = "   "
_SHOUT = "bold $text-warning on $warning-muted"


class Header(ViewStatic[HeaderView]):
    """One line where there is room for it, else two."""

    def draw(self, view: HeaderView) -> Content:
        """Left who and where, right the incumbent and the needs; what is said elsewhere too goes first."""
        width = self.content_size.width
        if self.content_size.height > 1:
            return row(_left(view, width), "\n", _fitting(view, width).truncate(width, ellipsis=True))
        right = _fitting(view, width - _left(view, 0).cell_length - len(_GAP))
        left = _left(view, width - right.cell_length - len(_GAP))
        return row(left, " " * max(1, width - left.cell_length - right.cell_length), right)


def _left(view: HeaderView, width: int) -> Content:
    """In `width` cells, or in as few as it can be."""
    head = plain("tunebot ", "bold $primary")
    tail = row(f" · {view.elapsed}")
    if view.simulated:
        tail = row(tail, " ", plain(" SIMULATED ", _SHOUT))
    if view.mark:
        tail = row(tail, "  ", toned(cut(view.mark, max(30, width // 3)), view.tone))
    room = width - head.cell_length - tail.cell_length
    if view.role and room >= _LEAST_NAME + len(view.role) + 3:
        head = row(head, plain(f" {view.role} ", _SHOUT), " ")
        room -= len(view.role) + 3
    host = f" · {view.host}" if room >= _LEAST_NAME + len(view.host) + 3 else ""
    name = plain(cut(view.playbook, max(_LEAST_NAME, room - len(host))), "bold")
    return row(head, name, host, tail)


def _fitting(view: HeaderView, width: int) -> Content:
    """The longest form of the right side that fits, or the shortest one."""
    value, _, unit = view.value.rpartition(" ")
    change = f" ({view.change})" if view.change else ""
    mean = f"{value.partition(' ')[0]} {unit}"
    forms = [_right(view, text) for text in (f"{value} {unit}{change}", f"{mean}{change}", mean)]
    return next((form for form in forms if form.cell_length <= width), forms[-1])


def _right(view: HeaderView, value: str) -> Content:
    parts: list[Content] = []
    if view.incumbent:
        parts.append(row(toned("★ incumbent ", "good"), plain(value, "bold"), f"  {view.incumbent}"))
    if view.needs:
        parts.append(plain(f" needs you {view.needs} (y) ", _SHOUT))
    return Content(_GAP).join(parts)
