"""Where a log pane stands, and how that is said in its frame. Pure."""

from dataclasses import dataclass

from textual.content import Content

from agent.core.views.basics import duration
from tui.content import MUTED, plain, row


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """`at` (from one) is the last row in view of `rows`, which count the lines that pass the filter.

    `new` came in below the view since it is held still. `match` is the place (from one, zero for none) of the marked
    one of `matches`. `read` is the part of the file, 0 to 1, that was read and tested. `quiet_s` is how long nothing
    was added to a log that was growing. `typed` is the search that is being typed. `told` is said of the part of the
    log that is shown.
    """

    title: str = "Log"
    at: int = 0
    rows: int = 0
    follow: bool = True
    wrap: bool = False
    new: int = 0
    rank: int | None = None
    needle: str = ""
    match: int = 0
    matches: int = 0
    searched: bool = True
    read: float = 1.0
    quiet_s: int = 0
    typed: str | None = None
    note: str = ""
    told: str = ""


def title_of(status: LogStatus) -> Content:
    """What is shown: the log, and the rank whose lines are."""
    rank = f"  rank {status.rank}" if status.rank is not None else ""
    return row(status.title, plain(rank, "$text-primary"))


def search_of(status: LogStatus) -> Content:
    """The search: as it is typed, or how far it is."""
    if status.typed is not None:
        return row(plain(f"/{status.typed}▏", "$text-primary"))
    if not status.needle:
        return Content("")
    more = "" if status.searched else "…"
    if not status.matches:
        found = "no match" if status.searched else "looking…"
    elif status.match:
        found = f"{status.match:,} of {status.matches:,}{more}"
    else:
        found = f"{status.matches:,}{more} match{'' if status.matches == 1 else 'es'}"
    return row(plain(f"/{status.needle}", "$text-primary"), f" {found}")


def place_of(status: LogStatus) -> Content:
    """Whether the end is followed, and else what lies below."""
    if status.note:
        return plain(status.note, "$text-warning")
    if status.read < 0.995:
        return plain(f"reading {status.read:.0%}", MUTED)
    if not status.follow:
        if status.new:
            return plain(f"{status.new:,} new line{'' if status.new == 1 else 's'} below", "$text-warning")
        return plain(f"line {status.at:,} of {status.rows:,}", MUTED)
    if status.quiet_s:
        return plain(f"quiet {duration(status.quiet_s)}", MUTED)
    return plain("follow", MUTED)


def foot_of(status: LogStatus) -> Content:
    """All that a frame says below the log."""
    wrap = plain("wrap", MUTED) if status.wrap else Content("")
    parts = [part for part in (search_of(status), plain(status.told, MUTED), wrap, place_of(status)) if part.plain]
    return Content("  ").join(parts)
