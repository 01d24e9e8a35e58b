"""The start screen: the playbooks to run, the sessions to review, to go on with and to attach to."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agent.core.views.entries import (
    STANDING_GLYPHS,
    PlaybookEntry,
    SessionEntry,
    Standing,
    best_text,
    playbook_text,
    review_text,
)
from agent.text import one_line
from tui.content import MUTED, cut, plain, row
from tui.widgets.keys import Keys

Entry = PlaybookEntry | SessionEntry


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose, and what is to be done with it: to open is to run a playbook or to review a session."""

    entry: Entry
    what: Literal["open", "resume", "attach"] = "open"


_RESUMABLE: frozenset[Standing] = frozenset({"not ended", "interrupted", "target-lost"})

AT_A_TIME = 8
"""Sessions that are summarised before the list grows by them."""

_MIDDLE, _WIDE = 84, 116
"""Cells from which on a session's line has its change, and then the best experiment too."""

_STYLES: dict[Standing, str] = {
    "completed": "$text-success",
    "interrupted": "$text-warning",
    "target-lost": "$text-error",
    "running": "$text-primary",
    "not ended": "$text-warning",
    "unreadable": "$text-error",
}


class Entries(OptionList):
    """One list with two headings; j and k move as the arrows do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "run or review", id="start.choose"),
        Binding("j", "cursor_down", show=False, id="start.down"),
        Binding("k", "cursor_up", show=False, id="start.up"),
    ]
    DEFAULT_CSS = """
    Entries {
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &, &:focus { border: none; background-tint: $foreground 0%; }
        & > .option-list--option-disabled { color: $text-primary; text-style: bold; }
        & > .option-list--option-highlighted, &:focus > .option-list--option-highlighted {
            background: $primary-muted;
            color: $foreground;
            text-style: none;
        }
    }
    """


class StartScreen(Screen[Choice]):
    """Lists what is at hand and ends in what a person chose."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "resume", "resume", id="start.resume"),
        Binding("a", "attach", "attach", id="start.attach"),
        Binding("q,escape", "app.quit", "quit", key_display="q", id="start.quit"),
    ]
    DEFAULT_CSS = """
    StartScreen {
        #title { height: 2; padding: 0 1; }
        #about { height: 4; padding: 0 1; background: $surface; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, playbooks: Sequence[PlaybookEntry], sessions: Iterator[SessionEntry], chosen: str = "") -> None:
        """`sessions` may be slow: it is drawn from beside the loop. `chosen` is the file or folder to begin at."""
        super().__init__()
        self._playbooks = playbooks
        self._sessions = sessions
        self._chosen = chosen
        self._entries: dict[str, Entry] = {}
        self._front: Entry | None = None

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield Static(
            row(plain("tunebot", "bold"), plain("   run a playbook; review a session, or go on with it", MUTED)),
            id="title",
        )
        yield Entries(id="entries")
        yield Static(id="about")
        yield Keys()

    def on_mount(self) -> None:
        """The playbooks at once, the sessions as they are read."""
        entries = self.query_one(Entries)
        entries.add_option(Option("PLAYBOOKS", disabled=True))
        self._add(self._playbooks)
        entries.add_options([None, Option("SESSIONS", disabled=True)])
        entries.highlighted = 1 if self._playbooks else None
        entries.focus()
        self.read_sessions()

    @work
    async def read_sessions(self) -> None:
        """Summarise the sessions, newest first."""
        while found := await asyncio.to_thread(lambda: list(islice(self._sessions, AT_A_TIME))):
            self._add(found)
        if not any(isinstance(entry, SessionEntry) for entry in self._entries.values()):
            self.query_one(Entries).add_option(Option(plain("  none yet", MUTED), disabled=True))

    def on_resize(self) -> None:
        """The columns are those of the width."""
        entries = self.query_one(Entries)
        for key, entry in self._entries.items():
            entries.replace_option_prompt(key, self._line(entry))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Tell about the entry under the cursor."""
        entry = self._entries.get(event.option_id or "")
        if entry is not None:
            self._front = entry
            self.query_one("#about", Static).update(_about(entry))
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are those of the entry under the cursor."""
        standing = self._front.standing if isinstance(self._front, SessionEntry) else None
        match action:
            case "resume":
                return standing in _RESUMABLE
            case "attach":
                return standing == "running"
            case _:
                return True

    def action_resume(self) -> None:
        """Go on with the session under the cursor."""
        self._choose("resume")

    def action_attach(self) -> None:
        """Attach to the session under the cursor, which runs."""
        self._choose("attach")

    def _choose(self, what: Literal["resume", "attach"]) -> None:
        if self._front is not None:
            self.dismiss(Choice(self._front, what))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose it: a key or a click."""
        entry = self._entries.get(event.option_id or "")
        if entry is None:
            return
        if isinstance(entry, PlaybookEntry) and entry.problems:
            self.notify(one_line(playbook_text(entry)), severity="warning", markup=False)
        elif isinstance(entry, SessionEntry) and entry.standing == "unreadable":
            self.notify(one_line(entry.problem), severity="warning", markup=False)
        else:
            self.dismiss(Choice(entry))

    def _add(self, found: Sequence[Entry]) -> None:
        entries = self.query_one(Entries)
        for entry in found:
            key = key_of(entry)
            self._entries[key] = entry
            entries.add_option(Option(self._line(entry), id=key))
            if key == self._chosen:
                entries.highlighted = entries.option_count - 1

    def _line(self, entry: Entry) -> Content:
        # An option has a padding of one cell at each side; the list has a scroll bar.
        width = self.app.size.width - 3
        return _playbook_line(entry, width) if isinstance(entry, PlaybookEntry) else _session_line(entry, width)


def key_of(entry: Entry) -> str:
    """What tells an entry from all others."""
    return f"playbook {entry.file}" if isinstance(entry, PlaybookEntry) else f"session {entry.folder}"


def _playbook_line(entry: PlaybookEntry, width: int) -> Content:
    glyph = plain("! ", "$text-warning") if entry.problems else plain("▶ ", "$text-primary")
    file = 40 if width >= _WIDE else 26
    rest = playbook_text(entry) + (" · ships with tunebot" if entry.shipped else "")
    return row(glyph, _cell(entry.file, file), "  ", plain(cut(rest, width - file - 4), MUTED))


def _session_line(entry: SessionEntry, width: int) -> Content:
    wide = width >= _WIDE
    spare = max(0, width - _WIDE)
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


def _about(entry: Entry) -> Content:
    if isinstance(entry, PlaybookEntry):
        name, counted, text, best = entry.name, "", playbook_text(entry), ""
        where = "ships with tunebot" if entry.shipped else entry.file
    else:
        counted = f"  {entry.ended} of {entry.experiments} experiments ended" if entry.experiments else ""
        name, text, best, where = entry.name, review_text(entry), best_text(entry), entry.folder
    head = row(plain(name, "bold"), plain(counted, MUTED))
    return row(head, f"\n{text}\n", f"best: {best}\n" if best else "", plain(where, MUTED))
