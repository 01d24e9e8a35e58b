"""What there is to run and to review: one entry a playbook file, one a recorded session, and their lines of text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.core.events import Ending
from agent.core.views.basics import duration
from agent.text import clean

Standing = Ending | Literal["running", "not ended", "unreadable"]
"""How a session ended; `not ended` was interrupted without a word, by a crash or a power cut."""

STANDING_GLYPHS: dict[Standing, str] = {
    "completed": "✔",
    "interrupted": "‖",
    "target-lost": "✖",
    "running": "●",
    "not ended": "!",
    "unreadable": "?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookEntry:
    """A playbook file. `problems` counts those that keep it from running; the other fields are then empty."""

    file: str
    name: str
    target: str
    experiments: int
    shipped: bool
    problems: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """A machine that can be a target. `name` is what one types, `kept` the name that its history has.

    `where` says in words what it is, `file` which file names it (empty: none needs to). `dead_ends` counts those that
    are known there. `problem` is why a file names nothing; it then stands in the place of a name.
    """

    name: str
    kept: str = ""
    where: str = ""
    file: str = ""
    dead_ends: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What a machine said when it was asked: whether it can be used, and that in one line."""

    usable: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """A session's folder in short. `value` and `change` are those of the best experiment, empty where none was kept.

    `when` is the local time of its start as `2026-11-30 01:27`; `problem` says why a session is unreadable. `command`
    launches the best. `kept` is the name that the history has of its target, empty for a simulated one.
    """

    folder: str
    name: str
    when: str
    standing: Standing
    host: str = ""
    simulated: bool = False
    lasted_s: float = 0.0
    ended: int = 0
    experiments: int = 0
    best: str = ""
    value: str = ""
    change: str = ""
    command: str = ""
    kept: str = ""
    problem: str = ""


def review_text(entry: SessionEntry) -> str:
    """How a session ended, and what that means, in one line."""
    match entry.standing:
        case "not ended":
            return "interrupted without an end; tunebot resume goes on with it"
        case "running":
            return "another tunebot runs it now; tunebot attach steers it"
        case "unreadable":
            return entry.problem
        case "completed":
            return f"completed after {duration(entry.lasted_s)}"
        case _:
            return f"{entry.standing} after {duration(entry.lasted_s)}; tunebot resume goes on with it"


def playbook_text(entry: PlaybookEntry) -> str:
    """What a playbook holds, or what is wrong with it, in one line."""
    if entry.problems:
        return f"{_count(entry.problems, 'problem')}: tunebot check {entry.file} tells them"
    return f"{_count(entry.experiments, 'experiment')} on {entry.target}"


def listing(playbooks: Sequence[PlaybookEntry], sessions: Iterable[SessionEntry], older: int) -> Iterator[str]:
    """Both as lines for a pipe. `older` sessions are not among those given."""
    yield "PLAYBOOKS"
    width = max((len(playbook.file) for playbook in playbooks), default=0)
    for playbook in playbooks:
        glyph = "!" if playbook.problems else "▶"
        shipped = "  (ships with tunebot)" if playbook.shipped else ""
        yield clean(f"  {glyph} {playbook.file:<{width}}  {playbook.name}: {playbook_text(playbook)}{shipped}")
    yield "SESSIONS"
    empty = True
    for session in sessions:
        empty = False
        yield clean(f"  {STANDING_GLYPHS[session.standing]} {session.when:<16}  {session.name}: {review_text(session)}")
        if best := best_text(session):
            yield clean(f"      best: {best}")
        yield clean(f"      {session.folder}")
    if empty:
        yield "  none yet"
    if older:
        yield f"  and {older} older"


def best_text(entry: SessionEntry) -> str:
    """`ep-plain  101.2 ±0.9 tok/s  +13.1 %  SIMULATED`, or nothing where nothing was measured."""
    if not entry.best:
        return ""
    parts = (entry.best, entry.value, entry.change, "SIMULATED" if entry.simulated else "")
    return "  ".join(filter(None, parts))


def dead_ends_text(entry: HostEntry) -> str:
    """`6 known dead ends`, or nothing."""
    return _count(entry.dead_ends, "known dead end") if entry.dead_ends else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
