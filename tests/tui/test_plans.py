"""Strategies and best cases on the screens: the board's frame and rows, the page of an experiment, a proposal."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.state import ExperimentState, Stage
from agent.core.views.board import board_view
from agent.playbook.model import Experiment, Playbook
from tests.core.conftest import playbook
from tests.tui.kit import Session, until
from tests.tui.stage import Recorder, on_stage
from tests.tui.test_run_screen import shown
from tui.content import plain
from tui.screens.details import DetailsScreen
from tui.screens.needs import NeedsScreen

GROUPS = [
    {"id": "ar", "name": "all-reduce replacements", "members": ["ar-fusion", "nccl-tree"], "then": "ep"},
    {"id": "ep", "name": "expert parallelism [b]", "members": ["ep-plain"]},
]


def book() -> Playbook:
    """A baseline of 11.2 ms a step, of which 3.7 are all-reduces."""
    ideas = [
        {"id": "ar-fusion", "removes": {"allreduce": 61}},
        {"id": "nccl-tree", "removes": {"allreduce": 122}},
        {"id": "ep-plain", "removes": {"allreduce": 61}},
    ]
    terms = {"allreduce": {"count": 122, "each": "30us"}}
    return playbook({"id": "baseline"}, *ideas, groups=GROUPS, terms=terms)


def given_up() -> Session:
    """Both members of the first strategy are no use; the second one is tried."""
    session = Session(book(), folder=Path()).begin()
    for values in ((89.5, 89.4, 89.6), (60.0, 60.2, 60.1), (70.0, 70.1, 70.2)):
        session.measured(*values)
    return session


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_frame_of_the_board_names_the_strategy_and_what_was_given_up(size: tuple[int, int]) -> None:
    session = Session(book()).begin()
    async with shown(session, size) as s:
        await until(s.pilot, lambda: "all-reduce replacements" in s.board.border_title)
        session.measured(89.5, 89.4, 89.6)
        for values in ((60.0, 60.2, 60.1), (70.0, 70.1, 70.2)):
            session.measured(*values)
        await s.drawn()
        title = str(s.board.border_title).replace("\\[", "[")
        assert title.startswith("Board · strategy: expert parallelism [b]")
        assert len(title) <= s.board.size.width


async def test_a_playbook_without_groups_has_a_plain_frame() -> None:
    async with shown(Session().begin()) as s:
        assert str(s.board.border_title) == str(plain("Board"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_page_of_a_dead_end_tells_its_strategy_and_what_was_expected(size: tuple[int, int]) -> None:
    state = given_up().state
    async with on_stage(Recorder(state), DetailsScreen("ar-fusion"), size) as (app, pilot):
        seen = ""
        for _ in range(8):
            seen += app.text
            await pilot.press("pagedown")
            await pilot.pause()
    for words in (
        "Expected",
        "at best +20 %",
        "measured -33 %",
        "believed",
        "Strategy",
        "✖ given up",
        "nccl-tree worse",
    ):
        assert words in seen, words


async def test_proposals_that_could_gain_more_come_first_and_say_so() -> None:
    state = given_up().state
    for name, removes in (("small", 20), ("large", 122), ("unknown", 0)):
        spec = Experiment(
            id=name, based_on="baseline", args={"x": name}, removes={"allreduce": removes} if removes else {}
        )
        proposed = ExperimentState(spec=spec, stage=Stage.PROPOSED)
        state = replace(state, experiments={**state.experiments, name: proposed})
    rows = {str(section.place): section.rows for section in board_view(state)}["PROPOSALS"]
    assert [(row.experiment, row.text) for row in rows] == [
        ("large", "at best +49 % · waits for you"),
        ("small", "at best +5.7 % · waits for you"),
        ("unknown", "waits for you"),
    ]
    async with on_stage(Recorder(state), NeedsScreen()) as (app, pilot):
        await until(pilot, lambda: "proposes large" in app.text and "at best +49 %" in app.text)
