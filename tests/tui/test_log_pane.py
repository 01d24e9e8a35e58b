"""Each key of the log pane, and what it does while the log grows."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tui.widgets.log_pane import LogPane
from tui.widgets.log_status import LogStatus, foot_of, title_of


class Redacting:
    """The part of a source that a pane needs."""

    def redact(self, text: str) -> str:
        return text.replace("hunter2", "‹redacted›")


class PaneApp(App[None]):
    CSS = "LogPane { border: round $primary; }"

    def __init__(self) -> None:
        super().__init__()
        self.source = Redacting()

    def compose(self) -> ComposeResult:
        yield LogPane()


class Shown:
    """A pane in a running app, and the file that it shows."""

    def __init__(self, pilot: Pilot[None], path: Path) -> None:
        self.pilot, self.path = pilot, path
        self.pane = pilot.app.query_one(LogPane)

    @property
    def status(self) -> LogStatus:
        return self.pane.status

    @property
    def rows(self) -> list[str]:
        return [self.pane.render_line(y).text.rstrip() for y in range(self.pane.room.height)]

    def add(self, *lines: str) -> None:
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition, thirty seconds at the most."""
        for _ in range(1500):
            if true():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"{self.status}\n" + "\n".join(self.rows))

    async def read(self) -> None:
        """Wait until all that is in the file is on the screen."""
        lines = self.path.read_text().splitlines()
        await self.until(lambda: self.status.rows == len(lines))


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    async with PaneApp().run_test(size=(60, 12)) as pilot:  # ten rows of 57 cells
        path = tmp_path / "log"
        path.touch()
        pane = Shown(pilot, path)
        pane.pane.focus()
        pane.pane.show(path, "Log", 100.0)
        yield pane


def wheel(pane: LogPane, up: bool) -> events.MouseEvent:
    kind = events.MouseScrollUp if up else events.MouseScrollDown
    return kind(pane, 5, 5, 0, 0, 0, False, False, False)


async def hundred(shown: Shown) -> None:
    shown.add(*(f"[23:26:21 TP{n % 8}] line {n}" for n in range(100)))
    await shown.read()


async def test_without_a_log_it_says_so(shown: Shown) -> None:
    assert shown.rows[0] == "nothing printed yet"
    shown.pane.show(None, "Log", 100.0)
    await shown.until(lambda: shown.rows[0] == "no launch yet")


async def test_it_follows_the_end(shown: Shown) -> None:
    await hundred(shown)
    assert shown.rows[-1] == "[23:26:21 TP3] line 99"
    shown.add("one more")
    await shown.until(lambda: shown.rows[-1] == "one more")
    assert shown.status.follow


@pytest.mark.parametrize("key", ["up", "k", "pageup", "home"])
async def test_going_up_holds_still_and_counts_what_comes(shown: Shown, key: str) -> None:
    await hundred(shown)
    await shown.press(key)
    rows = shown.rows
    shown.add(*["new"] * 3)
    await shown.until(lambda: shown.status.new == 3)
    assert shown.rows == rows
    assert "3 new lines below" in foot_of(shown.status).plain


@pytest.mark.parametrize("key", ["end", "f"])
async def test_the_end_is_followed_again(shown: Shown, key: str) -> None:
    await hundred(shown)
    await shown.press("home")
    assert shown.rows[0] == "[23:26:21 TP0] line 0"
    await shown.press(key)
    assert shown.status.follow
    shown.add("one more")
    await shown.until(lambda: shown.rows[-1] == "one more")


async def test_rows_and_pages(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("home", "down", "j")
    assert shown.pane.top == 2
    await shown.press("pagedown")
    assert shown.pane.top == 11
    await shown.press("up", "k", "pageup")
    assert shown.pane.top == 0
    for _ in range(11):
        await shown.press("pagedown")
    assert shown.status.follow


async def test_the_wheel_scrolls(shown: Shown) -> None:
    await hundred(shown)
    shown.pane.post_message(wheel(shown.pane, up=True))
    await shown.until(lambda: not shown.status.follow)
    assert shown.pane.top == 87
    shown.pane.post_message(wheel(shown.pane, up=False))
    await shown.until(lambda: shown.status.follow)


async def test_the_scroll_bar_moves_it(shown: Shown) -> None:
    await hundred(shown)
    shown.pane.scroll_to(y=40, animate=False)
    await shown.until(lambda: shown.rows[0] == "[23:26:21 TP0] line 40")
    assert not shown.status.follow


async def test_find_goes_to_the_last_match_and_around(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("slash", *"LINE 7", "enter")
    await shown.until(lambda: shown.status.match == 11)
    assert shown.status.matches == 11
    assert "[23:26:21 TP7] line 79" in shown.rows
    await shown.press("N")
    assert shown.status.match == 10
    await shown.press("n", "n")
    assert shown.status.match == 1
    await shown.press("N")
    assert shown.status.match == 11
    await shown.press("escape")
    assert shown.status.needle == ""


async def test_find_from_the_middle_goes_down(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("home", "slash", *"line 9", "enter")
    await shown.until(lambda: shown.status.match == 1)
    assert "[23:26:21 TP1] line 9" in shown.rows


async def test_what_is_typed_is_no_key_until_enter(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("slash", "w", "x", "3", "*", "backspace")
    assert shown.status.typed == "wx3"
    assert not shown.status.wrap
    assert foot_of(shown.status).plain.startswith("/wx3")
    await shown.press("escape")
    assert shown.status.typed is None
    assert shown.status.needle == ""
    await shown.press("slash", *"absent", "enter")
    await shown.until(lambda: "no match" in foot_of(shown.status).plain)


async def test_matches_that_come_are_counted(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("slash", *"needle", "enter")
    await shown.until(lambda: shown.status.searched)
    shown.add("a needle", "hay", "needles")
    await shown.until(lambda: shown.status.matches == 2)


async def test_a_digit_shows_one_rank_and_the_star_all(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("3")
    await shown.until(lambda: shown.status.rows == 13)
    assert all("TP3" in row for row in shown.rows)
    assert "rank 3" in title_of(shown.status).plain
    shown.add("[23:26:22 TP3] more", "[23:26:22 TP4] other")
    await shown.until(lambda: shown.rows[-1] == "[23:26:22 TP3] more")
    await shown.press("9")
    await shown.until(lambda: shown.rows[0] == "no line of rank 9")
    await shown.press("asterisk")
    await shown.until(lambda: shown.status.rows == 102)


async def test_a_filter_keeps_the_place(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("home", "pagedown", "pagedown", "pagedown")
    assert shown.rows[0].endswith("line 27")
    await shown.press("3")
    await shown.until(lambda: shown.rows[0].endswith("line 27"))
    await shown.press("escape")
    await shown.until(lambda: shown.status.rows == 100)
    assert shown.rows[0].endswith("line 27")


async def test_x_goes_to_the_first_traceback(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("x")
    await shown.until(lambda: "no traceback in this log" in foot_of(shown.status).plain)
    shown.add("Traceback (most recent call last):", "ValueError: no", *["later"] * 50)
    await shown.read()
    await shown.press("x")
    await shown.until(lambda: "Traceback (most recent call last):" in shown.rows)
    assert not shown.status.follow


async def test_x_goes_to_the_line_of_the_evidence(shown: Shown) -> None:
    await hundred(shown)
    shown.pane.show(shown.path, "Log", 100.0, failure_line=18)
    await shown.press("3", "x")
    await shown.until(lambda: "[23:26:21 TP1] line 17" in shown.rows)
    assert shown.status.rank is None


async def test_w_wraps_and_every_row_can_be_reached(shown: Shown) -> None:
    long = "".join(f"{n:04}" for n in range(250))
    shown.add("first", long, "last")
    await shown.read()
    assert shown.rows[1].endswith("…")
    await shown.press("w", "home")
    seen = "\n".join(shown.rows)
    for _ in range(20):
        await shown.press("down")
        seen += "\n" + shown.rows[-1]
    assert "".join(dict.fromkeys(seen.split("\n"))) == f"first{long}last"
    assert shown.rows[-1] == "last"
    assert shown.status.follow
    await shown.press("w")
    assert shown.rows[0] == "first"


async def test_a_bar_stays_one_row(shown: Shown) -> None:
    shown.add("before")
    for done in range(3):
        with shown.path.open("a") as file:
            file.write(f"\rLoading {done}/3")
        await shown.until(lambda done=done: shown.rows[1] == f"Loading {done}/3")  # type: ignore[misc]
    assert shown.status.rows == 2


async def test_secrets_are_not_drawn(shown: Shown) -> None:
    shown.add("api_key=hunter2")
    await shown.until(lambda: shown.rows[0] == "api_key=‹redacted›")


async def test_another_log_begins_at_its_end(shown: Shown, tmp_path: Path) -> None:
    await hundred(shown)
    await shown.press("home", "3", "slash", "x", "enter")
    (tmp_path / "other").write_text("only\n")
    shown.pane.show(tmp_path / "other", "Other", 101.0)
    await shown.until(lambda: shown.rows[0] == "only")
    assert (shown.status.follow, shown.status.rank, shown.status.needle) == (True, None, "")
    assert title_of(shown.status).plain == "Other"


async def test_a_truncated_log_is_begun_again(shown: Shown) -> None:
    await hundred(shown)
    await shown.press("home")
    shown.path.write_text("new\n")
    await shown.until(lambda: shown.rows[0] == "new")
    assert shown.status.follow


async def test_a_log_that_stopped_growing_is_called_quiet(shown: Shown) -> None:
    await hundred(shown)
    shown.add("one more")
    await shown.read()
    shown.pane.show(shown.path, "Log", 145.0)
    assert "quiet 0:45" in foot_of(shown.status).plain


async def test_other_sizes_and_themes(shown: Shown) -> None:
    await hundred(shown)
    await shown.pilot.resize_terminal(100, 30)
    await shown.until(lambda: shown.rows[0].endswith("line 72"))
    shown.pilot.app.theme = "textual-light"
    await shown.until(lambda: shown.rows[-1].endswith("line 99"))
