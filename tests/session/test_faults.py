"""Bad servers, taken ports, dead leaders, interruptions: a clear reason each time, and nothing left behind."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.core import events as ev
from agent.core.state import State
from agent.run import Options, run_session
from agent.sim.host import world_file
from agent.sim.ledger import alive_pids, read_ledger
from agent.sim.world import read_world
from tests.session.kit import Session, parsed, run, small_playbook

IDEA = {"id": "idea", "args": {"enable-mscclpp": True}}


def small_world(**changes: Any) -> dict[str, Any]:
    return {**read_world(world_file("small")), **changes}


def script(tmp_path: Path, body: str) -> list[str]:
    """A command that runs `body` as a server."""
    file = tmp_path / "server.py"
    file.write_text(body)
    return [sys.executable, str(file)]


def serving(command: list[str], **changes: Any) -> dict[str, Any]:
    """A playbook whose server is `command`, given two seconds to get ready."""
    book = small_playbook(**changes)
    book["server"] |= {"command": command, "load_timeout": "2s"}
    return book


async def failed(book: dict[str, Any], tmp_path: Path) -> Session:
    """A session on a small host whose baseline fails."""
    session = await run(book, tmp_path, small_world())
    assert session.state.ending == "completed"
    assert session.words["base"] == "failed"
    assert all(not launch.left for launch in session.state.launches.values())
    return session


async def test_a_port_in_use_is_found_before_the_load(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        book = small_playbook()
        book["server"]["args"]["port"] = port
        session = await failed(book, tmp_path)
    assert f"port {port} already answers" in session.state.experiments["base"].reason
    assert session.real_launches() == {}


async def test_a_port_taken_during_the_load_ends_a_server_that_would_hang(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    book = small_playbook()
    book["server"]["args"]["port"] = port
    squatter: list[socket.socket] = []

    def squat(state: State, event: ev.Event) -> None:
        if isinstance(event, ev.LaunchStarted):
            squatter.append(socket.create_server(("127.0.0.1", port)))

    session = await live(book, tmp_path, squat)
    squatter[0].close()
    assert "Errno 98" in session.state.experiments["base"].reason
    assert session.nothing_left()


async def test_a_missing_command(tmp_path: Path) -> None:
    session = await failed(serving(["no-such-server"]), tmp_path)
    assert "no-such-server" in session.state.experiments["base"].reason


async def test_a_server_that_exits_at_once(tmp_path: Path) -> None:
    session = await failed(serving(script(tmp_path, "print('no licence'); raise SystemExit(3)")), tmp_path)
    failure = next(iter(session.state.launches.values())).failure
    assert failure and failure.exit_code == 3
    assert "no licence" in failure.reason


async def test_a_server_that_never_gets_ready(tmp_path: Path) -> None:
    session = await failed(serving(script(tmp_path, "import time; print('hm', flush=True); time.sleep(600)")), tmp_path)
    assert "not ready after 0:02" in session.state.experiments["base"].reason


async def test_a_hostile_log_is_kept_whole_and_shown_clean(tmp_path: Path) -> None:
    body = """
import sys
out = sys.stdout.buffer
for n in range(2000):
    out.write(b"\\x1b]52;c;aGk=\\x07\\x1b[2J\\x9b31m[/nope] \\xff\\xfe \\x00 line %d\\r\\n" % n)
out.write(b"x" * 5_000_000 + b"\\n" + b"y" * 5_000_000 + b"\\n")
out.write("\\u202e evil ValueError: \\x1b[31mred \\u200b herring\\n".encode() * 3)
out.write(b"ValueError: \\x1b]0;title\\x07the cause\\n")
out.flush()
raise SystemExit(1)
"""
    session = await failed(serving(script(tmp_path, body)), tmp_path)
    assert len(session.log("base")) > 10_000_000
    text = "\n".join(session.lines) + (session.folder / "journal.jsonl").read_text()
    assert not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert "\u202e" not in text


async def test_the_leader_is_killed_while_spawned_ranks_live(tmp_path: Path) -> None:
    def kill(state: State, event: ev.Event) -> None:
        if isinstance(event, ev.PhaseEntered) and event.phase == "load-weights":
            pid = state.launches[event.launch].pid
            assert pid
            os.kill(pid, signal.SIGKILL)

    session = await live(small_playbook(), tmp_path, kill, small_world(pdeathsig=False, speed=200))
    launch = next(iter(session.state.launches.values()))
    assert session.words["base"] == "failed"
    assert launch.failure and launch.failure.exit_code == -9
    ranks = [r["pid"] for r in read_ledger(session.ledger) if r["kind"] == "rank_start"]
    assert len(ranks) >= 2
    assert launch.left == () and session.nothing_left()


async def test_a_server_that_dies_while_it_is_measured(tmp_path: Path) -> None:
    def kill(state: State, event: ev.Event) -> None:
        if isinstance(event, ev.RoundRequested) and event.index == 1:
            pid = state.launches[event.launch].pid
            assert pid
            os.kill(pid, signal.SIGKILL)

    session = await live(small_playbook({"id": "base"}, IDEA), tmp_path, kill)
    assert session.words == {"base": "failed", "idea": "not-reached"}
    assert session.nothing_left()


async def test_contradicted_flags_make_the_measurement_invalid(tmp_path: Path) -> None:
    session = await run(
        small_playbook({"id": "base"}, {"id": "nvls", "args": {"enable-nccl-nvls": True}}), tmp_path, small_world()
    )
    assert session.words["nvls"] == "invalid"
    assert "enable-nccl-nvls" in session.state.experiments["nvls"].reason


@pytest.mark.parametrize("kind", ["oom", "key", "args", "killed"])
async def test_each_way_to_fail_has_its_reason(tmp_path: Path, kind: str) -> None:
    wanted = {"oom": "CUDA out of memory", "key": "KeyError: 12", "args": "bad value", "killed": "Rank 1"}
    session = await run(
        small_playbook({"id": "base"}, {"id": "idea", "env": {"SIM_FAIL": kind}}), tmp_path, small_world()
    )
    assert session.words["idea"] == "failed"
    assert wanted[kind] in session.state.experiments["idea"].reason or kind == "killed"
    assert session.nothing_left()


async def live(
    book: dict[str, Any],
    tmp_path: Path,
    act: Callable[[State, ev.Event], None],
    world: dict[str, Any] | None = None,
) -> Session:
    """Run a session; `act` sees each event after it was reduced."""
    file = tmp_path / "world.yaml"
    file.write_text(json.dumps(world or small_world()))
    options = Options(target=f"simulated:{file}", approved=(), keep=False, logs=tmp_path / "logs")
    async with asyncio.timeout(60):
        state, folder = await run_session(parsed(book), "", options, lambda _, event, after: act(after, event))
    return Session(state, [], folder.path)


def tunebot(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "agent.cli", *words, "--logs", str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def read_until(process: "subprocess.Popen[str]", words: str) -> str:
    """Lines up to the one that holds `words`."""
    assert process.stdout
    seen = ""
    deadline = time.monotonic() + 60
    while words not in seen:
        line = process.stdout.readline()
        assert line and time.monotonic() < deadline, seen
        seen += line
    return seen


def peak_memory_mb(pid: int) -> float:
    """The most that a process has had resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


@pytest.mark.parametrize(
    ("flag", "words"), [((), "loading: load-weights"), ((), "round 1"), (("--keep",), "ready after")]
)
def test_an_interrupt_stops_the_server_or_keeps_it(tmp_path: Path, flag: tuple[str, ...], words: str) -> None:
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(small_playbook()))
    process = tunebot(tmp_path, "run", str(file), "--headless", "--target", "simulated:small", *flag)
    read_until(process, words)
    assert peak_memory_mb(process.pid) < 150
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 130, rest
    (folder,) = (p for p in (tmp_path / "logs").iterdir() if p.is_dir())
    ledger = folder / "host" / ".sim" / "ledger.jsonl"
    if flag:
        assert "left running" in rest and alive_pids(ledger)
        launcher = next(r["pid"] for r in read_ledger(ledger) if r["kind"] == "launch")
        os.kill(launcher, signal.SIGKILL)
    else:
        assert alive_pids(ledger) == []
    assert "interrupted" in rest


def test_a_second_tunebot_on_the_host_leaves_and_names_the_owner(tmp_path: Path) -> None:
    book = small_playbook(target="local")
    book["server"] = {
        "kind": "sglang",
        "command": script(tmp_path, "import time; print(1, flush=True); time.sleep(60)"),
    }
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(book))
    first = tunebot(tmp_path, "run", str(file), "--headless")
    read_until(first, "loading: pid")
    second = tunebot(tmp_path, "run", str(file), "--headless")
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 3, said
    assert "the target cannot be used" in said and "-small-" in said
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130


def test_a_reader_that_goes_away_leaves_no_server_behind(tmp_path: Path) -> None:
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(small_playbook()))
    process = tunebot(tmp_path, "run", str(file), "--headless", "--target", "simulated:small")
    read_until(process, "loading: load-weights")
    assert process.stdout
    process.stdout.close()
    assert process.wait(timeout=60) == 130
    (folder,) = (p for p in (tmp_path / "logs").iterdir() if p.is_dir())
    assert alive_pids(folder / "host" / ".sim" / "ledger.jsonl") == []
