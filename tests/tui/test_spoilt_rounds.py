"""A round that is repeated, on the run screen: the board says `again`, the server panel why."""

from dataclasses import replace

import pytest

from agent.core import events as ev
from agent.core.metrics import Hygiene
from tests.core.conftest import metrics
from tests.tui.kit import Session, story
from tests.tui.test_run_screen import shown

LAG = Hygiene(name="loop lag", level="bad", text="the client woke up to 1200.0 ms late (p99)")


def repeating() -> Session:
    """The baseline's third round was spoilt, and is measured again."""
    session = story("measuring")
    spoilt = replace(metrics(40.0), hygiene=(LAG,))
    launch = session.launch.id
    return session.give(ev.RoundMeasured(at=session.at, launch=launch, workload="single", index=2, metrics=spoilt))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_screen_says_that_a_round_is_repeated_and_why(size: tuple[int, int]) -> None:
    async with shown(repeating(), size) as s:
        text = "\n".join("".join(cell.text for cell in strip) for strip in s.app.screen._compositor.render_strips())
        assert "measuring 3/3 again" in text
        assert "single, round 3 again" in text
        # The smallest screen has no room for the line under the bar.
        assert ("! single round 3 was spoilt: the client woke up" in text) is (size[1] > 24)
        s.session.round(89.6)
        await s.drawn()
        assert s.session.state.experiments["baseline"].verdict
