"""Launches of which nothing lives, while other processes have got the very pids that their records name.

`python -m tests.targets.recycled [N]` does that N times in a pid namespace of its own, where pids can be chosen: the
pids of leader, rank and holder go to bystanders, and every verb is asked. Exit code 77 where that is not permitted.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from agent.targets import wrapper
from agent.targets.answers import job_order
from tests.targets.kit import PYTHON

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
NOT_PERMITTED = 77
SERVER = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
time.sleep(600)
"""


def one(root: Path, launch: str) -> tuple[int, int]:
    """How many pids were recycled, and how many bystanders with one of them were harmed or taken for ours."""
    order = job_order(launch, [*PYTHON, "-c", SERVER], {})
    answer = wrapper.start({**order, "runs": str(root / "runs"), "lock": str(root / "lock")})
    assert "error" not in answer, answer
    run = root / "runs" / launch
    wrapper._until(lambda: len(wrapper.living(run)[0]) == 2 and (run / "processes.jsonl").exists(), 10.0)
    pids = [json.loads((run / "launch.json").read_bytes())["holder"]["pid"], *(p.pid for p in wrapper.living(run)[0])]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        os.waitpid(-1, os.WNOHANG)  # orphans are children of the first process of a namespace
    bystanders = []
    for pid in pids:
        LAST_PID.write_text(str(pid - 1))
        bystanders.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
    assert [process.pid for process in bystanders] == pids
    ours = wrapper.status(run)["processes"] + wrapper.stop(run, 0.2)["left"]
    harmed = sum(process.poll() is not None for process in bystanders)
    for process in bystanders:
        process.kill()
        process.wait()
    return len(pids), harmed + len(ours)


def main(n: int) -> int:
    """Print how it went."""
    if os.getpid() != 1:
        inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*inside, "sh", "-c", f"echo 9 > {LAST_PID}"], capture_output=True, check=False).returncode:
            print("pids cannot be chosen here: unshare is not permitted")
            return NOT_PERMITTED
        return subprocess.run([*inside, sys.executable, "-m", "tests.targets.recycled", str(n)], check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        counts = [one(Path(folder), f"l{index}") for index in range(n)]
    recycled, wrong = (sum(column) for column in zip(*counts, strict=True))
    print(f"{recycled} recycled pids of {n} launches: {wrong} taken for ours or harmed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
