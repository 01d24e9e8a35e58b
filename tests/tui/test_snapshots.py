"""Pictures of the run screen: each moment of a session, at each size, in both themes.

`pytest tests/tui/test_snapshots.py --snapshot-update` draws them anew; look at every one that changed.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from agent.core.model import Finding
from tests.core.conftest import playbook
from tests.tui.kit import Session, story, until
from tui.app import TunebotApp
from tui.screens.run import RunScreen
from tui.widgets.log_pane import LogPane

LOG = """\
[2026-11-30 01:27:15 TP0] Load weight begin. avail mem=94.30 GB
[2026-11-30 01:27:16 TP0] Loading safetensors checkpoint shards:  36% Completed | 23/64
"""


class Picture(SingleFileSnapshotExtension):
    """An SVG file a picture. What differs from one run to the next is taken out."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT


def _start(folder: Path) -> Session:
    return story("start", folder)


def _long_names(folder: Path) -> Session:
    name = "torch-symmetric-memory-all-reduce-with-nvls-multicast-and-a-very-long-id"
    book = playbook(
        {"id": "the-baseline-as-it-was-found-on-the-machine-in-the-first-place"},
        {"id": name, "preflight": [{"env": {"name": "X", "not_in": ["1"]}}], "env": {"X": "1"}},
        {"id": "asks", "research": [{"ask": "どのバックエンド fits SM120 on PCIe without NVLink? " * 3}]},
        name="a-playbook-whose-name-goes-on-and-on-and-says-everything-about-the-machine-[/bold]",
    )
    reason = Finding(
        summary="[red]markup[/red] and a reason that is longer than any board is wide " * 3, outcome="fails"
    )
    return Session(book, folder).begin().loading().finish_tasks(**{name.replace("-", "_"): reason})


def _none(folder: Path) -> Session:
    session = story("start", folder)
    session.state = replace(session.state, experiments={})
    return session


def _many(folder: Path) -> Session:
    book = playbook({"id": "base"}, *({"id": f"try-{n:03}"} for n in range(200)))
    session = Session(book, folder).begin().measured(100.0, 100.2, 100.1)
    session.measured(104.0, 104.1, 104.2).measured(90.0, 90.1, 90.2)
    return session.loading().fail("CUDA out of memory").stopped().loading(fraction=0.1, remaining_s=600.0)


MOMENTS: dict[str, Callable[[Path], Session]] = {
    "start": _start,
    "loading": lambda folder: story("begun", folder).loading(),
    "measuring": lambda folder: story("measuring", folder),
    "failed": lambda folder: story("failed", folder),
    "waiting": lambda folder: story("waiting", folder),
    "finished": lambda folder: story("finished", folder),
    "long": _long_names,
    "none": _none,
    "many": _many,
}
PICTURES = [
    ((width, height), theme)
    for theme in ("dark", "light")
    for width, height in ((80, 24), (100, 30), (120, 40), (200, 60))
]


@pytest.mark.parametrize(
    ("size", "theme"), PICTURES, ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value))
)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_picture(
    moment: str, size: tuple[int, int], theme: str, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    picture = await drawn(MOMENTS[moment](tmp_path), size, theme)
    assert picture == snapshot(extension_class=Picture)


async def drawn(session: Session, size: tuple[int, int], theme: str) -> str:
    """The picture of a session, with a log to follow."""
    (session.folder / "launches").mkdir()
    for launch in session.state.launches:
        (session.folder / "launches" / f"{launch}.log").write_text(LOG)
    app = TunebotApp(session)
    app.theme = f"textual-{theme}"
    async with app.run_test(size=size, notifications=False) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.query(LogPane))
        pane = app.screen.query_one(LogPane)
        await until(pilot, lambda: not session.state.launches or not pane.display or pane.status.rows == 2)
        await until(pilot, lambda: app._shown[0] == session.version and app.screen.query("Keys"))
        # The keys at the foot are laid out a moment later: the picture is that of a screen at rest.
        pictures = ["", "-"]
        while pictures[-1] != pictures[-2]:
            await pilot.pause(0.02)
            pictures.append(app.export_screenshot(simplify=True))
        return re.sub(r"terminal-\d+", "terminal", pictures[-1])


async def test_pictures_differ_between_events(tmp_path: Path) -> None:
    pictures = []
    for name in ("loading", "measuring", "failed", "waiting", "finished"):
        folder = tmp_path / name
        folder.mkdir()
        pictures.append(await drawn(MOMENTS[name](folder), (120, 40), "dark"))
    folder = tmp_path / "on"
    folder.mkdir()
    pictures.append(await drawn(MOMENTS["loading"](folder).progress(24, 0.45, 390.0), (120, 40), "dark"))
    assert len(set(pictures)) == len(pictures)
