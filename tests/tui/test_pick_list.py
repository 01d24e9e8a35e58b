"""A list draws what is in view, however long it is; the choice stays in view and with its row."""

from collections.abc import AsyncIterator

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.pilot import Pilot

from tests.tui.kit import until
from tui.content import plain
from tui.widgets.pick_list import Pick, PickList

HEIGHT = 10
NAMES = [f"row-{n:03}" for n in range(200)]


class Listed(App[None]):
    """Remembers which rows were drawn, and which were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []
        self.opened: list[str] = []
        self.rows: PickList[str] = PickList(self._draw)

    def compose(self) -> ComposeResult:
        yield self.rows

    def _draw(self, name: str, width: int) -> Content:
        self.drawn.append(name)
        return plain(name)

    def on_pick_list_opened(self, message: PickList.Opened) -> None:
        self.opened.append(message.key)

    @property
    def text(self) -> list[str]:
        return [self.rows.render_line(y).text.rstrip() for y in range(HEIGHT)]


@pytest.fixture
async def listed() -> AsyncIterator[tuple[Listed, Pilot[None]]]:
    app = Listed()
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        app.rows.show([Pick(name, name) for name in NAMES])
        app.rows.focus()
        await until(pilot, lambda: app.drawn)
        yield app, pilot


async def test_only_rows_in_view_are_drawn(listed: tuple[Listed, Pilot[None]]) -> None:
    app, pilot = listed
    assert set(app.drawn) == set(NAMES[:HEIGHT])
    app.drawn.clear()
    app.rows.show([Pick(name, name) for name in reversed(NAMES)])
    await until(pilot, lambda: app.drawn)
    await pilot.pause()
    assert len(set(app.drawn)) <= HEIGHT and len(app.drawn) <= 2 * HEIGHT


async def test_the_same_rows_draw_nothing(listed: tuple[Listed, Pilot[None]]) -> None:
    app, pilot = listed
    await pilot.pause()
    app.drawn.clear()
    app.rows.show([Pick(name, name) for name in NAMES])
    await pilot.pause()
    assert not app.drawn


async def test_the_choice_is_kept_in_view(listed: tuple[Listed, Pilot[None]]) -> None:
    app, pilot = listed
    assert app.text[0] == "▌row-000"
    for key, at, line in (("end", 199, -1), ("up", 198, -2), ("home", 0, 0), ("pagedown", 9, 9), ("down", 10, 9)):
        await pilot.press(key)
        await until(pilot, lambda at=at: app.rows.chosen == NAMES[at])  # type: ignore[misc]
        assert app.text[line] == f"▌{NAMES[at]}"


async def test_a_click_chooses_then_opens_also_where_it_is_scrolled(listed: tuple[Listed, Pilot[None]]) -> None:
    app, pilot = listed
    await pilot.press("end")
    for _ in range(2):
        await pilot.click(app.rows, offset=(3, 4))
    await until(pilot, lambda: app.opened)
    assert app.opened == [app.rows.chosen] == ["row-194"]


async def test_a_row_that_goes_leaves_the_choice_to_the_next_one(listed: tuple[Listed, Pilot[None]]) -> None:
    app, pilot = listed
    await pilot.press("down")
    app.rows.show([Pick(None, "HEADING"), *(Pick(name, name) for name in NAMES if name != "row-001")])
    assert app.rows.chosen == "row-002"
    await pilot.press("up", "up")
    assert app.rows.chosen == "row-000"
    await until(pilot, lambda: app.text[:2] == [" HEADING", "▌row-000"])
