"""The log in a replay: it ends where it ended at the moment that is shown."""

import time
from pathlib import Path

import pytest

from agent.core import events as ev
from tests.test_replay import EVENTS
from tests.tui.kit import until
from tests.tui.test_replay import Clock, replayed
from tui.app import TunebotApp
from tui.replay_source import UNDATED, ReplaySource
from tui.screens.log import LogScreen
from tui.screens.replay import ReplayScreen
from tui.widgets.log_pane import LogPane

FIRST = next(index for index, event in enumerate(EVENTS) if isinstance(event, ev.LaunchRequested))
LAUNCH = EVENTS[FIRST]
assert isinstance(LAUNCH, ev.LaunchRequested)
STOPPED = next(event for event in EVENTS if isinstance(event, ev.ServerStopped))
TIMES = sorted(event.at for event in EVENTS[FIRST:] if event.at < STOPPED.at)
"""When something happened while the first launch was up: its log has a line for each."""


def written(folder: Path, stamp: str) -> ReplaySource:
    """A paused replay, and the log of its first launch."""
    (folder / "launches").mkdir()
    path = folder / "launches" / f"{LAUNCH.launch}.log"
    with path.open("w") as file:
        file.writelines(f"{time.strftime(stamp, time.gmtime(at))} line {n}\n" for n, at in enumerate(TIMES))
    source = replayed(folder, Clock())
    source.open_at(LAUNCH.at)
    return source


def printed(source: ReplaySource) -> int:
    """How many lines there were by now."""
    return sum(int(at) <= source.now() for at in TIMES)


@pytest.mark.parametrize("screen", ["run", "log"])
async def test_the_log_goes_with_the_moment_forwards_and_backwards(tmp_path: Path, screen: str) -> None:
    source = written(tmp_path, "INFO %m-%d %H:%M:%S")
    app = TunebotApp(source, ReplayScreen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        if screen == "log":
            await app.push_screen(LogScreen(LAUNCH.launch))
        pane = app.screen.query_one(LogPane)
        seen = set()
        for at in (*TIMES[::3], TIMES[-1], *TIMES[::-3]):
            source.open_at(at)
            app.refresh_state()
            await until(pilot, lambda: pane.status.rows == printed(source))
            assert not pane.status.told
            seen.add(pane.status.rows)
    assert len(seen) > 3 and max(seen) == len(TIMES)


async def test_a_log_without_dates_is_whole_and_that_is_said(tmp_path: Path) -> None:
    source = written(tmp_path, "main:")
    app = TunebotApp(source, ReplayScreen)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen.query_one(LogPane)
        await until(pilot, lambda: pane.status.rows == len(TIMES))
        assert UNDATED in str(pane.border_subtitle)
        await app.push_screen(LogScreen(LAUNCH.launch))
        await until(pilot, lambda: UNDATED in "\n".join(str(s) for s in app.screen._compositor.render_strips()))
        source.open_at(STOPPED.at)
        app.refresh_state()
        await until(pilot, lambda: not app.screen.query_one(LogPane).status.told)
