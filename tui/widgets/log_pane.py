"""The log of a launch: follows its end, finds, filters by rank, jumps to the failure. At any length and any speed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from agent.logtimes import WHOLE, Shown
from agent.redact import redact_line
from tui.widgets.log_lines import LogLines
from tui.widgets.log_status import LogStatus, foot_of, title_of
from tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from tui.app import TunebotApp

POLLS_PER_SECOND = 10
READ_S = 0.005
"""Seconds of a poll that may go into reading, so that no key has to wait for a log."""
QUIET_S = 10.0
"""Seconds without a new line after which a log that was seen growing is called quiet."""


class LogPane(LogView):
    """Drawn by itself ten times a second; `show` says which log."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "find", "find", key_display="/", id="log.find"),
        Binding("n", "next(False)", "next match", show=False, id="log.next"),
        Binding("N", "next(True)", "previous match", show=False, id="log.previous"),
        Binding("0", "rank(0)", "rank", key_display="0-9"),
        *(Binding(str(rank), f"rank({rank})", show=False) for rank in range(1, 10)),
        Binding("asterisk", "all_ranks", "all ranks", key_display="*", show=False, id="log.all-ranks"),
        Binding("x", "failure", "failure", id="log.failure"),
        Binding("w", "wrap", "wrap", id="log.wrap"),
        Binding("f", "scroll_end", "follow", id="log.follow"),
        Binding("k", "scroll_up", show=False),
        Binding("j", "scroll_down", show=False),
        Binding("escape", "forget", show=False),
    ]

    class Changed(Message):
        """The status is another one."""

        def __init__(self, status: LogStatus) -> None:
            super().__init__()
            self.status = status

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.status = LogStatus()
        self._title = "Log"
        self._failure_line: int | None = None
        self._shown = WHOLE
        self._now = self._grown_at = 0.0
        self._growing = False
        self._generation = 0
        self._hurrying = False
        self._goal: Callable[[], bool] | None = None
        self._typed: str | None = None
        self._note = ""

    def show(
        self, path: Path | None, title: str, now: float, failure_line: int | None = None, shown: Shown = WHOLE
    ) -> None:
        """Show a log as it is at `now`; `failure_line` is the line of the file (from one) that tells the failure."""
        self._title, self._now, self._failure_line, self._shown = title, now, failure_line, shown
        if path != (None if self.lines is None else self.lines.log.path):
            self._open(path)
        elif self.lines is not None:
            self.lines.log.limit = shown.until
        self.moved()

    def empty_text(self) -> str:
        """Why there is no row."""
        if self.lines is None:
            return "no launch yet"
        if self.lines.rank is not None and len(self.lines.log):
            return f"no line of rank {self.lines.rank.rank}" if self.lines.rank.complete else "…"
        return "nothing printed yet"

    def moved(self) -> None:
        """Say in the frame, and to who listens, where the pane stands."""
        status = self._status()
        if status != self.status:
            self.status = status
            self.border_title, self.border_subtitle = title_of(status), foot_of(status)
            self.post_message(self.Changed(status))

    def _status(self) -> LogStatus:
        lines = self.lines
        if lines is None:
            return LogStatus(title=self._title)
        rows, matches = len(lines), lines.matches
        quiet = self._now - self._grown_at if self._growing else 0.0
        match = matches.place_of(self.target) if matches is not None and self.target is not None else -1
        return LogStatus(
            title=self._title,
            at=self.bottom,
            rows=rows,
            follow=self.follow,
            wrap=self.wrap,
            new=0 if self.follow else max(0, rows - self.seen),
            rank=None if lines.rank is None else lines.rank.rank,
            needle="" if matches is None else matches.needle,
            match=match + 1 if matches is not None and self.target in matches else 0,
            matches=0 if matches is None else len(matches),
            searched=matches is None or matches.complete,
            read=1 - lines.behind,
            quiet_s=int(quiet) if quiet >= QUIET_S else 0,
            typed=self._typed,
            note=self._note,
            told=self._shown.told if rows else "",
        )

    # Reading

    def on_mount(self) -> None:
        """Look at the file from now on."""
        self.set_interval(1 / POLLS_PER_SECOND, self._poll)

    def on_unmount(self) -> None:
        """Let go of the file."""
        if self.lines is not None:
            self.lines.log.close()

    def _open(self, path: Path | None) -> None:
        if self.lines is not None:
            self.lines.log.close()
        redact = cast("TunebotApp", self.app).source.redact
        self.lines = LogLines(path, partial(redact_line, redact)) if path else None
        if self.lines is not None:
            self.lines.log.limit = self._shown.until
        self._begin_again()
        self._poll()
        self.fit()

    def _begin_again(self) -> None:
        self.follow, self.target, self.seen = True, None, 0
        self._goal, self._typed, self._note, self._growing = None, None, "", False

    def _poll(self) -> None:
        """Read on, within READ_S; go on soon where that was not enough."""
        if self.lines is None or not self.screen.is_current or not self.size:
            return
        if self.lines.advance(READ_S):
            if self._generation != self.lines.generation:
                self._generation = self.lines.generation
                self._begin_again()
            self._growing = self._growing or (self.seen > 0 and not self.lines.behind)
            self._grown_at = self._now
            self.fit()
        if self._goal is not None and self._goal():
            self._goal = None
            self.redraw()
        if (self.lines.behind or self._goal) and not self._hurrying:
            self._hurrying = True
            self.set_timer(READ_S, self._hurry)

    def _hurry(self) -> None:
        self._hurrying = False
        self._poll()

    # Keys

    def on_key(self, event: events.Key) -> None:
        """While a search is typed, every key is a part of it."""
        if self._typed is None:
            return
        event.stop()
        if event.key == "enter":
            typed, self._typed = self._typed, None
            self._search(typed)
        elif event.key == "escape":
            self._typed = None
        elif event.key == "backspace":
            self._typed = self._typed[:-1]
        elif event.is_printable and event.character:
            self._typed += event.character
        self.moved()

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted while a search is typed is searched for."""
        if self._typed is not None:
            event.stop()
            self._typed += " ".join(event.text.split())
            self.moved()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that have no use now belong to the screen."""
        if action == "next":
            return self.lines is not None and self.lines.matches is not None
        if action == "forget":
            return self.lines is not None and not (self.lines.matches is None and self.lines.rank is None)
        return True

    def action_scroll_end(self) -> None:
        """To the end, and follow it."""
        self.follow, self._goal, self._note = True, None, ""
        self.fit()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.wrap = not self.wrap

    def action_find(self) -> None:
        """Type a search."""
        self._typed, self._note = "", ""
        self.moved()

    def action_next(self, backwards: bool) -> None:
        """To the next match below the marked one, or above; around the end."""
        if self.lines is None or self.lines.matches is None or not len(self.lines.matches):
            return
        matches = self.lines.matches
        line = self.target if self.target is not None else self.lines.line_at(self.top)
        place = matches.place_of(line)
        if backwards:
            place -= 1
        elif place < len(matches) and matches[place] == self.target:
            place += 1
        self._jump(matches[place % len(matches)])

    def action_rank(self, rank: int) -> None:
        """What one rank wrote."""
        self._filter(rank)

    def action_all_ranks(self) -> None:
        """What all wrote."""
        self._filter(None)

    def action_forget(self) -> None:
        """Give up the search, then the filter."""
        if self.lines is not None and self.lines.matches is not None:
            self._search("")
        else:
            self._filter(None)

    def action_failure(self) -> None:
        """To the line that shows why the launch failed, or to the first traceback."""
        if self.lines is None:
            return
        self._filter(None)
        number = self._failure_line
        line = self.lines.log.index_of(number) if number is not None else None
        if line is not None:
            self._jump(line)
            return
        tracebacks = self.lines.tracebacks()

        def found() -> bool:
            tracebacks.advance()
            if len(tracebacks):
                self._jump(tracebacks[0])
            elif tracebacks.complete:
                self._note = "no traceback in this log"
            return bool(len(tracebacks)) or tracebacks.complete

        self._goal = found
        self._poll()

    def _search(self, needle: str) -> None:
        if self.lines is None:
            return
        self.lines.search(needle)
        self.redraw()
        if needle:
            backwards = self.follow
            self._goal = lambda: self._found(backwards)
            self._poll()

    def _found(self, backwards: bool) -> bool:
        """Go to the match that is next to what is in view: the last one where the end is."""
        if self.lines is None or self.lines.matches is None:
            return True
        matches, complete = self.lines.matches, self.lines.matches.complete
        place = len(matches) - 1 if backwards else matches.place_of(self.lines.line_at(self.top))
        if len(matches) and (complete or (not backwards and place < len(matches))):
            self._jump(matches[place % len(matches)])
            return True
        return complete

    def _filter(self, rank: int | None) -> None:
        if self.lines is None or rank == (None if self.lines.rank is None else self.lines.rank.rank):
            return
        lines = self.lines
        line = lines.line_at(self.top) if len(lines) else 0
        follow, self.seen = self.follow, 0
        lines.filter(rank)
        self.fit()

        def placed() -> bool:
            if lines.rank is not None and not lines.rank.complete and lines.rank.done <= line:
                return False
            if not follow:
                self.go(lines.row_of(line))
                self.follow = False
            return True

        self._goal = placed
        self._poll()

    def _jump(self, line: int) -> None:
        if self.lines is not None:
            self.target = line
            self.bring_into_view(self.lines.row_of(line))
