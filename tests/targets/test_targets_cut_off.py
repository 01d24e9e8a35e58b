"""A start whose holder is killed at any of its steps: whoever asks what became of it is told the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.targets import wrapper
from agent.targets.answers import job_order
from tests.targets.kit import lives

ROOT = Path(__file__).parents[2]
START = """
import json, os, signal, sys
from agent.targets import wrapper
us, write = os.getpid(), wrapper._write
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
def die_instead(*words): die() if os.getpid() != us else write(*words)
def die_then(*words): write(*words); die()
exec(sys.argv[1])
print(json.dumps(wrapper.start(json.loads(sys.argv[2]))))
"""
STEPS = {
    "at its beginning": "wrapper._detach = die",
    "before it has the GPUs": "wrapper._take_gpus = die",
    "before it has a leader": "wrapper._spawn = die",
    "before it records the leader": "wrapper._write = die_instead",
    "after it has recorded the leader": "wrapper._write = die_then",
    "once the program runs": "wrapper._watch = die",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_holder_is_killed(tmp_path: Path, step: str) -> None:
    run = tmp_path / "runs" / "l1"
    program = ["sh", "-c", f"echo ran >> {tmp_path}/ran; exec sleep 600"]
    order = {**job_order("l1", program, {}), "gpus": True, "runs": str(run.parent), "lock": str(tmp_path / "lock")}

    def start(change: str) -> dict[str, object]:
        words = [sys.executable, "-c", START, change, json.dumps(order)]
        answer: dict[str, object] = json.loads(subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE).stdout)
        answer.pop("age_s", None)
        return answer

    first = start(STEPS[step])
    second, asked = start(""), wrapper.outcome(run)
    asked.pop("age_s", None)
    assert first == second == asked
    recorded = step in list(STEPS)[-2:]
    assert ("pid" in first, first.get("error")) == ((True, None) if recorded else (False, "cut-off"))
    status = wrapper.status(run)
    if step == "once the program runs":
        assert status["state"] == "running" and lives(int(str(first["pid"])))
        assert wrapper.stop(run, 5.0)["left"] == []
        assert (tmp_path / "ran").read_text() == "ran\n"
    else:
        assert status["state"] == "gone" and not (tmp_path / "ran").exists()
