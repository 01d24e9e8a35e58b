"""A replay on the screen: the picture is that of the live session, and the keys move it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from agent.core import events as ev
from agent.core.state import Launch, State
from agent.core.views.flag_help import FlagFacts
from agent.core.views.panels import GpuUse
from agent.logtimes import Shown
from agent.replay import READING_S, Recording, Speeds
from agent.review.marks import DECISIONS
from tests.test_replay import EVENTS, VERDICTS
from tui.app import TunebotApp
from tui.replay_source import SPEEDS, USUAL, ReplaySource
from tui.screens.replay import ReplayScreen
from tui.screens.run import RunScreen
from tui.source import no_flag_facts
from tui.widgets.board import Board
from tui.widgets.scrub import ScrubBar, scrub_view

WHOLE = Recording(EVENTS)
FIRST = WHOLE.clock.index_at(0.0)
"""Where a replay begins: after all events of the first moment."""


@dataclass
class Clock:
    """Goes on only when it is told to."""

    time: float = 0.0

    def __call__(self) -> float:
        return self.time


@dataclass
class Shot:
    """A source that stands still, as a live one does between two events."""

    state: State
    folder: Path
    version: int = 1
    read_only: str = ""
    elsewhere: bool = False
    trouble: str = ""
    gpus: tuple[GpuUse, ...] = ()
    redact: Callable[[str], str] = str
    known_flags: Sequence[Sequence[str]] = ()
    flag_facts: Callable[[str], FlagFacts | None] = no_flag_facts
    submitted: list[ev.Event] = field(default_factory=list)

    def now(self) -> float:
        return self.state.now

    def log_shown(self, launch: Launch, now: float) -> Shown:
        return Shown()

    def submit(self, event: ev.Event) -> None:
        self.submitted.append(event)


def replayed(folder: Path, clock: Clock | None = None) -> ReplaySource:
    return ReplaySource(WHOLE, folder, str, clock or Clock())


def standing(folder: Path, index: int) -> ReplaySource:
    """A paused replay at a position."""
    source = replayed(folder)
    source.step(index - FIRST)
    assert source.index == index
    return source


def rows(app: TunebotApp) -> list[list[tuple[str, str]]]:
    """What is on the screen: each row as pieces of text with their colours."""

    def drawn(segment: Segment) -> tuple[str, str]:
        style = segment.style
        return segment.text, f"{style.color} {style.bgcolor} {style.bold}" if style else ""

    return [[drawn(segment) for segment in strip] for strip in app.screen._compositor.render_strips()]


def texts(app: TunebotApp) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows(app)]


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_live_and_replay_are_one_picture(tmp_path: Path, share: float, size: tuple[int, int]) -> None:
    width, height = size
    index = round(share * WHOLE.last)
    live = TunebotApp(Shot(WHOLE.state_at(index), tmp_path), RunScreen)
    async with live.run_test(size=(width, height - 2)) as pilot:
        await pilot.pause()
        expected = rows(live)[:-1]
    source = standing(tmp_path, index)
    replay = TunebotApp(source, ReplayScreen)
    async with replay.run_test(size=size) as pilot:
        await pilot.pause()
        # The scrub bar has two rows; below it are the keys, which are others in a replay.
        assert rows(replay)[:-3] == expected


async def at(pilot: Pilot[None], source: ReplaySource, *keys: str) -> int:
    await pilot.press(*keys)
    await pilot.pause()
    return source.index


async def test_the_keys_move_the_position(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    verdicts = [mark.index for mark in WHOLE.trail(VERDICTS).marks]
    decisions = [mark.index for mark in WHOLE.trail(DECISIONS).marks]
    phases = [mark.index for mark in WHOLE.marks if mark.kind in ("launch", "phase", "ready")]
    async with TunebotApp(source, ReplayScreen).run_test() as pilot:
        await pilot.pause()
        assert await at(pilot, source, "space") == FIRST and not source.playing
        assert await at(pilot, source, "right", "right", "right") == FIRST + 3
        assert await at(pilot, source, "left") == FIRST + 2
        assert await at(pilot, source, "home", "}") == verdicts[0]
        assert await at(pilot, source, "}") == verdicts[1]
        assert await at(pilot, source, "{") == verdicts[0]
        assert await at(pilot, source, "home", "]", "]", "]") == [n for n in decisions if n > FIRST][2]
        assert await at(pilot, source, "[") == [n for n in decisions if n > FIRST][1]
        ahead = [index for index in phases if index > FIRST]
        assert await at(pilot, source, "home", "full_stop", "shift+right") == ahead[1]
        assert await at(pilot, source, "comma") == ahead[0]
        assert await at(pilot, source, *["shift+left"] * 9) == phases[0], "there is none before the first"
        assert await at(pilot, source, "end") == WHOLE.last
        assert await at(pilot, source, "right") == WHOLE.last
        assert await at(pilot, source, "space") == FIRST and source.playing, "playing on from the end begins again"


async def test_the_keys_change_the_speed_that_is_in_effect(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    decision = next(mark.index for mark in WHOLE.trail(DECISIONS).marks if mark.index > FIRST + 5)
    async with TunebotApp(source, ReplayScreen).run_test(size=(120, 40)) as pilot:
        source.step(decision - source.index)
        await pilot.press("plus")
        await pilot.pause()
        assert source.reading and source.speeds == Speeds(loads=USUAL.loads, decisions=2)
        assert "loads 16x ▸decisions 2x" in bar_of(pilot)
        waits = next(index for index in range(WHOLE.last) if not WHOLE.clock.is_reading(WHOLE.clock.offsets[index]))
        source.step(waits - source.index)
        assert not source.reading
        await pilot.press("minus", "minus")
        await pilot.pause()
        assert source.speeds == Speeds(loads=4, decisions=2)
        assert "▸loads 4x  decisions 2x" in bar_of(pilot)
        await pilot.press(*["plus"] * 20)
        assert source.speeds.loads == SPEEDS[-1]
        await pilot.press(*["minus"] * 20)
        assert source.speeds.loads == SPEEDS[0]


def bar_of(pilot: Pilot[None]) -> str:
    return texts(pilot.app)[-3]  # type: ignore[arg-type]


async def test_one_experiment_is_followed(tmp_path: Path) -> None:
    source = standing(tmp_path, WHOLE.last)
    trail = WHOLE.trail(None, "slow")
    async with TunebotApp(source, ReplayScreen).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        board = pilot.app.screen.query_one(Board)
        while board.cursor != "slow":
            await pilot.press("down")
        assert f"decision {len(WHOLE.trail(DECISIONS).marks)} of" in bar_of(pilot)
        await pilot.press("f")
        await pilot.pause()
        assert source.following == "slow" and f"follows slow {len(trail.marks)}/{len(trail.marks)}" in bar_of(pilot)
        for mark in reversed(trail.marks):
            assert await at(pilot, source, "[") == mark.index
            assert f"{trail.marks.index(mark) + 1}/{len(trail.marks)}: {mark.word}" in bar_of(pilot)
        assert await at(pilot, source, "}") == trail.marks[-1].index, "its own verdict is the next one"
        assert await at(pilot, source, "}") == trail.marks[-1].index, "and there is no other"
        await pilot.press("escape")
        await pilot.pause()
        assert not source.following and "decision" in bar_of(pilot)
        await pilot.press("f", "f")
        await pilot.pause()
        assert not source.following, "the same key lets go"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_opens_at_a_time_paused_with_the_cursor_on_who_is_followed(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    clock = Clock()
    source = replayed(tmp_path, clock)
    index = next(mark.index for mark in WHOLE.trail(VERDICTS, "slow").marks)
    time = WHOLE.times[index] + 0.25
    source.follow("slow")
    source.open_at(time)
    async with TunebotApp(source, ReplayScreen).run_test(size=size) as pilot:
        await pilot.pause()
        clock.time += 60.0
        assert source.now() == pytest.approx(time) and source.index == WHOLE.index_at(time)
        assert pilot.app.screen.query_one(Board).cursor == "slow"
        assert "‖ paused" in bar_of(pilot) and "slow" in bar_of(pilot)


async def test_what_could_not_be_read_stands_above(tmp_path: Path) -> None:
    source = ReplaySource(WHOLE, tmp_path, str, Clock(), trouble="journal.jsonl:31: the record is damaged")
    async with TunebotApp(source, ReplayScreen).run_test() as pilot:
        await pilot.pause()
        assert "journal.jsonl:31" in texts(pilot.app)[0]  # type: ignore[arg-type]


async def test_a_click_on_the_track_goes_there(tmp_path: Path) -> None:
    source = standing(tmp_path, FIRST)
    async with TunebotApp(source, ReplayScreen).run_test(size=(101, 30)) as pilot:
        await pilot.pause()
        width = pilot.app.screen.query_one(ScrubBar).content_size.width
        await pilot.click(ScrubBar, offset=(1 + width // 2, 1))
        assert source.fraction == pytest.approx((width // 2) / (width - 1))
        assert source.index == WHOLE.clock.index_at(source.fraction * WHOLE.clock.whole_s)
        before = source.index
        await pilot.click(ScrubBar, offset=(5, 0))
        assert source.index == before, "the line above the track is no track"


async def test_the_cursor_of_the_board_stays_while_it_plays(tmp_path: Path) -> None:
    clock = Clock()
    source = replayed(tmp_path, clock)
    async with TunebotApp(source, ReplayScreen).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down", "down")
        chosen = [text for text in texts(pilot.app) if "❯" in text]  # type: ignore[arg-type]
        clock.time += WHOLE.clock.whole_s
        source.now()
        pilot.app.refresh_state()  # type: ignore[attr-defined]
        await pilot.pause()
        now = [text for text in texts(pilot.app) if "❯" in text]  # type: ignore[arg-type]
        assert chosen and now and chosen[0].split()[1] == now[0].split()[1]
        assert not source.playing, "it stops at the end"


async def test_nothing_can_be_changed(tmp_path: Path) -> None:
    source = standing(tmp_path, 40)
    async with TunebotApp(source, ReplayScreen).run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("s", "r", "p", "e", "a", "g", "n")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ReplayScreen), "no dialog opens"
        keys = texts(pilot.app)[-1]  # type: ignore[arg-type]
        assert "skip" not in keys and "verdict" in keys
        source.submit(ev.PauseSet(at=0.0, on=True))
        assert source.state == WHOLE.state_at(40)


def test_it_plays_by_its_clock(tmp_path: Path) -> None:
    clock = Clock()
    source = replayed(tmp_path, clock)

    def shown(offset: float) -> float:
        return WHOLE.clock.time_at(WHOLE.clock.index_at(offset), offset)

    clock.time = 1.0
    offset = WHOLE.clock.played_on(0.0, 1.0, USUAL)
    assert source.now() == pytest.approx(shown(offset)) and offset > 0
    source.toggle()
    clock.time = 50.0
    stood = source.now()
    clock.time = 60.0
    assert source.now() == stood and not source.playing
    source.toggle()
    source.pace(2)
    clock.time = 61.0
    assert source.now() == pytest.approx(shown(WHOLE.clock.played_on(offset, 1.0, source.speeds)))
    assert source.speeds != USUAL


def test_a_decision_stays_for_a_person_to_read(tmp_path: Path) -> None:
    clock = Clock()
    source = replayed(tmp_path, clock)
    mark = WHOLE.trail(VERDICTS).marks[0]
    source.seek(0.0)
    source.jump(WHOLE.trail(VERDICTS), forward=True)
    clock.time += READING_S - 0.1
    source.now()
    assert source.index == mark.index and source.playing
    clock.time += 0.2
    source.now()
    assert source.index > mark.index


def test_the_version_grows_with_every_change(tmp_path: Path) -> None:
    source = standing(tmp_path, 2)
    seen = source.version
    source.step(1)
    assert (source.version, source.index) == (seen + 1, 3)
    source.step(-9)
    assert (source.version, source.index) == (seen + 2, 0)
    source.step(-1)
    assert source.version == seen + 2


def test_events_of_one_moment_can_be_stepped_through(tmp_path: Path) -> None:
    same = next(i for i in range(1, WHOLE.last) if WHOLE.clock.offsets[i] == WHOLE.clock.offsets[i + 1])
    source = standing(tmp_path, same)
    source.now()
    assert source.index == same
    source.toggle()
    source.now()
    assert source.index > same, "playing on leaves the moment behind"


@pytest.mark.parametrize("width", [20, 78, 118, 198])
def test_the_bar_fits_its_width(tmp_path: Path, width: int) -> None:
    source = replayed(tmp_path)
    bar = ScrubBar(source)
    for index in range(0, WHOLE.last, 20):
        source.seek(index / WHOLE.last)
        lines = bar.draw(scrub_view(source, width)).split("\n")
        assert len(lines) == 2 and lines[1].cell_length == width
        if width >= 78:
            assert lines[0].cell_length == width and "replay" in lines[0].plain
            assert "loads 16x" in lines[0].plain and "decisions 1x" in lines[0].plain
