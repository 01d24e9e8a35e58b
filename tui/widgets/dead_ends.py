"""How a known dead end is drawn: a line in the list, and one in full with what it stands on."""

from textual.content import Content

from agent.core.views.dead_ends import DeadEndView, day, moment
from agent.text import one_line
from tui.content import MUTED, plain, row
from tui.flow import facts, fit, hang, lines
from tui.widgets.findings import draw_quotes
from tui.widgets.outcome import draw_remarks, draw_scope, word_of

_HOLDS = {
    "holds": ("✖ holds", "$text-error"),
    "may not hold": ("! may not hold", "$text-warning"),
    "known": ("✖ known", "$text-error"),
}
_STANDING, _WORD, _DAY = 14, 10, 5


def draw_known_line(view: DeadEndView | str, width: int) -> Content:
    """Whether it holds, what it is, since when, and why."""
    if isinstance(view, str):
        return plain(view, "bold $text-primary")
    text, style = _HOLDS[view.holds]
    name = fit(plain(one_line(view.experiment)), max(10, min(28, width // 4)))
    head = row(
        plain(f"{text:<{_STANDING}}  ", style), name, "  ", plain(f"{view.word:<{_WORD}}"), f"  {day(view.at)}  "
    )
    why = view.changed[0] if view.changed else view.reason
    return head + plain(one_line(why, 400), MUTED)


def draw_known(view: DeadEndView, width: int) -> Content:
    """All that is known of it; what has changed since comes first."""
    text, style = _HOLDS[view.holds]
    head = row(plain(one_line(view.experiment), "bold"), "  ", word_of(view.word), "  ", plain(text, style))
    told = [("since", plain(f"{moment(view.at)}, session {one_line(view.session)}"))]
    told += [("changes", plain(one_line(view.changes, 600)))] if view.changes else []
    told += [("retry", plain(one_line(view.does, 300), "$text-primary"))] if view.does else []
    made = [head, hang(Content(""), plain(one_line(view.reason, 1000)), width), Content(""), facts(told, width)]
    if view.changed:
        made += [Content(""), plain("what changed", "$text-warning"), draw_remarks(view.changed, width)]
    made += [Content(""), plain("it was found with", MUTED), draw_scope(view.scope, width)]
    if view.unknown:
        text = f"not compared: {', '.join(view.unknown)}"
        made += [Content(""), hang(Content(""), plain(one_line(text, 400), MUTED), width)]
    if view.evidence:
        made += [Content(""), plain("evidence", MUTED), draw_quotes(view.evidence, width)]
    return lines(*made)
