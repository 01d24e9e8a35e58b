"""How flags and variables are drawn: what is different from the parent, what the server made of it."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.views.flags import FlagRow
from agent.text import one_line
from tui.content import plain, row
from tui.flow import table
from tui.words import glyph_of, style_of

_MARKS = {"+": "$text-success", "~": "$text-warning", "-": "$text-error", " ": "$foreground-muted"}
_WORDS = {"+": "added", "~": "changed", "-": "taken away", " ": ""}


def draw_flags(rows: Sequence[FlagRow], width: int) -> Content:
    """Columns: flag, requested, effective, status. Inherited ones are quiet."""
    reported = any(flag.status for flag in rows)
    head = ["", "requested", "effective", "status"] if reported else ["", "requested", ""]
    made = [[plain(word, "$foreground-muted") for word in head]]
    for flag in rows:
        quiet = "$foreground-muted" if flag.status == "equal" else ""
        effective = [plain(one_line(flag.effective, 400), quiet)] if reported else []
        made.append([_name(flag), _value(flag), *effective, _note(flag)])
    return table(made, width, whole=0)


def _name(flag: FlagRow) -> Content:
    return plain(f"{flag.mark} {one_line(flag.name, 100)}", _MARKS[flag.mark])


def _value(flag: FlagRow) -> Content:
    style = "$foreground-muted" if flag.mark in " -" else ""
    value = plain(one_line(flag.requested, 400), style)
    if flag.mark == "-":
        return plain(f"was {one_line(flag.before, 400)}", "$foreground-muted")
    if flag.mark == "~":
        return row(value, plain(f" was {one_line(flag.before, 400)}", "$foreground-muted"))
    return value


def _note(flag: FlagRow) -> Content:
    parts: list[str | Content] = []
    if flag.status:
        parts.append(plain(f"{glyph_of(flag.status)} {flag.status.replace('-', ' ')}", style_of(flag.status)))
    elif flag.mark != " ":
        parts.append(plain(_WORDS[flag.mark], _MARKS[flag.mark]))
    if flag.origin:
        parts.append(plain(f"  from {one_line(flag.origin)}", "$text-accent"))
    return row(*parts)
