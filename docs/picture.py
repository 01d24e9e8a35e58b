"""`make picture`: the screen at a moment of the recorded demo session, from the project's own export."""

import asyncio
from pathlib import Path

from agent.core.events import PhaseProgressed
from agent.journal.journal import read_journal
from agent.replay import Recording
from tui.app import TunebotApp
from tui.replay_source import ReplaySource
from tui.screens.replay import ReplayScreen

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "logs" / "sample"


def moment() -> ReplaySource:
    """The sample session while its seventh launch loads, standing still."""
    events = read_journal(SAMPLE)
    loads = [n for n, e in enumerate(events) if isinstance(e, PhaseProgressed) and e.launch.endswith("-07")]
    source = ReplaySource(Recording(events), SAMPLE, str)
    source.toggle()
    source.step(loads[len(loads) // 2] - source.index)
    return source


async def main() -> None:
    """Write docs/screen.svg."""
    app = TunebotApp(moment(), ReplayScreen)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(1.0)
        (ROOT / "docs" / "screen.svg").write_text(app.export_screenshot(title="tunebot replay logs/sample"))


if __name__ == "__main__":
    asyncio.run(main())
