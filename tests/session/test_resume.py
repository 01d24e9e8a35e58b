"""tunebot is killed with SIGKILL and resumed: real processes, judged by the ledger of the simulated host."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.state import State
from agent.headless import replay
from agent.journal.journal import read_journal
from agent.sim.ledger import launches
from tests.session.kit import Session, small_playbook

STEP = {"run": ["~/venv/bin/python3", "-c", "open('made', 'a').write('x')"], "creates": "~/made"}
BOOK = small_playbook(
    {"id": "base", "research": [{"grep": {"pattern": "flashinfer", "in": ["sglang:."]}}]},
    {"id": "idea", "args": {"ep-size": 2}},
    {"id": "bad", "env": {"SIM_FAIL": "oom"}},
    target="simulated:small",
)


def tunebot(tmp_path: Path, order: dict[str, Any]) -> list[str]:
    """Run a tunebot to its end, which is SIGKILL where the order says so. What it printed."""
    file = tmp_path / "order.json"
    file.write_text(json.dumps({"logs": str(tmp_path / "logs"), **order}))
    done = subprocess.run(
        [sys.executable, "-m", "tests.session.victim", str(file)],
        capture_output=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == (-signal.SIGKILL if order.get("die") else 0), done.stderr.decode()
    return done.stdout.decode().splitlines()


def only_session(tmp_path: Path) -> Path:
    (folder,) = (path for path in (tmp_path / "logs").iterdir() if path.is_dir())
    return folder


def session_of(folder: Path, lines: list[str]) -> Session:
    """The session as its journal tells it; nothing that was printed is missing from it."""
    again: list[str] = []
    state: State = replay(read_journal(folder), again.append)
    rest = iter(again)
    assert all(line in rest for line in lines), "every line that was printed is in the journal, in order"
    return Session(state, again, folder)


def check(session: Session) -> None:
    state, events = session.state, read_journal(session.folder)
    assert state.ending == "completed", "\n".join(session.lines)
    assert session.nothing_left()
    session.real_launches()
    real = {launch["launch_id"] for launch in launches(session.ledger)}
    assert real == {launch.id for launch in state.launches.values() if not launch.void}
    measured = Counter((e.launch, e.workload, e.index) for e in events if isinstance(e, ev.RoundMeasured))
    # On a busy machine a round may be spoilt, and repeated.
    measured.subtract((e.launch, e.workload, e.index) for e in events if isinstance(e, ev.RoundSpoilt))
    assert set(measured.values()) == {1}


@pytest.mark.parametrize(
    ("name", "survives"),
    [
        pytest.param("LaunchRequested", 0, marks=pytest.mark.long),
        ("PhaseEntered", 4),
        ("RoundRequested", 1),
        pytest.param("StopRequested", 0, marks=pytest.mark.long),
        pytest.param("ServerFailed", 0, marks=pytest.mark.long),
    ],
)
def test_killed_after(tmp_path: Path, name: str, survives: int) -> None:
    lines = tunebot(tmp_path, {"playbook": BOOK, "die": [name, survives]})
    folder = only_session(tmp_path)
    lines += tunebot(tmp_path, {"session": str(folder)})
    session = session_of(folder, lines)
    check(session)
    assert session.words["base"] == "keep" and session.words["bad"] == "failed"
    assert [len(launch.rounds) for launch in session.state.launches.values() if not launch.void] == [3, 3, 0]
    assert "CUDA out of memory" in session.state.experiments["bad"].reason
    assert len(launches(session.ledger)) == 3
