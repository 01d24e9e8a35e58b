"""`make picture`: docs/*.svg, the screen at moments of the recorded demo session, from the project's own export."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.events import Event, PhaseProgressed, VerdictReached
from agent.journal.journal import read_journal
from agent.replay import Recording
from tui.app import TunebotApp
from tui.replay_source import ReplaySource
from tui.screens.base import StateScreen
from tui.screens.replay import ReplayScreen
from tui.screens.run import RunScreen

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "logs" / "sample"
COLUMNS = 120


@dataclass(frozen=True)
class Picture:
    """What docs/`name`.svg shows: the events of interest, of which the middle one is the moment, and keys pressed."""

    name: str
    screen: type[StateScreen]
    moment: Callable[[Event], bool]
    keys: Sequence[str] = ()
    rows: int = 40


def loads_seventh(event: Event) -> bool:
    """Whether the seventh launch makes progress with its load."""
    return isinstance(event, PhaseProgressed) and event.launch.endswith("-07")


def is_verdict_of(experiment: str) -> Callable[[Event], bool]:
    """Whether an event is the verdict of that experiment."""
    return lambda event: isinstance(event, VerdictReached) and event.experiment == experiment


PICTURES = (
    Picture("screen", RunScreen, loads_seventh),
    Picture("compare", RunScreen, is_verdict_of("torch-symm-mem@cuda13"), ("c",), rows=18),
    Picture("replay", ReplayScreen, is_verdict_of("torch-symm-mem@cuda13")),
)


def source_at(events: Sequence[Event], moment: Callable[[Event], bool]) -> ReplaySource:
    """The session, standing still."""
    found = [n for n, event in enumerate(events) if moment(event)]
    source = ReplaySource(Recording(events), SAMPLE, str)
    source.toggle()
    source.step(found[len(found) // 2] - source.index)
    return source


def cut_log(source: ReplaySource, folder: Path) -> None:
    """Let the source look at a copy of the session in which the log of a load ends where the load is."""
    source.folder = Path(shutil.copytree(SAMPLE, folder / SAMPLE.name))
    launch = source.state.current
    if launch and launch.total:
        log = source.folder / "launches" / f"{launch.id}.log"
        read, mark, _ = log.read_bytes().partition(f"{launch.done}/{launch.total}".encode())
        log.write_bytes(read + mark)


async def draw(picture: Picture, events: Sequence[Event]) -> str:
    """The picture as SVG."""
    source = source_at(events, picture.moment)
    with tempfile.TemporaryDirectory() as folder:
        cut_log(source, Path(folder))
        app = TunebotApp(source, picture.screen)
        async with app.run_test(size=(COLUMNS, picture.rows)) as pilot:
            await pilot.press(*picture.keys)
            await pilot.pause(1.0)
            return app.export_screenshot(title="tunebot")


async def main() -> None:
    """Write all of them."""
    events = read_journal(SAMPLE)
    for picture in PICTURES:
        (ROOT / "docs" / f"{picture.name}.svg").write_text(await draw(picture, events), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
