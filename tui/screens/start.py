"""The start screen: the playbooks to run, the machines to run them on, the sessions to review or to go on with."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
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

from agent.core.scope import KnownDeadEnd
from agent.core.views.dead_ends import remembered
from agent.core.views.entries import HostAnswer, HostEntry, PlaybookEntry, SessionEntry, Standing, playbook_text
from agent.text import one_line
from tui.content import MUTED, plain, row
from tui.widgets.keys import Keys
from tui.widgets.start_lines import about_host, about_playbook, about_session, host_line, playbook_line, session_line

Entry = PlaybookEntry | HostEntry | SessionEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The machines at hand. `ask` finds out whether one can be used; `known` are the dead ends that its history has.

    Nothing is connected to before `ask` is called.
    """

    entries: Sequence[HostEntry] = ()
    ask: Callable[[str], Awaitable[HostAnswer]] | None = None
    known: Callable[[str], Sequence[KnownDeadEnd]] = lambda name: ()


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose, and what is to be done with it: to open is to run a playbook or to review a session."""

    entry: PlaybookEntry | SessionEntry
    what: Literal["open", "resume", "attach"] = "open"


_RESUMABLE: frozenset[Standing] = frozenset({"not ended", "interrupted", "target-lost"})

AT_A_TIME = 8
"""Sessions that are summarised before the list grows by them."""


class Entries(OptionList):
    """One list with headings; j and k move as the arrows do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "run, ask, review", id="start.choose"),
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
            text-style: bold;
        }
    }
    """


class StartScreen(Screen[Choice]):
    """Lists what is at hand and ends in what a person chose."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "resume", "resume", id="start.resume"),
        Binding("a", "attach", "attach", id="start.attach"),
        Binding("y", "copy", "copy command", id="start.copy"),
        Binding("x", "dead_ends", "dead ends", id="start.dead-ends"),
        Binding("q,escape", "app.quit", "quit", key_display="q", id="start.quit"),
    ]
    DEFAULT_CSS = """
    StartScreen {
        #title { height: 2; padding: 0 1; }
        #about { height: 5; padding: 0 1; background: $surface; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(
        self,
        playbooks: Sequence[PlaybookEntry],
        sessions: Iterator[SessionEntry],
        chosen: str = "",
        hosts: Hosts | None = None,
    ) -> None:
        """`sessions` may be slow: it is drawn from beside the loop. `chosen` is the file or folder to begin at."""
        super().__init__()
        self._playbooks = playbooks
        self._hosts = hosts or Hosts()
        self._sessions = sessions
        self._chosen = chosen
        self._asked: set[str] = set()
        self._answers: dict[str, HostAnswer] = {}
        self._entries: dict[str, Entry] = {}
        self._front: Entry | None = None

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield Static(
            row(
                plain("tunebot", "bold"),
                plain("   run a playbook; ask a target; review a session, or go on with it", MUTED),
            ),
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
        if self._hosts.entries:
            entries.add_options([None, Option("TARGETS", disabled=True)])
            self._add(self._hosts.entries)
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
        if event.option_index <= 1:  # the heading above the first one comes along
            self.query_one(Entries).scroll_home(animate=False)
        if entry is not None:
            self._front = entry
            self.query_one("#about", Static).update(self._about(entry))
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys are those of the entry under the cursor."""
        standing = self._front.standing if isinstance(self._front, SessionEntry) else None
        match action:
            case "resume":
                return standing in _RESUMABLE
            case "attach":
                return standing == "running"
            case "copy":
                return isinstance(self._front, SessionEntry) and bool(self._front.command)
            case "dead_ends":
                return bool(self._kept()) and (not isinstance(self._front, HostEntry) or self._front.dead_ends > 0)
            case _:
                return True

    def action_resume(self) -> None:
        """Go on with the session under the cursor."""
        self._choose("resume")

    def action_attach(self) -> None:
        """Attach to the session under the cursor, which runs."""
        self._choose("attach")

    def action_copy(self) -> None:
        """Hand the command that launches the best of the session under the cursor to the terminal's clipboard."""
        if isinstance(self._front, SessionEntry):
            self.app.copy_to_clipboard(self._front.command)
            self.notify("the best launch command is in the clipboard", markup=False)

    def action_dead_ends(self) -> None:
        """The dead ends that are known on the machine under the cursor, or on that of the session."""
        from tui.screens.known import KnownScreen

        kept = self._kept()
        self.app.push_screen(KnownScreen(one_line(kept), remembered(self._hosts.known(kept))))

    def _kept(self) -> str:
        """The name that the history has of the machine under the cursor; empty where it keeps nothing."""
        return "" if self._front is None or isinstance(self._front, PlaybookEntry) else self._front.kept

    def _choose(self, what: Literal["resume", "attach"]) -> None:
        if isinstance(self._front, SessionEntry):
            self.dismiss(Choice(self._front, what))

    @work
    async def ask(self, host: HostEntry) -> None:
        """Find out whether a machine can be used; its line says so as soon as it answers."""
        if self._hosts.ask is None or (host.name in self._asked and host.name not in self._answers):
            return
        self._asked.add(host.name)
        self._answers.pop(host.name, None)
        self._redraw(host)
        self._answers[host.name] = await self._hosts.ask(host.name)
        self._redraw(host)

    def _redraw(self, entry: Entry) -> None:
        self.query_one(Entries).replace_option_prompt(key_of(entry), self._line(entry))
        if entry is self._front:
            self.query_one("#about", Static).update(self._about(entry))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose it: a key or a click."""
        entry = self._entries.get(event.option_id or "")
        if entry is None:
            return
        if isinstance(entry, PlaybookEntry) and entry.problems:
            self.notify(one_line(playbook_text(entry)), severity="warning", markup=False)
        elif isinstance(entry, HostEntry):
            self.ask(entry)
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
        match entry:
            case PlaybookEntry():
                return playbook_line(entry, width)
            case HostEntry():
                return host_line(entry, self._answers.get(entry.name), entry.name in self._asked, width)
        return session_line(entry, width)

    def _about(self, entry: Entry) -> Content:
        match entry:
            case PlaybookEntry():
                return about_playbook(entry)
            case HostEntry():
                answer, asked = self._answers.get(entry.name), entry.name in self._asked
                return about_host(entry, answer, asked, self.app.size.width - 2)
        return about_session(entry)


def key_of(entry: Entry) -> str:
    """What tells an entry from all others."""
    match entry:
        case PlaybookEntry():
            return f"playbook {entry.file}"
        case HostEntry():
            return f"host {entry.name}"
    return f"session {entry.folder}"
