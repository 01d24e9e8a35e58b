"""What a simulated process needs of Linux: titles, parent death, /proc, the ledger's append, the state of its GPU.

Eight ranks import this at once on two cores: it uses few modules, and neither typing nor pathlib.
"""

from __future__ import annotations

import ctypes
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_PDEATHSIG = 1


def append(path: str | os.PathLike[str], kind: str, **values: Any) -> None:
    """Add one record to the ledger, whole, even when many processes write at once."""
    record = {"kind": kind, "t": time.time(), "pid": os.getpid(), **values}
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, (json.dumps(record) + "\n").encode())
    finally:
        os.close(descriptor)


def pass_time(path: str | os.PathLike[str], phase: str, seconds: float) -> None:
    """Let a phase of the launcher take its time, and record it."""
    began = time.time()
    time.sleep(seconds)
    append(path, "phase", phase=phase, start=began, end=time.time())


def stat_fields(pid: int | str) -> list[bytes]:
    """Fields 3 and up of /proc/PID/stat; empty if there is no such process."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return []
    try:
        return os.read(descriptor, 4096).rpartition(b") ")[2].split()
    except OSError:
        return []
    finally:
        os.close(descriptor)


def start_time(pid: int | str) -> int | None:
    """Start of a living process in clock ticks since boot; None if there is none, or only a zombie."""
    found = stat_fields(pid)
    return None if not found or found[0] in (b"Z", b"X") else int(found[19])


def stopped(pid: int) -> bool:
    """True while a process is stopped by a signal (state T)."""
    return stat_fields(pid)[:1] == [b"T"]


def set_title(title: str) -> None:
    """Rename this process in `comm` and in its command line, as setproctitle does."""
    with open("/proc/self/comm", "w") as file:  # noqa: PTH123  (no pathlib here)
        file.write(title[:15])
    found = stat_fields("self")
    begin, end = int(found[45]), int(found[46])
    if end > begin:
        text = title.encode()[: end - begin - 1]
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, text, len(text))


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)


def stamp(prefix: str = "") -> str:
    """The head of a log line, e.g. `[2026-03-02 10:00:00 TP0]`."""
    return time.strftime("[%Y-%m-%d %H:%M:%S") + prefix + "]"


def write_all(descriptor: int, text: str) -> None:
    """Write text with as few writes as the descriptor allows: other processes write to it too."""
    data = text.encode()
    while data:
        data = data[os.write(descriptor, data) :]


def write_gpu_state(folder: str, gpu: int, used_mib: float, launcher: int) -> None:
    """Say what this process holds on one GPU; nvidia-smi of the host reads it while the process lives."""
    pid = os.getpid()
    state = {"gpu": gpu, "used_mib": int(used_mib), "start": start_time(pid), "launcher": launcher}
    temporary = f"{folder}/.{pid}"
    with open(temporary, "w") as file:  # noqa: PTH123  (no pathlib here)
        json.dump(state, file)
    os.replace(temporary, f"{folder}/{pid}.json")  # noqa: PTH105  (no pathlib here)


def read_gpu_states(folder: str) -> list[dict[str, Any]]:
    """What living processes hold, each with its `pid`; leftovers of dead ones are ignored."""
    found = []
    for name in os.listdir(folder):  # noqa: PTH208  (no pathlib here)
        if name.endswith(".json"):
            try:
                with open(f"{folder}/{name}") as file:  # noqa: PTH123  (no pathlib here)
                    state = json.load(file)
            except (OSError, ValueError):
                continue
            if start_time(name[:-5]) == state["start"]:
                found.append({**state, "pid": int(name[:-5])})
    return found
