"""Exit code 0 says that the session runs and can be attached to; anything else that nothing runs."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.journal.journal import is_being_written, read_journal
from agent.sim.ledger import alive_pids
from tests.control.kit import DEADLINE_S, Home, long_playbook
from tests.session.kit import small_playbook

SMALL = ("--target", "simulated:small")


@pytest.fixture
def home() -> Iterator[Home]:
    # pytest's own folders are too deep for a socket.
    with tempfile.TemporaryDirectory(prefix="tb") as folder:
        made = Home(Path(folder))
        yield made
        made.end_all()


def wait(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "the condition does not come true"
        time.sleep(0.02)


def ended(folder: Path) -> bool:
    return isinstance(read_journal(folder)[-1], ev.SessionEnded)


def nothing_runs(home: Home) -> None:
    wait(lambda: not home.processes())
    assert not home.run_folder.exists() or list(home.run_folder.iterdir()) == []


def test_it_runs_without_a_terminal_until_it_is_asked_to_end(home: Home) -> None:
    started = home.tunebot("run", str(home.playbook(long_playbook())), *SMALL, "--detach")
    assert started.returncode == 0 and started.stderr == "", started.stderr
    (folder,) = home.sessions()
    assert f"tunebot attach {folder.name}" in started.stdout and str(folder.relative_to(home.root)) in started.stdout
    (note,) = (json.loads(path.read_text()) for path in home.run_folder.glob("*.json"))
    pid = note["pid"]
    assert note["session"] == folder.name and os.getsid(pid) == pid
    assert {str(Path(f"/proc/{pid}/fd/{fd}").readlink()) for fd in (0, 1, 2)} == {"/dev/null"}
    wait(lambda: any(isinstance(event, ev.ServerReady) for event in read_journal(folder)))
    os.kill(pid, signal.SIGHUP)
    seen = len(read_journal(folder))
    wait(lambda: len(read_journal(folder)) > seen)
    start = read_journal(folder)[0]
    assert isinstance(start, ev.SessionStarted) and start.attended, "what needs a person waits"
    os.kill(pid, signal.SIGTERM)
    wait(lambda: ended(folder))
    nothing_runs(home)
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []
    assert not (folder / "fault.txt").exists()


@pytest.mark.long
def test_attached_from_a_pipe_it_is_read_and_steered(home: Home) -> None:
    """The lines so far and those that come; ctrl+c leaves them and stops nothing."""
    file = home.playbook(long_playbook())
    assert home.tunebot("run", str(file), *SMALL, "--detach").returncode == 0
    (folder,) = home.sessions()
    reading = subprocess.Popen(
        home.command("attach", "--headless"), cwd=home.root, env=home.env, stdout=subprocess.PIPE, text=True
    )
    assert reading.stdout is not None
    lines = [next(reading.stdout) for _ in range(6)]
    reading.send_signal(signal.SIGINT)
    assert reading.wait(DEADLINE_S) == 130
    assert not ended(folder) and is_being_written(folder)
    printed = home.tunebot("replay", str(folder), "--headless").stdout
    assert printed.startswith("".join(lines))

    # A second resume looks on, and a second detached one is refused.
    refused = home.tunebot("resume", str(folder), "--detach")
    assert refused.returncode == 2 and "another tunebot runs this session" in refused.stderr
    words = (("resume", str(folder), "--headless"), ("attach", folder.name[:20]))
    outputs = [home.root / "looking", home.root / "attached"]
    readers = []
    for line, output in zip(words, outputs, strict=True):
        with output.open("w") as file:
            readers.append(subprocess.Popen(home.command(*line), cwd=home.root, env=home.env, stdout=file))
    wait(lambda: all(output.read_text() for output in outputs))
    (note,) = (json.loads(path.read_text()) for path in home.run_folder.glob("*.json"))
    os.kill(note["pid"], signal.SIGTERM)
    assert [reader.wait(DEADLINE_S) for reader in readers] == [0, 130]
    whole = home.tunebot("replay", str(folder), "--headless").stdout
    assert [output.read_text() for output in outputs] == [whole, whole]
    nothing_runs(home)


def test_a_session_that_was_left_goes_on_detached(home: Home) -> None:
    assert home.tunebot("run", str(home.playbook(long_playbook())), *SMALL, "--detach").returncode == 0
    (folder,) = home.sessions()
    (note,) = (json.loads(path.read_text()) for path in home.run_folder.glob("*.json"))
    wait(lambda: any(isinstance(event, ev.RoundMeasured) for event in read_journal(folder)))
    os.kill(note["pid"], signal.SIGKILL)
    wait(lambda: not is_being_written(folder))
    cut_off = home.tunebot("attach")
    assert cut_off.returncode == 2 and "no session runs here" in cut_off.stderr
    resumed = home.tunebot("resume", "--detach")
    assert resumed.returncode == 0, resumed.stderr
    (again,) = (json.loads(path.read_text()) for path in home.run_folder.glob("*.json"))
    assert again["session"] == folder.name and again["pid"] != note["pid"]
    os.kill(again["pid"], signal.SIGTERM)
    wait(lambda: ended(folder))
    nothing_runs(home)
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "nope.yaml"), 2, "cannot read nope.yaml"),
        (("run", "demo", "--target", "nowhere"), 3, "there is no target nowhere"),
        (("demo", "--logs", "/proc/logs"), 3, "--logs"),
        (("try", "local", "tp=2"), 2, "no session under logs ran on local"),
        (("resume",), 2, "no session under logs can go on"),
        (("resume", "nope"), 2, "there is no session nope"),
    ],
)
def test_what_does_not_begin_says_why(home: Home, words: tuple[str, ...], code: int, said: str) -> None:
    done = home.tunebot(*words, "--detach")
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr and "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    nothing_runs(home)


def test_a_session_that_nobody_could_attach_to_does_not_begin(home: Home) -> None:
    state = str(home.root / ("x" * 100))
    done = home.tunebot("demo", "--detach", XDG_STATE_HOME=state)
    assert done.returncode == 2 and "nobody could attach" in done.stderr and "XDG_STATE_HOME" in done.stderr
    assert home.sessions() == []
    nothing_runs(home)


def test_headless_and_detached_exclude_each_other(home: Home) -> None:
    done = home.tunebot("demo", "--detach", "--headless")
    assert done.returncode == 2 and "not allowed with" in done.stderr


STUCK = """\
import os, sys, time
from pathlib import Path
import agent.play
from agent.diagnostics import Exit, UserError

def stuck(*_):
    Path(os.environ["MARK"]).write_text(str(os.getpid()))
    {then}

agent.play.check_place = stuck
from agent.cli import main
sys.exit(main(sys.argv[1:]))
"""


def begin(home: Home, then: str) -> "subprocess.Popen[str]":
    """`tunebot demo --detach`, whose other process does `then` before it is ready."""
    command = [home.command()[0], "-c", STUCK.format(then=then), "demo", "--detach"]
    env = {**home.env, "MARK": str(home.root / "mark")}
    process = subprocess.Popen(
        command, cwd=home.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait(lambda: (home.root / "mark").exists() and (home.root / "mark").read_text())
    return process


def test_a_process_that_dies_before_it_is_ready_is_no_session(home: Home) -> None:
    process = begin(home, "time.sleep(600)")
    os.kill(int((home.root / "mark").read_text()), signal.SIGKILL)
    out, error = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1 and out == "" and "was killed by signal 9" in error
    assert home.sessions() == []
    nothing_runs(home)


def test_a_fault_before_it_is_ready_is_one_line(home: Home) -> None:
    process = begin(home, "raise ZeroDivisionError('in\\nthe start')")
    out, error = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1 and out == ""
    assert "a fault in tunebot: ZeroDivisionError: in the start" in error and "Traceback" not in error
    nothing_runs(home)


WAITS = "[time.sleep(0.01) for _ in iter(lambda: Path(os.environ['MARK'] + '.go').exists(), True)]"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_before_it_knows_leaves_nothing(home: Home, number: signal.Signals) -> None:
    process = begin(home, WAITS)
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    (home.root / "mark.go").touch()
    assert process.returncode != 0
    nothing_runs(home)


def test_a_reader_that_is_gone_leaves_nothing(home: Home) -> None:
    """What cannot be told has not begun."""
    process = begin(home, WAITS)
    assert process.stdout is not None
    process.stdout.close()
    (home.root / "mark.go").touch()
    assert process.wait(DEADLINE_S) != 0
    nothing_runs(home)


def test_a_fault_later_is_kept_in_the_session(home: Home) -> None:
    breaks = "import agent.engine; agent.engine.Engine.run = lambda engine: 1 / 0"
    process = begin(home, breaks)
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0 and "runs detached" in out
    (folder,) = home.sessions()
    wait(lambda: (folder / "fault.txt").exists())
    assert "ZeroDivisionError" in (folder / "fault.txt").read_text()
    nothing_runs(home)


def test_a_short_session_waits_for_a_person(home: Home) -> None:
    """An attended session does not end by itself: who attaches ends it."""
    assert home.tunebot("run", str(home.playbook(small_playbook())), *SMALL, "--detach").returncode == 0
    (folder,) = home.sessions()
    wait(lambda: any(isinstance(event, ev.VerdictReached) for event in read_journal(folder)))
    assert len(home.tunebot("attach", "nope").stderr.splitlines()) == 3
    assert is_being_written(folder)
