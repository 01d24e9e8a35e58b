"""Texts that try to act on a terminal, states that are full of them, and an app that draws these: run as a program.

`python -m tests.tui.hostile WAY HARM FOLDER`: WAY is `session`, `replay` or `start`; HARM is `1`, or `0` for the same
with harmless words. Each text holds a tag of its own, so that one can count what came to the screen.
"""

import json
import random
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.app import App
from textual.events import Paste
from textual.pilot import Pilot

from agent.core import events as ev
from agent.core.model import Finding, Gpu, Host, Quote, Task
from agent.core.plan import config_of
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.core.views.entries import PlaybookEntry, SessionEntry
from agent.playbook.model import GrepEntry
from agent.replay import Recording
from tests.core.conftest import playbook
from tests.tui.stage import Recorder
from tests.tui.states import ended, solid
from tui.app import TunebotApp
from tui.replay_source import ReplaySource
from tui.screens.replay import ReplayScreen
from tui.start_app import StartApp

EXPERIMENTS, QUOTES, BATCHES = 60, 90, 2

MARKUP = (
    "[/nope]", "[/]", "[@click=app.quit]x[/]", "[@click=app.quit()]", "[link=https://evil.test]y[/link]", "[b", "[[",
    "\\[", "[on red]", "[$x]", "$text", "{x}", "[bold red reverse]", "[/b]", "]]",
)  # fmt: skip
SEQUENCES = (
    "\x1b[2J", "\x1b[1;1H", "\x1b[31;5m", "\x1b[?1049l", "\x1b[?2004h", "\x1b[6n", "\x1b[c", "\x1b[>q", "\x1b[21t",
    "\x1b[8;1;1t", "\x1b[3J", "\x1b[r", "\x1b[4h", "\x1b[>1u", "\x1b[?25$p", "\x1bc", "\x1b(0", "\x1b#8", "\x1b7",
    "\x1b]52;c;aGk=\x07", "\x1b]0;owned\x07", "\x1b]2;owned\x1b\\", "\x1b]8;;http://evil\x1b\\", "\x1b]1337;File=\x07",
    "\x1b]777;notify;a;b\x07", "\x1b]4;1;?\x07", "\x1bPq#0\x1b\\", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\",
    "\x1b_Gf=24\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\x9b2J", "\x9b31m", "\x9d0;owned\x9c", "\x9d52;c;aGk=\x07",
    "\x90q\x9c", "\x9fG\x9c",
)  # fmt: skip
CHARACTERS = (
    "\x00", "\x05", "\x07", "\x08\x08\x08", "\x0b", "\x0c", "\x0e", "\x0f", "\r", "\t", "\x1a", "\x7f", "\x84", "\x85",
    "\x8d", "\u202e", "\u2066", "\u200b", "\u200f", "\ufeff", "\u2028", "\u2029", "\xad", "\U000e0041", "\ud800",
    "\udc9b", "\ue000", "漢字", "🚀", "👩‍👩‍👧", "e" + "\u0301" * 9, "\ufffd", "\u0600", "\n",
)  # fmt: skip
UNFINISHED = (
    "\x1b",
    "\x1b[",
    "\x1b]",
    "\x1b]52;c;",
    "\x1bP",
    "\x9b",
    "\x9d",
    "\x1b\x00[2J",
    "\x1b\x1b[2J",
    "\x1b[3\x1b[2J",
)


class Texts:
    """Gives texts, each another one; the same seed gives the same."""

    def __init__(self, harm: bool, seed: int = 7) -> None:
        self.harm = harm
        self.count = 0
        self._random = random.Random(seed)

    def __call__(self) -> str:
        """The next text: something short, a tag, and whatever else there is."""
        tag = f"q{self.count:06}z"
        self.count += 1
        if not self.harm:
            return f"words {tag} and more"
        pick = self._random.choice
        head = pick((pick(MARKUP), pick(SEQUENCES), pick(CHARACTERS), ""))
        rest = "".join(pick(pick((MARKUP, SEQUENCES, CHARACTERS))) for _ in range(self._random.randrange(1, 5)))
        if self.count % 97 == 0:
            rest += "x[" * 3000
        if self.count == 1500:
            rest += "y" * 1_000_000
        return f"{head}{tag}{rest}{pick((*UNFINISHED, '', '', ''))}"


def story(text: Texts) -> list[ev.Event]:
    """A session in which every kind of text is one of these: experiments are ruled out, tasks run and find."""
    specs: list[dict[str, Any]] = [{"id": "base", "env": {"A": solid(text())}}]
    for n in range(EXPERIMENTS):
        args = {"moe-a2a-backend": solid(text())}
        specs.append({"id": f"e{n}", "why": solid(text()), "args": args, "env": {"NAME": solid(text())}})
    specs.append(
        {"id": "build", "why": solid(text()), "prepare": [{"run": ["sh", solid(text())], "creates": solid(text())}]}
    )
    made = playbook(*specs)
    server = made.server.model_copy(update={"source": {solid(text()): solid(text()), "sglang": "~/s"}})
    made = made.model_copy(update={"name": solid(text()), "server": server})
    gpus = tuple(Gpu(index=n, name=text(), sm_major=12, sm_minor=0, memory_mib=97887, driver=text()) for n in range(8))
    start = ev.SessionStarted(
        at=100.0, session="s", playbook=made, host=Host(name=text(), gpus=gpus), approved=(), keep=False, seed=7,
        version="0", attended=True,
    )  # fmt: skip
    config = config_of(initial(start), "e0")
    found: list[ev.Event] = [start, ev.Noted(at=100.5, text=text())]
    for n in range(EXPERIMENTS):
        entry = GrepEntry.model_validate({"grep": {"pattern": solid(text()), "in": [solid(text())]}})
        task = Task(
            id=f"e{n}/1", experiment=f"e{n}", kind="grep", title=text(), entry=entry, config=config, needed=False
        )
        found += [
            ev.TaskRequested(at=101.0 + n, task=task),
            ev.TaskProgressed(at=101.1 + n, task=task.id, action=text()),
        ]
        if n % 20:
            quotes = tuple(Quote(path=text(), line=k, text=text()) for k in range(QUOTES))
            finding = Finding(summary=text(), quotes=quotes, requires={"tp": text()})
            found.append(ev.TaskFinished(at=101.2 + n, task=task.id, status="done", finding=finding))
        if n % 2:
            evidence = tuple(Quote(path=text(), line=k, text=text()) for k in range(3))
            found.append(
                ev.ExperimentRuledOut(at=101.3 + n, experiment=f"e{n}", task=task.id, reason=text(), evidence=evidence)
            )
    return found


def state_of(events: list[ev.Event]) -> State:
    state = initial(events[0])  # type: ignore[arg-type]
    for event in events[1:]:
        state, _ = reduce(state, event)
    return state


class Watched:
    """What is on the screen is looked at for links and actions that came from a text."""

    def __init__(self, app: App[Any]) -> None:
        self.app = app
        self.links: list[str] = []

    def look(self) -> None:
        """Scroll bars have actions of their own, for other buttons than a click."""
        for strip in self.app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                if style is not None and (style.link or "@click" in style.meta):
                    self.links.append(repr(segment))


async def keys(pilot: Pilot[Any], watched: Watched, *names: str) -> None:
    """Press keys, and let what they bring be drawn."""
    for name in names:
        pilot.app.simulate_key(name)
        # Twice: a key may bring a message that brings another screen. Nothing here waits for the machine to be idle.
        await pilot.pause(0)
        await pilot.pause(0)
        watched.look()


async def session(pilot: Pilot[Any], watched: Watched, source: Recorder, text: Texts) -> None:
    """Every screen and dialog of a live session, with other texts again and again."""

    async def show(state: State) -> None:
        source.state, source.version = state, source.version + 1
        pilot.app.refresh_state()  # type: ignore[attr-defined]
        await pilot.pause(0)
        watched.look()

    batches, many = (BATCHES, 13) if text.harm else (1, 1)
    await show(ended(text()))
    await keys(pilot, watched, "b", "b", "y", "y", "enter", "down", "Y", "escape", "a", "escape", "question_mark")
    await keys(pilot, watched, "escape", "ctrl+p", "escape", "l", "slash", "x", "enter", "w", "home", "w")
    await keys(pilot, watched, "end", *["pageup"] * (3 * many), "escape")
    for _ in range(batches):
        await show(state_of(story(text)))
        for dialog in ("n", "g", "a"):
            await keys(pilot, watched, dialog)
            if pilot.app.focused is not None:
                pilot.app.focused.post_message(Paste(text()))
            await keys(pilot, watched, "x", "enter", "escape")
            if len(pilot.app.screen_stack) > 2:
                await keys(pilot, watched, "escape")
        await keys(pilot, watched, *["pagedown"] * 2, *["pageup"] * 4)
        await keys(pilot, watched, "v", *["pagedown"] * 2, "home", *["down"] * (3 * many), "escape")
        await keys(pilot, watched, "c", "b", "m", "o", "down", "enter", "escape", "escape")
        await keys(pilot, watched, "y", "down", "Y", "pagedown", "escape", "escape")
        await keys(pilot, watched, "enter", *["right"] * many, "escape")
    await keys(pilot, watched, "s", "p", "question_mark", "escape", "ctrl+q", "escape")


async def replay(pilot: Pilot[Any], watched: Watched) -> None:
    """From the start to the end and back, by all keys."""
    await keys(pilot, watched, "space", *["right"] * 12, "}", "}", "{", "full_stop", "comma", "plus", "minus", "end")
    await keys(pilot, watched, "f", *["left_square_bracket"] * 12, *["right_square_bracket"] * 12, "escape")
    await keys(
        pilot, watched, "enter", "right", "left", "escape", "v", "down", "down", "escape", "y", "y", "escape", "home"
    )


async def start(pilot: Pilot[Any], watched: Watched) -> None:
    """Every entry, and what is told of it."""
    await keys(pilot, watched, *["down"] * 60, "enter", *["pagedown"] * 4, "enter", "home", "enter")


def entries(text: Texts) -> tuple[list[PlaybookEntry], Iterator[SessionEntry]]:
    playbooks = [
        PlaybookEntry(file=text(), name=text(), target=text(), experiments=n, shipped=False, problems=n % 2)
        for n in range(60)
    ]
    sessions = [
        SessionEntry(
            folder=text(), name=text(), when="2026-11-30 01:27", standing="unreadable" if n % 2 else "completed",
            host=text(), best=text(), value="1 tok/s", change="+1 %", problem=text(), ended=1, experiments=2,
        )
        for n in range(60)
    ]  # fmt: skip
    return playbooks, iter(sessions)


def write_logs(folder: Path, text: Texts, launches: list[str]) -> None:
    """Logs with a line of a megabyte among others."""
    (folder / "launches").mkdir()
    lines = [text().encode("utf-8", "surrogatepass") for _ in range(4000)]
    lines[-9] += b"\xff\xfe\x9b2J" + b"z" * (1_000_000 if text.harm else 1)
    for launch in launches:
        (folder / "launches" / f"{launch}.log").write_bytes(b"\n".join(lines) + b"\n")


def main(way: str, harm: bool, folder: Path) -> None:
    """Draw, and leave in `result.json` what was seen."""
    text = Texts(harm)
    source = Recorder(state=ended(text()), folder=folder)
    events = story(text)
    write_logs(folder, text, list(source.state.launches))
    app: App[Any]
    if way == "session":
        app = TunebotApp(source)  # type: ignore[arg-type]
    elif way == "replay":
        app = TunebotApp(ReplaySource(Recording(events), folder, str), ReplayScreen)
    else:
        app = StartApp(*entries(text))
    app.animation_level = "none"
    watched = Watched(app)
    result: dict[str, Any] = {"error": ""}

    async def drive(pilot: Pilot[Any]) -> None:
        try:
            await pilot.pause()
            if way == "session":
                await session(pilot, watched, source, text)
            else:
                await (replay if way == "replay" else start)(pilot, watched)
            result["at_the_end"] = True
        except Exception:  # noqa: BLE001  (the test reads it)
            result["error"] = traceback.format_exc()
        app.exit()

    app.run(auto_pilot=drive)
    result |= {
        "links": watched.links[:3],
        "fault": repr(getattr(app, "fault", None)),
        "submitted": sorted({type(event).__name__ for event in source.submitted}),
        "made": text.count,
    }
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "1", Path(sys.argv[3]))
