"""A session as a person has it: in a terminal of tmux, with keys, another size half-way, and a server that dies."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from agent.core import events as ev
from agent.journal.journal import read_journal
from agent.replay import Recording
from agent.sim.ledger import alive_pids, launches
from tests.session.kit import small_playbook

DEADLINE_S = 60.0

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None and not os.environ.get("CI"), reason="needs tmux, which is not installed"
)


class Tmux:
    """A tmux server of its own with one window."""

    def __init__(self, name: str, status: Path) -> None:
        """`status` is the file that gets the program's exit status: tmux itself does not always learn of it."""
        self.name, self.status = name, status

    def do(self, *words: str) -> str:
        """One command of tmux; what it prints."""
        command = ["tmux", "-L", self.name, "-f", os.devnull, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout

    def screen(self) -> str:
        """What a person sees."""
        return self.do("capture-pane", "-p")

    def until(self, *texts: str, without: str = "") -> str:
        """Wait until the screen has all these texts; what it shows then."""

        def seen() -> str:
            shown = self.screen()
            return shown if all(text in shown for text in texts) and not (without and without in shown) else ""

        return wait(seen, lambda: f"{texts} is not on the screen:\n{self.screen()}")

    def press(self, *keys: str) -> None:
        """Keys by the names that tmux gives them."""
        self.do("send-keys", *keys)

    def type(self, text: str) -> None:
        """Text, letter by letter."""
        self.do("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Another size of the window."""
        self.do("resize-window", "-x", str(width), "-y", str(height))

    def exit_status(self) -> int:
        """Wait for the program's end; how it ended."""

        def ended() -> str:
            return self.status.read_text().strip() if self.status.exists() else ""

        return int(wait(ended, lambda: f"it does not end:\n{self.screen()}"))


def wait(holds: Callable[[], str], problem: Callable[[], str]) -> str:
    """Wait until something is said, and give that."""
    deadline = time.monotonic() + DEADLINE_S
    while not (said := holds()):
        assert time.monotonic() < deadline, problem()
        time.sleep(0.05)
    return said


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """The session is on the screen, in 120 x 40."""
    book = small_playbook(
        {"id": "base"},
        {"id": "idea", "args": {"ep-size": 2}, "why": "two ranks, two halves"},
        {"id": "third"},
        {"id": "fourth"},
    )
    # Long enough for a person to look, resize and press keys in the middle of a measurement.
    book["workloads"][0] |= {"requests": 8, "rounds": 8}
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(book))
    made = Tmux(f"tunebot-test-{os.getpid()}", tmp_path / "status")
    state = f"XDG_STATE_HOME={tmp_path / 'state'}"
    program = [sys.executable, "-m", "agent.cli", "run", str(file), "--target", "simulated:small"]
    # What pytest says of its own width would count for more than the window.
    noted = ["sh", "-c", 'status=$1; shift; "$@"; echo $? > "$status"', "sh", str(made.status)]
    command = [
        *noted,
        "env",
        "-u",
        "COLUMNS",
        "-u",
        "LINES",
        "TERM=xterm-256color",
        "LANG=C.UTF-8",
        state,
        *program,
        "--logs",
        str(tmp_path / "logs"),
    ]
    made.do(
        "-u", "new-session", "-d", "-x", "120", "-y", "40", "-c", str(Path.cwd()), *command,
        ";", "set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "window-size", "manual",
    )  # fmt: skip
    try:
        yield made
    finally:
        made.do("kill-server")


def folder_of(tmp_path: Path) -> Path:
    (folder,) = (path for path in (tmp_path / "logs").iterdir() if path.is_dir())
    return folder


def pid_of(folder: Path, experiment: str) -> int:
    """The process of an experiment's launch, as the journal has it and the simulated host knows it."""
    events = read_journal(folder)
    launch = next(e.launch for e in events if isinstance(e, ev.LaunchRequested) and e.experiment == experiment)
    pid = next(e.pid for e in events if isinstance(e, ev.LaunchStarted) and e.launch == launch)
    assert pid in [record["pid"] for record in launches(folder / "host" / ".sim" / "ledger.jsonl")]
    assert pid is not None
    return pid


def test_a_session_of_a_person(tmux: Tmux, tmp_path: Path) -> None:
    shown = tmux.until("Board", "NOW", "base", "measuring")
    assert max(map(len, shown.splitlines())) <= 120

    tmux.resize(80, 24)
    shown = tmux.until("╭─ Board " + "─" * 70 + "╮\n")
    assert len(shown.splitlines()) <= 24
    tmux.resize(120, 40)
    tmux.until("╮╭─ Server: ")

    tmux.until("idea", "measuring", "RESULTS")
    folder = folder_of(tmp_path)
    os.kill(pid_of(folder, "idea"), signal.SIGKILL)
    shown = tmux.until("DEAD ENDS", "idea", "failed")
    (line,) = (row for row in shown.splitlines() if "✖ idea" in row)
    reason = line.partition("failed")[2].strip(" │▏").split("│")[0].strip()
    assert reason, line

    tmux.press(*["j"] * 6)
    tmux.until("❯✖ idea")
    tmux.press("Enter")
    shown = tmux.until("two ranks, two halves", "Dead end", "idea")
    tmux.press("Escape")
    tmux.until("Board")
    tmux.press("l")
    tmux.until("all ranks")
    tmux.press("Escape")
    tmux.until("Board")

    tmux.press("k")
    tmux.until("❯★ base")
    tmux.press("n")
    tmux.until("New experiment, based on base")
    tmux.type("max-running-requests=7")
    tmux.until("max-running-requests", "7")
    tmux.press("Enter")
    tmux.until("○ max-running-requ", without="New experiment")

    tmux.press("C-q")
    tmux.until("Leave the session", "k keep")
    tmux.press("s")
    assert tmux.exit_status() == 130
    assert "session interrupted" in tmux.do("capture-pane", "-p", "-S", "-200")

    events = read_journal(folder)
    assert isinstance(events[-1], ev.SessionEnded)
    recording = Recording(events)
    state = recording.state_at(recording.last)
    assert state.ending == "interrupted"
    assert any(isinstance(event, ev.ExperimentAdded) for event in events)
    failed = state.experiments["idea"]
    assert failed.verdict is not None and failed.verdict.word == "failed"
    assert reason.rstrip("…") in failed.reason
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []
