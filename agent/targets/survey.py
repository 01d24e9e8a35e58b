"""What `tunebot doctor` asks a machine: its Python, its work folder, its disk, who holds its GPUs, what still runs.

Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from agent.targets import containers, places, wrapper


def survey(workdir: Path) -> dict[str, Any]:
    """Facts about a machine on which launches live in `workdir`. Nothing is changed but that the folder is made."""
    return {
        "python": list(sys.version_info[:3]),
        "workdir": str(workdir),
        "workdir_problem": _problem_of(workdir),
        "free_bytes": _free_bytes(workdir),
        "lock_owner": _owner(workdir / "gpu.lock"),
        "launches": _living_launches(workdir / "runs"),
    }


def _problem_of(workdir: Path) -> dict[str, str] | None:
    try:
        places.make_workdir(workdir)
        probe = workdir / f"doctor.{os.getpid()}.tmp"
        probe.write_bytes(b"x")
        probe.unlink()
    except places.Unfit as err:
        return {"message": str(err), "hint": err.hint}
    except OSError as err:
        return {"message": f"cannot write in {workdir}: {err.strerror}", "hint": "choose another work folder"}
    return None


def _free_bytes(folder: Path) -> int | None:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(str(folder)).free
    except OSError:
        return None


def _owner(lock: Path) -> dict[str, Any] | None:
    """Who holds the lock on the GPUs, or None where it is free."""
    try:
        # Asking by taking it would turn a launch away that begins at this moment.
        held = Path("/proc/locks").read_text()
        if not any(line.split()[1] == "FLOCK" and f":{lock.stat().st_ino} " in line for line in held.splitlines()):
            return None
        owner = json.loads(lock.read_bytes() or b"{}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _living_launches(runs: Path) -> list[dict[str, Any]]:
    """Launches of which something lives."""
    found = []
    for run in sorted(runs.iterdir()) if runs.is_dir() else ():
        if (run / "exit.json").exists() or (run / "refused.json").exists():
            continue
        try:
            left, held = wrapper.living(run)
        except containers.Unsure:
            left, held = [], True
        if left or held:
            found.append({"launch": run.name, "pids": [proc.pid for proc in left]})
    return found
