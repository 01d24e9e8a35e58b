"""The whole log of a launch, and the keys of its screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from agent.core.model import Failure, Phase, Quote
from agent.core.state import Launch, LaunchStage
from tests.tui.kit import Session, story, until
from tui.app import TunebotApp
from tui.screens.log import LogScreen, StatusLine, TitleLine, failure_line
from tui.screens.run import RunScreen
from tui.widgets.log_pane import LogPane

LOG = "".join(f"[2026-11-30 01:27:{n % 60:02} TP{n % 8}] {{}} line {n}\n" for n in range(60))


def session_with_logs(folder: Path) -> Session:
    session = story("failed", folder)
    (folder / "launches").mkdir()
    for launch in session.state.launches.values():
        (folder / "launches" / f"{launch.id}.log").write_text(LOG.format(*[launch.experiment] * 60))
    return session


@asynccontextmanager
async def log_screen(session: Session, size: tuple[int, int] = (100, 24)) -> AsyncIterator[Pilot[None]]:
    app = TunebotApp(session)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and pane(pilot).status.rows == 60)
        yield pilot


def pane(pilot: Pilot[None]) -> LogPane:
    return pilot.app.screen.query_one(LogPane)


def title(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one(TitleLine).content)


def status(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one(StatusLine).content)


async def test_l_shows_the_log_and_escape_goes_back(tmp_path: Path) -> None:
    async with log_screen(session_with_logs(tmp_path)) as pilot:
        assert pilot.app.focused is pane(pilot)
        await until(pilot, lambda: "follow" in status(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


async def test_brackets_go_from_launch_to_launch(tmp_path: Path) -> None:
    session = session_with_logs(tmp_path)
    launches = list(session.state.launches.values())
    assert len(launches) > 1
    async with log_screen(session) as pilot:
        assert title(pilot).startswith(f"{launches[-1].experiment} · launch {len(launches)}")
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: title(pilot).startswith(f"{launches[-2].experiment} · launch {len(launches) - 1}"))
        await until(pilot, lambda: f"{launches[-2].experiment} line 59" in pane(pilot).render_line(20).text)
        await pilot.press("right_square_bracket", "right_square_bracket")
        await until(pilot, lambda: f"launch {len(launches)}" in title(pilot))


async def test_the_title_says_why_the_launch_failed(tmp_path: Path) -> None:
    session = session_with_logs(tmp_path)
    failed = next(launch for launch in reversed(session.state.launches.values()) if launch.failure)
    async with log_screen(session, (80, 24)) as pilot:
        while failed.experiment not in title(pilot):
            await pilot.press("left_square_bracket")
        assert "failed" in title(pilot)
        assert failed.failure is not None
        assert failed.failure.reason[:10] in title(pilot)


async def test_the_status_line_says_what_is_searched_and_where(tmp_path: Path) -> None:
    async with log_screen(session_with_logs(tmp_path)) as pilot:
        await pilot.press("slash", *"line 5", "enter")
        await until(pilot, lambda: "/line 5 11 of 11" in status(pilot))
        await pilot.press("3", "w")
        await until(pilot, lambda: "rank 3" in status(pilot) and "wrapped" in status(pilot))
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "all ranks" in status(pilot) and "/line" not in status(pilot))
        assert isinstance(pilot.app.screen, LogScreen)


async def test_it_fits_each_size(tmp_path: Path) -> None:
    async with log_screen(session_with_logs(tmp_path)) as pilot:
        for size in ((80, 24), (120, 40), (200, 60), (40, 10)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: pane(pilot).room.height == size[1] - 3)  # type: ignore[misc]
            await until(pilot, lambda: status(pilot).endswith("follow"))


async def test_a_replay_that_goes_back_before_the_launch_leaves_its_log(tmp_path: Path) -> None:
    session = session_with_logs(tmp_path)
    async with log_screen(session) as pilot:
        session.state = story("start", tmp_path).state
        session.version += 1
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


def test_the_line_of_a_failure_is_that_of_its_first_quote_from_the_log() -> None:
    config = next(iter(story("failed").state.launches.values())).config
    quotes = (Quote(path="sglang:srt/x.py", line=3, text="code"), Quote(path="server.log", line=18, text="no"))
    failure = Failure(phase=Phase.LOAD_WEIGHTS, reason="no", category="unknown", evidence=quotes)
    launch = Launch(
        id="1", experiment="a", purpose="measure", config=config, requested_at=1.0, stage=LaunchStage.FAILED
    )
    assert failure_line(launch) is None
    failed = Launch(id="1", experiment="a", purpose="measure", config=config, requested_at=1.0, failure=failure)
    assert failure_line(failed) == 18
