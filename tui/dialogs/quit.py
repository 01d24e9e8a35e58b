"""Leaving the session: asked only as far as there is something to decide."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from agent.core.leaving import Leaving, leaving
from agent.core.state import State
from agent.text import one_line
from tui.content import plain, row
from tui.dialogs.base import Dialog
from tui.flow import lines


class QuitDialog(Dialog[bool | None]):
    """True keeps the server running, False stops it (or there is none), None stays in the session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "answer(True)", "Keep", show=False),
        Binding("s,l", "answer(False)", "Stop", show=False),
        Binding("c,n", "dismiss_none", "Stay", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, state: State) -> None:
        super().__init__()
        self._leaving = leaving(state)

    def compose(self) -> ComposeResult:
        """What leaving means now, and the choices that there are."""
        server = bool(self._leaving.server)
        with Vertical(id="box") as box:
            box.border_title = plain("Leave the session")
            box.border_subtitle = plain("k keep · s stop · esc stay" if server else "l leave · esc stay")
            yield Static(_text(self._leaving))
            with Horizontal(classes="buttons"):
                yield Button(row("Stay"), id="stay")
                if server:
                    yield Button(row("Keep it running"), id="keep")
                yield Button(row("Stop it" if server else "Leave"), id="stop")

    def on_mount(self) -> None:
        """Enter by itself stays; where nothing is at stake, nothing is asked."""
        if self._leaving.asks:
            self.query_one("#stay", Button).focus()
        else:
            self.dismiss(False)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """The choice."""
        self.dismiss({"keep": True, "stop": False}.get(message.button.id or ""))

    def action_answer(self, keep: bool) -> None:
        """The choice by its letter."""
        if self._leaving.server or not keep:
            self.dismiss(keep)


class DetachDialog(Dialog[bool | None]):
    """True ends the session, False only leaves its screen, None stays."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "answer(False)", "Detach", show=False),
        Binding("e", "answer(True)", "End", show=False),
        Binding("s,c,n", "dismiss_none", "Stay", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, state: State) -> None:
        super().__init__()
        self._leaving = leaving(state)

    def compose(self) -> ComposeResult:
        """What each choice means."""
        with Vertical(id="box") as box:
            box.border_title = plain("Leave the screen")
            box.border_subtitle = plain("d detach · e end · esc stay")
            yield Static(_detach_text(self._leaving))
            with Horizontal(classes="buttons"):
                yield Button(row("Detach"), id="detach")
                yield Button(row("End the session"), id="end")
                yield Button(row("Stay"), id="stay")

    def on_mount(self) -> None:
        """Enter by itself detaches, which stops nothing."""
        self.query_one("#detach", Button).focus()

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """The choice."""
        self.dismiss({"end": True, "detach": False}.get(message.button.id or ""))

    def action_answer(self, end: bool) -> None:
        """The choice by its letter."""
        self.dismiss(end)


def _text(at_stake: Leaving) -> Content:
    made = _at_stake(at_stake, " and would be cancelled")
    if at_stake.server:
        made += [Content(""), plain("Keep the server running, or stop it?")]
    return lines(*made)


def _detach_text(at_stake: Leaving) -> Content:
    goes_on = plain("Detached, the session goes on: tunebot attach comes back to it.")
    ends = plain(f"Ended, it winds up{' and its server is stopped' if at_stake.server else ''}.")
    return lines(*_at_stake(at_stake, ""), Content(""), goes_on, ends)


def _at_stake(at_stake: Leaving, tasks_end: str) -> list[Content]:
    made = []
    if at_stake.server:
        made.append(plain(f"The server of {one_line(at_stake.server)} is up: {one_line(at_stake.doing)}."))
    if at_stake.unfinished:
        many = at_stake.unfinished > 1
        made.append(plain(f"{at_stake.unfinished} experiment{'s have' if many else ' has'} not ended yet."))
    if at_stake.tasks:
        many = at_stake.tasks > 1
        made.append(plain(f"{at_stake.tasks} background task{'s run' if many else ' runs'}{tasks_end}."))
    return made
