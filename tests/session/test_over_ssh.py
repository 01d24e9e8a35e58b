"""Sessions over SSH: the same result as on this machine, also when the connection breaks again and again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.core import events as ev
from agent.core.state import State
from agent.headless import Printer, replay
from agent.journal.journal import read_journal
from agent.run import Options, run_session
from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import alive_pids, launches
from agent.targets import link
from tests.session.kit import parsed, small_playbook
from tests.sshd import Sshd, start_sshd

SLOWER = {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "~/models/draft"}
IDEAS = ({"id": "base"}, {"id": "idea", "args": SLOWER}, {"id": "bad", "env": {"SIM_FAIL": "oom"}})


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Sshd, SimHost]]:
    """A simulated host behind a real sshd: `box` in targets.yaml, and in the ~/.ssh/config of a home of its own."""
    sshd = start_sshd(tmp_path / "sshd")
    host = create_host(tmp_path / "box", world_file("small"))
    home, config = tmp_path / "home", tmp_path / "config"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text(sshd.config.read_text())
    (config / "tunebot").mkdir(parents=True)
    entry = {"kind": "ssh", "host": "box", "env": {**host.env, "HOME": str(host.home)}, "path": ["~/bin"]}
    (config / "tunebot" / "targets.yaml").write_text(yaml.safe_dump({"box": entry}))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    yield sshd, host
    sshd.stop()
    for pid in alive_pids(host.ledger):
        os.kill(pid, signal.SIGKILL)


async def run(
    tmp_path: Path, data: dict[str, Any], act: Callable[[State, ev.Event], None] = lambda state, event: None
) -> tuple[State, list[str], Path]:
    lines: list[str] = []
    say = Printer(lines.append)

    def listen(before: State, event: ev.Event, after: State) -> None:
        say(before, event, after)
        act(after, event)

    options = Options(target=None, approved=(), keep=False, logs=tmp_path / "logs")
    async with asyncio.timeout(120):
        state, folder = await run_session(parsed(data), "", options, listen)
    return state, lines, folder.path


def words(state: State) -> dict[str, str]:
    return {e.id: e.verdict.word if e.verdict else "open" for e in state.experiments.values()}


@pytest.mark.long
async def test_the_result_is_that_of_the_same_host_here(tmp_path: Path, box: tuple[Sshd, SimHost]) -> None:
    _, host = box
    state, lines, folder = await run(tmp_path, small_playbook(*IDEAS, target="box"))
    here, _, _ = await run(tmp_path, small_playbook(*IDEAS, target="simulated:small"))
    assert state.ending == "completed"
    assert words(state) == words(here)
    assert words(state)["idea"] == "worse" and words(state)["bad"] == "failed"
    assert "CUDA out of memory" in state.experiments["bad"].reason
    assert "SIMULATED" in lines[0] and state.host.gpus == here.host.gpus
    ledger = launches(host.ledger)
    assert sorted(one["launch_id"] for one in ledger) == sorted(state.launches)
    assert alive_pids(host.ledger) == []
    for launch in state.launches.values():
        assert b"SIMULATED" in (folder / "launches" / f"{launch.id}.log").read_bytes()
    again: list[str] = []
    assert replay(read_journal(folder), again.append) == state
    assert again == lines


async def test_broken_connections_change_nothing(
    tmp_path: Path, box: tuple[Sshd, SimHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is killed once in each stage of each launch; no launch fails by it, none is started twice."""
    sshd, host = box
    monkeypatch.setattr(link, "LONGEST_PAUSE_S", 0.3)
    kills: list[str] = []

    def kill(state: State, event: ev.Event) -> None:
        moment = f"{type(event).__name__} {getattr(event, 'launch', '')}"
        wanted = ev.LaunchRequested | ev.LaunchStarted | ev.ServerReady | ev.RoundRequested | ev.StopRequested
        if isinstance(event, wanted) and moment not in kills:
            kills.append(moment)
            asyncio.get_running_loop().call_later(0.05, sshd.signal_connections, signal.SIGKILL)

    state, lines, folder = await run(tmp_path, small_playbook(*IDEAS[:2], target="box"), kill)
    text = "\n".join(lines)
    assert state.ending == "completed", text
    assert not [launch.failure for launch in state.launches.values() if launch.failure], text
    assert all(word not in ("failed", "open") for word in words(state).values()), text
    assert sorted(one["launch_id"] for one in launches(host.ledger)) == sorted(state.launches)
    assert alive_pids(host.ledger) == []
    assert len(kills) >= 10
    assert text.count("the target cannot be reached") >= 5
    assert text.count("the target is reached again") == text.count("the target cannot be reached")
    assert replay(read_journal(folder), lambda line: None) == state


@pytest.mark.long
async def test_out_of_reach_for_longer_than_a_load_may_take(
    tmp_path: Path, box: tuple[Sshd, SimHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd, host = box
    monkeypatch.setattr(link, "LONGEST_PAUSE_S", 0.3)
    book = small_playbook(target="box")
    book["server"]["load_timeout"] = "8s"

    def leave(state: State, event: ev.Event) -> None:
        if isinstance(event, ev.PhaseEntered) and event.phase == "load-weights":
            sshd.stop()
            asyncio.get_running_loop().call_later(10.0, sshd.start)

    state, lines, _ = await run(tmp_path, book, leave)
    assert words(state) == {"base": "keep"}, "\n".join(lines)
    assert len(launches(host.ledger)) == 1


async def test_a_key_that_changes_ends_the_session_and_says_what_may_run(
    tmp_path: Path, box: tuple[Sshd, SimHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd, _ = box
    monkeypatch.setattr(link, "LONGEST_PAUSE_S", 0.3)

    def change(state: State, event: ev.Event) -> None:
        if isinstance(event, ev.PhaseEntered) and event.phase == "load-weights":
            sshd.stop()
            sshd.new_host_key()
            sshd.start()

    state, _, _ = await run(tmp_path, small_playbook(target="box"), change)
    assert state.ending == "target-lost"
    assert state.lost and "HAS CHANGED" in state.lost


def tunebot(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "agent.cli", *words], capture_output=True, text=True, timeout=60)


def test_the_doctor_over_ssh(tmp_path: Path, box: tuple[Sshd, SimHost]) -> None:
    sshd, _ = box
    done = tunebot("doctor", "box", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["usable"]) == (0, True), done.stdout
    assert [check["name"] for check in said["checks"]] == [
        "connection",
        "python3",
        "work folder",
        "disk",
        "ports",
        "lock",
        "launches",
        "gpus",
        "gpu memory",
        "topology",
    ]
    sshd.stop()
    sshd.start("AllowTcpForwarding no")
    done = tunebot("doctor", "box")
    assert done.returncode == 3 and "AllowTcpForwarding" in done.stdout
    sshd.known_hosts.write_text("")
    done = tunebot("doctor", "ssh:box")
    assert done.returncode == 3 and "is not known: ssh-ed25519 SHA256" in done.stdout
