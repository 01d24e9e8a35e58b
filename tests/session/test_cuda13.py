"""The fragment `cuda13-venv` on a simulated host: what it refuses, what it makes, and tunebot killed at every step.

What ran is told by the host itself: its ledger, to which a `sh` of its own adds each step that is begun.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.core import events as ev
from agent.core.plan import plan_approval
from agent.headless import replay
from agent.journal.journal import read_journal
from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import alive_pids, launches, read_ledger
from agent.sim.venvs import SITE, create_venv
from tests.session.kit import Session, parsed, small_playbook

ROOT = Path(__file__).parents[2]
USE = {"id": "new", "use": "cuda13-venv", "with": {"present": "~/venv"}}
BOOK = small_playbook({"id": "base"}, USE, target="box")
STEPS = ("claim", "venv", "packages", "whole")
"""What the host's `sh` tells of each: its name, which stands behind the script."""

COUNTING = """#!/bin/sh
case "$3" in
    claim|venv|packages|whole) step=$3;;
    *) exec /bin/sh "$@";;
esac
echo "{{\\"kind\\": \\"step\\", \\"pid\\": $$, \\"t\\": 0, \\"step\\": \\"$step\\"}}" >> {ledger}
exec /bin/sh "$@"
"""


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimHost]:
    """A small host, `box` in targets.yaml, on which making an environment takes a second."""
    world: dict[str, Any] = yaml.safe_load(world_file("small").read_text())
    world["environments"]["cuda13"]["nvcc"] = "13.0"
    world["phases"] |= {"venv": 400, "pip": 400}
    host = create_host(tmp_path / "box", world)
    counting = host.home / "bin" / "sh"
    counting.write_text(COUNTING.format(ledger=host.ledger))
    counting.chmod(0o755)
    entry = {
        "kind": "local",
        "workdir": str(host.home / ".tunebot"),
        "env": {**host.env, "HOME": str(host.home)},
        "path": [str(host.home / "bin")],
    }
    (tmp_path / "config" / "tunebot").mkdir(parents=True)
    (tmp_path / "config" / "tunebot" / "targets.yaml").write_text(yaml.safe_dump({"box": entry}))
    monkeypatch.setenv("HOME", str(host.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield host
    for pid in alive_pids(host.ledger):
        os.kill(pid, signal.SIGKILL)


def step(host: SimHost, number: int, **told: str) -> tuple[int, str]:
    """One step of the fragment, run by hand: its exit code and what it says at the end."""
    book = parsed(small_playbook({"id": "base"}, {**USE, "with": {"present": "~/venv", **told}}))
    run = book.experiments[1].prepare[number].run
    words = [str(host.home) + word[1:] if word.startswith("~/") else word for word in run]
    done = subprocess.run(words, env=host.full_env(), cwd=host.home, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip().rpartition("\n")[2]


def begun(host: SimHost) -> list[str]:
    return [record["step"] for record in read_ledger(host.ledger) if record["kind"] == "step"]


def test_it_refuses_what_is_not_its_own(box: SimHost) -> None:
    there = box.home / "there"
    create_venv(there, box.home)
    assert step(box, 0, path="~/there") == (1, f"{there} exists, and was not made by these steps")
    (box.home / "link").symlink_to(box.home / "venv")
    for name in ("venv", "link"):
        assert step(box, 0, path=f"~/{name}") == (1, f"{box.home / name} is the present environment")
    smi = box.home / "bin" / "nvidia-smi"
    real = smi.read_text()
    smi.write_text("#!/bin/sh\necho 575.57.08\n")
    assert step(box, 0) == (1, "driver 575 is too old: CUDA 13 needs 580")
    smi.write_text(real)
    assert not (box.home / "venvs").exists(), "nothing was made"
    (box.home / "empty").mkdir()
    assert step(box, 0, path="~/empty")[0] == 0 and step(box, 0, path="~/empty")[0] == 0, "its own is no other's"
    code, said = step(box, 0, path="~/empty", sglang="0.5.24")
    assert code == 1 and "was not made by these steps" in said, "another version would go over it"


def test_what_is_half_made_is_made_again(box: SimHost) -> None:
    made = box.home / "venvs" / "cu130" / ".tunebot-sglang-0.5.23"
    assert step(box, 0) == (0, "") and step(box, 1) == (0, "")
    world = box.home / ".sim" / "world.json"
    right = world.read_text()
    world.write_text(right.replace("sglang==0.5.23", "sglang==9"))
    code, said = step(box, 2)
    assert code == 1 and "No matching distribution" in said
    assert sorted(path.name for path in made.iterdir()) == ["venv"], "what failed leaves no mark"
    world.write_text(right)
    assert step(box, 2)[0] == 0
    assert step(box, 3) == (0, "sglang 0.5.23 imports, torch is built for CUDA 13.0")
    assert sorted(path.name for path in made.iterdir()) == ["packages", "venv", "whole"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("cuda", "12.8", "torch is built for CUDA 12.8, not 13"),
        ("compute_cap", "11.0", "has no code for GPUs of capability [(11, 0)]"),
    ],
)
def test_the_smoke_test_says_what_would_not_run(box: SimHost, key: str, value: str, said: str) -> None:
    for number in range(3):
        assert step(box, number)[0] == 0
    site = box.home / "venvs" / "cu130" / ".sim.json"
    file = site if key == "cuda" else box.home / ".sim" / "world.json"
    data = json.loads(file.read_text())
    (data if key == "cuda" else data["gpu"])[key] = value
    file.write_text(json.dumps(data))
    code, told = step(box, 3)
    assert code == 1 and said in told


def start(tmp_path: Path, die: list[Any] | None) -> subprocess.Popen[bytes]:
    """A tunebot that begins the session, or resumes it where there is one."""
    sessions = list((tmp_path / "logs").glob("*/journal.jsonl"))
    order = {"session": str(sessions[0].parent)} if sessions else {"playbook": BOOK}
    book = parsed(BOOK)
    order |= {"logs": str(tmp_path / "logs"), "approved": [plan_approval(book, book.experiments[1])], "die": die}
    file = tmp_path / "order.json"
    file.write_text(json.dumps(order))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.session.victim", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


def ended(victim: subprocess.Popen[bytes], code: int) -> None:
    _, errors = victim.communicate(timeout=120)
    assert victim.returncode == code, errors.decode()


def killed_at_each(event: str) -> Callable[[Path, SimHost], None]:
    """As each step is requested, or has ended: tunebot kills itself."""

    def kill(tmp_path: Path, box: SimHost) -> None:
        for _ in STEPS:
            ended(start(tmp_path, [event, 0]), -signal.SIGKILL)

    return kill


def killed_within_each(tmp_path: Path, box: SimHost) -> None:
    """While each step is at it: killed from outside."""
    for count in range(1, len(STEPS) + 1):
        victim = start(tmp_path, None)
        limit = time.monotonic() + 240
        while len(begun(box)) < count and victim.poll() is None:
            assert time.monotonic() < limit, f"step {count} never began"
            time.sleep(0.005)
        victim.kill()
        ended(victim, -signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize(
    "kill",
    [killed_at_each("PrepareRequested"), killed_within_each, killed_at_each("PrepareFinished")],
    ids=["as each begins", "within each", "as each has ended"],
)
def test_killed_at_every_step_of_the_plan(box: SimHost, tmp_path: Path, kill: Callable[[Path, SimHost], None]) -> None:
    kill(tmp_path, box)
    ended(start(tmp_path, None), 0)
    (folder,) = (file.parent for file in (tmp_path / "logs").glob("*/journal.jsonl"))
    events = read_journal(folder)
    session = Session(replay(events, lambda line: None), [], folder)
    assert session.state.ending == "completed" and session.words["base"] == "keep"
    assert session.words["new"] in ("keep", "no-gain", "inconclusive", "worse"), "what a busy machine lets one measure"
    assert sum(isinstance(event, ev.SessionResumed) for event in events) == len(STEPS)

    told = [event for event in events if isinstance(event, ev.PrepareFinished)]
    assert [(event.step, event.ok) for event in told] == [(number, True) for number in range(len(STEPS))]
    assert begun(box) == list(STEPS), "each step began once, in their order"
    records = Counter(record["kind"] for record in read_ledger(box.ledger))
    assert (records["venv"], records["pip"]) == (1, 1)
    made = box.home / "venvs" / "cu130"
    assert sorted(path.name for path in (made / ".tunebot-sglang-0.5.23").iterdir()) == ["packages", "venv", "whole"]
    assert (made / SITE / "sglang" / "version.py").exists()

    real = {launch["environment"]: launch for launch in launches(box.ledger)}
    assert set(real) == {"default", "cuda13"} and len(launches(box.ledger)) == 2
    assert real["cuda13"]["env"]["CUDA_HOME"] == str(made / SITE / "nvidia" / "cu13")
    rounds = [len(launch.rounds) for launch in session.state.launches.values()]
    assert rounds == [3, 3] and alive_pids(box.ledger) == []

    for number, versions in ((1, ("sglang 0.5.9", "CUDA 12.8")), (2, ("sglang 0.5.23", "CUDA 13.0", "nvcc 13.0"))):
        finding = session.state.tasks[f"new/{number}"].finding
        assert finding and all(part in finding.summary for part in (*versions, "driver 580")), finding
    checks = [session.state.tasks[f"new/check{number}"].finding for number in range(1, 5)]
    assert [check and check.outcome for check in checks] == ["fine"] * 4, checks
