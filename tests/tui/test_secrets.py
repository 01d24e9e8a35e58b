"""The same twelve secrets through a real session and the real app: none is drawn on any screen."""

import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from agent.core.events import Event
from agent.core.needs import needs
from agent.core.state import State
from agent.core.views.tasks import task_lines
from agent.redact import redactor
from agent.run import Options, run_session
from tests.research.fake_llm import answers, claim, serve, uses
from tests.research.test_research_secrets import LINES, SENTINELS, TEXT, leaks
from tests.session.kit import parsed, small_playbook
from tests.tui.kit import until
from tests.tui.stage import Recorder
from tui.app import TunebotApp
from tui.screens.details import DetailsScreen
from tui.screens.log import LogScreen
from tui.screens.needs import NeedsScreen
from tui.screens.research import ResearchScreen
from tui.screens.run import RunScreen

SERVER = """
import os, sys, time
for byte in sys.argv[1].encode():
    os.write(2, bytes([byte]))
os.write(2, b"\\n")
raise RuntimeError(sys.argv[1].split("\\n")[1])
"""


def leaky_playbook(tree: Path) -> dict[str, Any]:
    """Every place of a playbook that takes a free text has the secrets in it."""
    (tree / "server_args.py").write_text(TEXT + "\n")
    research = [
        {"grep": {"pattern": "needle", "in": ["sglang:server_args.py"]}, "needed": True},
        {"read": {"in": "sglang:server_args.py", "around": "BEGIN", "lines": 9}, "needed": True},
        {"grep": {"pattern": LINES[2], "in": ["sglang:server_args.py"]}, "needed": True},
        {"probe": {"run": [sys.executable, "-c", f"print({TEXT!r})"]}, "needed": True},
        {"ask": TEXT, "needed": True},
    ]
    leaky = {
        "id": "leaky",
        "why": TEXT,
        "env": {"MY_TOKEN": SENTINELS["known variable"], "NOTE": TEXT},
        "args": {"api-key": SENTINELS["known flag"], "chat-template": TEXT},
        "preflight": [{"env": {"name": "NOTE", "not_in": ["x"], "why": TEXT}}],
        "research": research,
    }
    later = {
        "id": "later",
        "prepare": [{"run": ["true", TEXT], "creates": str(tree / "nothing")}],
        "preflight": [{"env": {"name": "NOTE", "not_in": [TEXT], "why": TEXT}}],
        "env": {"NOTE": TEXT},
    }
    book = small_playbook(leaky, later, target="local")
    book["server"] |= {"command": [sys.executable, "-c", SERVER, TEXT], "source": {"sglang": str(tree)}, "args": {}}
    return book


@pytest.fixture
async def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Recorder, Recorder]:
    """A session as the engine left it, and as it was when it last needed a person; redacted as a live screen is."""
    monkeypatch.setenv("MY_TOKEN", SENTINELS["known variable"])
    (tmp_path / "sglang").mkdir()
    playbook = parsed(leaky_playbook(tmp_path / "sglang"))
    end = answers(
        TEXT,
        claims=[claim(TEXT, 2, TEXT, TEXT), claim("sglang:server_args.py", 2, LINES[1], LINES[1])],
        risks=[TEXT],
        experiment={"id": "x", "based_on": "leaky", "why": TEXT, "args": [{"name": "schedule-policy", "value": "lpm"}]},
    )
    needing: list[State] = []

    def listen(before: State, event: Event, after: State) -> None:
        if needs(after):
            needing.append(after)

    async with serve(uses(("read", {"path": "sglang:server_args.py"})), end) as llm:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", llm.url)
        options = Options(target=None, approved=(), keep=False, logs=tmp_path / "logs")
        state, folder = await run_session(playbook, "playbook", options, listen)
    ended, waiting = (
        Recorder(state, time=state.now, folder=folder.path, redact=redactor(playbook)) for state in (state, needing[-1])
    )
    return ended, waiting


class Eyes:
    """What an app shows, all of it since the beginning."""

    def __init__(self, app: TunebotApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.seen = ""

    @property
    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def look(self, screen: type[object], *words: str) -> None:
        """Wait until a screen with these words is there; nothing on it may be a secret, wrapped or not."""
        await until(self.pilot, lambda: isinstance(self.app.screen, screen) and all(w in self.text for w in words))
        assert not leaks(self.text) and not leaks("".join(self.text.split())), self.text
        self.seen += self.text


async def test_no_secret_is_drawn(states: tuple[Recorder, Recorder]) -> None:
    """The words that are waited for tell that each route was open: what is no secret did arrive."""
    ended, waiting = states
    app = TunebotApp(ended)
    async with app.run_test(size=(200, 250)) as pilot:
        eyes = Eyes(app, pilot)
        await eyes.look(RunScreen, "leaky", "RuntimeError: needle", "Authorization: Bearer ‹redacted›")
        await pilot.press("l")
        await eyes.look(LogScreen, "RuntimeError: needle", "Authorization: Bearer ‹redacted›", "END PRIVATE KEY")
        await pilot.press("escape", "enter")
        await eyes.look(DetailsScreen, "later", "true 'variable ‹redacted:MY_TOKEN:")
        await pilot.press("right")
        await eyes.look(DetailsScreen, "proposed", "needle")
        await pilot.press("right")
        await eyes.look(DetailsScreen, "NOTE ", "quote found", "RuntimeError: needle", "Launch command")
        await pilot.press("escape", "v")
        await eyes.look(ResearchScreen)
        for line in task_lines(ended.state, ended.time):
            await eyes.look(ResearchScreen)
            assert app.screen.query_one("#tasks").chosen == line.id
            await pilot.press("down")
            await pilot.pause()
        assert "-----END PRIVATE KEY-----" in eyes.seen and "what it claims, with medium confidence" in eyes.seen
    app = TunebotApp(waiting)
    async with app.run_test(size=(200, 250)) as pilot:
        eyes = Eyes(app, pilot)
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("y")
        await eyes.look(NeedsScreen, "a language model proposes x", "needle")
