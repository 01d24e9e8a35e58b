"""The red line: there while something is wrong, above every screen, and gone without a trace."""

import pytest

from tests.tui.kit import story, until
from tui.app import TunebotApp
from tui.screens.details import DetailsScreen
from tui.widgets.board import Board
from tui.widgets.trouble import Trouble


def first_line(app: TunebotApp) -> str:
    strip = app.screen._compositor.render_strips()[0]
    return "".join(segment.text for segment in strip).rstrip()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_comes_and_goes(size: tuple[int, int]) -> None:
    session = story("loading")
    app = TunebotApp(session)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "kimi" in first_line(app))
        height = app.screen.query_one(Board).size.height

        session.trouble = "the disk is full " * 20
        session.version += 1
        await until(pilot, lambda: first_line(app).startswith(" ✖ the disk is full"))
        assert first_line(app).endswith("…") and len(first_line(app)) <= size[0]
        assert app.screen.query_one(Board).size.height <= height

        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen) and "the disk is full" in first_line(app))
        session.trouble = "[red]x[/red] \x1b[31m[@click=app.quit]y[/]"
        session.version += 1
        await until(pilot, lambda: first_line(app) == " ✖ [red]x[/red] [@click=app.quit]y[/]")

        session.trouble = ""
        session.version += 1
        await until(pilot, lambda: not app.screen.query_one(Trouble).display)
        await pilot.press("escape")
        await until(pilot, lambda: "kimi" in first_line(app))
        assert app.screen.query_one(Board).size.height == height


async def test_a_new_size_cuts_it_anew() -> None:
    session = story("loading")
    session.trouble = "x" * 200
    app = TunebotApp(session)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(first_line(app)) in (79, 80))
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: len(first_line(app)) in (119, 120))
