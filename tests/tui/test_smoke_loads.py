"""The run screen and the details say which of two loads of an experiment is the smoke load."""

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.core.conftest import playbook
from tests.tui.kit import Session, until
from tui.app import TunebotApp
from tui.screens.details import DetailsScreen
from tui.screens.run import RunScreen

BOOK = playbook({"id": "baseline"}, {"id": "eagle3"}, name="kimi", smoke="dummy")


def smoked() -> Session:
    """The smoke load of the baseline got ready and was measured for real; that of eagle3 loads."""
    session = Session(book=BOOK).begin().loading().ready().stopped()
    return session.measured(89.5, 89.4, 89.6).loading(0.2, 30.0)


async def shown(pilot: Pilot[Any], *words: str) -> None:
    await until(pilot, lambda: all(word in pilot.app.export_screenshot().replace("&#160;", " ") for word in words))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_while_it_loads_and_after_it_failed(size: tuple[int, int]) -> None:
    session = smoked()
    app = TunebotApp(session)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await shown(pilot, "smoke load 20 %", "launch 3 · smoke load")
        session.fail("CUDA out of memory")
        await shown(pilot, "in the smoke load")


async def test_the_details_number_them_together() -> None:
    app = TunebotApp(smoked())
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        app.push_screen(DetailsScreen("baseline"))
        await shown(pilot, "launch 1, smoke load", "launch 2")
