"""How the start screen draws what is at hand: a line for each entry, and a few about the one under the cursor."""

from textual.content import Content

from agent.core.views.entries import (
    STANDING_GLYPHS,
    HostAnswer,
    HostEntry,
    PlaybookEntry,
    SessionEntry,
    Standing,
    best_text,
    dead_ends_text,
    playbook_text,
    review_text,
)
from agent.text import one_line
from tui.content import MUTED, cut, plain, row
from tui.flow import hang, lines

Answer = HostAnswer | None
"""What a machine said. It has not been asked, or has not answered yet, where it is None."""

_ANSWER_LINES = 3
_MIDDLE, WIDE = 84, 116
"""Cells from which on a session's line has its change, and then the best experiment too."""

_STYLES: dict[Standing, str] = {
    "completed": "$text-success",
    "interrupted": "$text-warning",
    "target-lost": "$text-error",
    "running": "$text-primary",
    "not ended": "$text-warning",
    "unreadable": "$text-error",
}


def playbook_line(entry: PlaybookEntry, width: int) -> Content:
    """Its file, and what it holds."""
    glyph = plain("! ", "$text-warning") if entry.problems else plain("▶ ", "$text-primary")
    file = 40 if width >= WIDE else 26
    rest = playbook_text(entry) + (" · ships with tunebot" if entry.shipped else "")
    return row(glyph, _cell(entry.file, file), "  ", plain(cut(rest, width - file - 4), MUTED))


def host_line(entry: HostEntry, answer: Answer, asked: bool, width: int) -> Content:
    """Its name, how it stands, what is known of it, and where it is."""
    name = 40 if width >= WIDE else 26
    if entry.problem:
        return row(plain("! ", "$text-warning"), plain(cut(f"{entry.name} {entry.problem}", width - 2), MUTED))
    glyph, word, style = _stands(answer, asked)
    rest = " · ".join(filter(None, (dead_ends_text(entry), entry.where)))
    head = row(plain(f"{glyph} ", style), _cell(entry.name, name), "  ", plain(f"{word:<14}", style))
    return row(head, "  ", plain(cut(rest, max(0, width - name - 20)), MUTED))


def _stands(answer: Answer, asked: bool) -> tuple[str, str, str]:
    if answer is None:
        return ("◐", "asking", "$text-primary") if asked else ("○", "not asked yet", MUTED)
    return ("✔", "can be used", "$text-success") if answer.usable else ("✖", "cannot be used", "$text-error")


def session_line(entry: SessionEntry, width: int) -> Content:
    """How it ended, when it began, and its best result."""
    wide = width >= WIDE
    spare = max(0, width - WIDE)
    name, best = (24 + min(spare, 16), 17 + min(max(0, spare - 16), 16)) if wide else (20, 0)
    standing = plain(f"{STANDING_GLYPHS[entry.standing]} {entry.standing:<11}", _STYLES[entry.standing])
    # The year is the first to go where there is little room.
    when = f"{entry.when:<16}" if wide else f"{entry.when[5:]:<11}"
    parts: list[str | Content] = [standing, "  ", plain(when, MUTED), "  ", _cell(entry.name, name)]
    parts.append(f"{entry.value:>20}" if wide else f"{entry.value:>19}")
    if width >= _MIDDLE:
        parts.append(f"{entry.change:>9}")
    if wide:
        parts += ["  ", _cell(entry.best, best), "  "]
        parts.append(plain("SIMULATED" if entry.simulated else cut(entry.host, 9), MUTED))
    else:
        parts.append(plain(" sim" if entry.simulated else "", MUTED))
    return row(*parts)


def _cell(text: str, width: int) -> str:
    short = cut(text, width)
    return short + " " * (width - plain(short).cell_length)


def about_playbook(entry: PlaybookEntry) -> Content:
    """What it holds, or what is wrong with it."""
    where = "ships with tunebot" if entry.shipped else entry.file
    return row(plain(entry.name, "bold"), f"\n{playbook_text(entry)}\n", plain(where, MUTED))


def about_session(entry: SessionEntry) -> Content:
    """How it ended, its best result and the command that launches that."""
    counted = f"  {entry.ended} of {entry.experiments} experiments ended" if entry.experiments else ""
    head = row(plain(entry.name, "bold"), plain(counted, MUTED), f"\n{review_text(entry)}\n")
    best = best_text(entry)
    told = row(f"best: {best}\n", plain(f"{one_line(entry.command, 1000)}\n", MUTED)) if best else plain("")
    return row(head, told, plain(entry.folder, MUTED))


def about_host(entry: HostEntry, answer: Answer, asked: bool, width: int) -> Content:
    """What it said when it was asked, on as many lines as there are, and what is known of it."""
    if entry.problem:
        return lines(plain(entry.name, "bold"), hang(Content(""), plain(entry.problem), width))
    _, word, style = _stands(answer, asked)
    said = f": {answer.text}" if answer and answer.text else "" if answer or asked else ": enter asks it"
    known = " · ".join(filter(None, (dead_ends_text(entry) or "no known dead ends", entry.file)))
    head = row(plain(entry.name, "bold"), plain(f"  {entry.where}", MUTED))
    told = hang(Content(""), row(plain(word, style), said), width).split("\n")[:_ANSWER_LINES]
    return lines(head, *told, plain(known, MUTED))
