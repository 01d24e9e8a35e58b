"""Starts, watches and stops servers on the machine where they run: standard library only, Linux, Python 3.8 or later.

    python3 wrapper.py start < spec.json        python3 wrapper.py outcome RUNDIR
    python3 wrapper.py status RUNDIR            python3 wrapper.py owners RUNDIR PORT
    python3 wrapper.py stop RUNDIR GRACE_S

(bundle.py makes one file of it and of containers.py.) Each verb is short and prints one JSON object. `start` leaves
a *holder* behind: our process that holds the lock on the GPUs, adopts the server's orphans and stays until nothing of
the launch lives. Whoever kills it frees the lock but not the server, and every verb still works. A job (a command to
be run once) is started like a server, without the GPUs. The files of a launch, in `runs/LAUNCH/`:

    claim            locked by `start`, then by the holder: alone until the program runs, then shared, for life
    launch.json      leader and holder (pid, start ticks), boot id, port, log, time; written before the program runs
    processes.jsonl  every descendant seen, one a line
    container.id     of a launch in a container, as Docker writes it
    container.json   the first process of that container (pid, start ticks), as soon as it is seen
    server.log       stdout and stderr
    leader.json      the leader's exit code, as soon as it is dead
    exit.json        the same, once nothing of the launch lives
    refused.json     why nothing was started; this launch id is spent

A process is a pid *and* its start ticks *and* the boot: a pid alone is never signalled.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from agent.targets import containers

KILL_LIMIT_S = 20.0
"""How long `stop` goes on after its first SIGKILL: a process in state D cannot be killed."""

_EARLY_S, _EARLY_POLL_S, _POLL_S = 5.0, 0.1, 0.5
_EXIT_WRITE_LIMIT_S = 60.0
_PR_SET_CHILD_SUBREAPER = 36
_DEFAULTED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
_MARK = "TUNEBOT_MARK"
_OWNER = ("owner", "host", "launch", "time")
_OWNER_LIMIT_S = 1.0  # who has just taken the lock writes its name next
_OUTCOME_LIMIT_S = 45.0
_CLIENT_LIMIT_S = 5.0


class Refused(Exception):
    """Nothing was started. `kind` is one of cut-off, locked, alive, program, system."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# --- processes ---


class Proc(NamedTuple):
    """A living process as /proc shows it. `start_ticks` are clock ticks since boot."""

    pid: int
    ppid: int
    sid: int
    start_ticks: int


def find(pid: int) -> Proc | None:
    """The process of that pid, or None where none lives. A zombie is dead, unless threads of it live on."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    # A main thread can be gone while another is stuck in a driver and keeps the GPU's memory.
    if fields[0] in b"ZX" and int(fields[17]) <= 1:
        return None
    return Proc(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def snapshot() -> dict[int, Proc]:
    """Every living process. It is not taken in one instant: a fork can slip through, so look twice."""
    procs = (find(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {proc.pid: proc for proc in procs if proc is not None}


def members(procs: dict[int, Proc], seeds: Iterable[int], outside: int = 0) -> list[Proc]:
    """The living seeds with their descendants, and everybody in a session of one of them.

    `outside` is the holder, whose session is not the server's. A session's number cannot be reused while anybody
    is in it, so this adds no stranger.
    """
    ours = {pid for pid in seeds if pid in procs}
    grown = True
    while grown:
        sessions = {procs[pid].sid for pid in ours} - {0, outside}
        new = {
            proc.pid
            for proc in procs.values()
            if proc.pid not in ours and proc.pid != outside and (proc.ppid in ours or proc.sid in sessions)
        }
        ours |= new
        grown = bool(new)
    return [procs[pid] for pid in sorted(ours)]


def marked(pid: int, entry: str) -> bool:
    """Whether the process started with this `NAME=value` in its environment (as far as we may read it)."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"\0{entry}\0".encode() in b"\0" + environ


def send(proc: Proc, signum: int) -> None:
    """Signal a process, if it still is the one that was meant and we may."""
    now = find(proc.pid)
    if now is not None and now.start_ticks == proc.start_ticks:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(proc.pid, signum)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


# --- files of a run ---


def _write(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(value) + "\n")
    temporary.replace(path)


def _load(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _lock(path: Path, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """A locked file descriptor of the file, or None where somebody else holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _recorded(run: Path, record: dict[str, Any]) -> set[tuple[int, int]]:
    known = {(record["pid"], record["start_ticks"])}
    with contextlib.suppress(FileNotFoundError):
        for line in (run / "processes.jsonl").read_bytes().splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a line cut by a full disk
                value = json.loads(line)
                known.add((value["pid"], value["start_ticks"]))
    return known


def living(run: Path) -> tuple[list[Proc], bool]:
    """What lives of the launch, recorded or found now, and whether its holder does. Where not, we record for it.

    Raises containers.Unsure where only Docker could say.
    """
    record = _load(run / "launch.json")
    if record is None or record["boot_id"] != boot_id():
        return [], False
    holder, holder_ticks = record["holder"]["pid"], record["holder"]["start_ticks"]
    contained = _contained(run, record)
    procs = snapshot()
    known = _recorded(run, record).union((proc.pid, proc.start_ticks) for proc in contained)
    seeds = [proc.pid for proc in procs.values() if (proc.pid, proc.start_ticks) in known]
    held = holder in procs and procs[holder].start_ticks == holder_ticks
    if held:
        seeds += [proc.pid for proc in procs.values() if proc.ppid == holder]
    else:  # nobody adopts and records any more: ask each younger process where it comes from
        young = (proc.pid for proc in procs.values() if proc.start_ticks >= record["start_ticks"])
        seeds += [pid for pid in young if marked(pid, f"{_MARK}={record['mark']}")]
    found = members(procs, seeds, holder)
    if not held:  # who is known only as a child or by session would be lost with the last relative
        _record(run, found, known)
    return found + [proc for proc in contained if proc.start_ticks == 0], held


def _contained(run: Path, record: dict[str, Any]) -> list[Proc]:
    """The first process of the launch's container; with it all others die. Without start ticks it is out of our sight.

    Docker is asked until that process was seen, and not before the client has made the container. Raises Unsure.
    """
    if record.get("container") is None:
        return []
    seen = _load(run / "container.json")
    if seen is not None:
        first = Proc(seen["pid"], 0, 0, seen["start_ticks"])
        return [first] if _lives(first) else []
    if not (run / "container.id").exists() and _lives(Proc(record["pid"], 0, 0, record["start_ticks"])):
        return []
    first_pids = containers.first_pids(record["container"])
    found = [find(pid) or Proc(pid, 0, 0, 0) for pid in first_pids]
    if len(found) == 1 and found[0].start_ticks:
        _write(run / "container.json", _plain(found)[0])
    return found


def _over(run: Path, record: dict[str, Any], code: int | None) -> bool:
    """Whether it is proven that nothing lives in the launch's container, whose client ended with that exit code."""
    box = record.get("container")
    ended = code is not None and code >= 0  # by itself: it names the container before it starts it
    if box is None or (ended and not (run / "container.id").exists()):
        return True
    try:
        return not _contained(run, record) and containers.over(box)
    except containers.Unsure:
        return False


# --- start ---


def start(spec: dict[str, Any]) -> dict[str, Any]:
    """Start the server of a spec: launch, port, owner, runs, lock, gpus, argv, env, unset, container.

    Returns once its program runs. The launch id is claimed first and for ever: a second start of it starts nothing
    and answers as the first. A job has neither port nor gpus. A `container` (run, stop_s, env) is where it will run.
    """
    umask = os.umask(0o077)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", spec["launch"]):
        raise Refused("system", f"{spec['launch']!r} is not a launch id")
    run = Path(spec["runs"]) / spec["launch"]
    claim = _claim(run)
    if claim is None:
        return outcome(run)
    if os.fork() == 0:
        try:
            os.setsid()
            _detach(claim)
            _hold(spec, run, claim, umask)
        finally:
            os._exit(0)
    os.close(claim)  # it stays locked by the holder
    return outcome(run)


def _claim(run: Path) -> int | None:
    """Make the folder of a launch with its claim, locked by us; None where it was made before."""
    made = run.with_name(f".{run.name}.{os.urandom(4).hex()}")
    made.mkdir(parents=True)
    claim = _lock(made / "claim")
    try:
        made.rename(run)  # fails where there is one with a claim in it: nobody ever sees a claim of ours unlocked
    except OSError as err:
        (made / "claim").unlink()
        made.rmdir()
        if err.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return None
    return claim


def outcome(run: Path) -> dict[str, Any]:
    """What became of a start, once that is known: its leader, port, time and age, or an error ("none": never asked)."""
    if not run.is_dir():
        return {"error": "none", "message": f"launch {run.name} was never started"}
    settled = _until(lambda: _settled(run), _OUTCOME_LIMIT_S)
    refused, record = _load(run / "refused.json"), _load(run / "launch.json")
    if refused is not None:
        return refused
    if record is None or not settled:
        return {"error": "system", "message": f"the start of launch {run.name} is still under way"}
    told = {name: record[name] for name in ("pid", "start_ticks", "port", "time")}
    return {**told, "age_s": max(0.0, time.time() - record["time"])}


def _settled(run: Path) -> bool:
    """Whether the start is over. One that was cut off before it recorded anything is made final here."""
    claim = _lock(run / "claim", fcntl.LOCK_SH | fcntl.LOCK_NB)
    if claim is None:
        return False
    try:
        if not (run / "launch.json").exists() and not (run / "refused.json").exists():
            message = f"the start of launch {run.name} was cut off"
            _write(run / "refused.json", {"error": "cut-off", "message": message})
    finally:
        os.close(claim)
    return True


def _detach(keep: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) > 2 and int(entry.name) != keep:
            with contextlib.suppress(OSError):
                os.close(int(entry.name))
    os.chdir("/")


def _hold(spec: dict[str, Any], run: Path, claim: int, umask: int) -> None:
    # A rank that lost its parent may signal the new one, and that is us.
    for signum in _DEFAULTED:
        signal.signal(signum, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # waited for with sigtimedwait
    lock = None
    try:
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot adopt orphans (prctl)")
        lock = _take_gpus(spec, run) if spec["gpus"] else None
        leader, record = _spawn(spec, run, umask)
    except (Refused, OSError, ValueError) as err:
        _free(lock)  # before refused.json: whoever reads that may start the next server
        with contextlib.suppress(OSError):
            _write(run / "refused.json", {"error": getattr(err, "kind", "system"), "message": str(err)})
        return
    fcntl.flock(claim, fcntl.LOCK_SH)
    code = _watch(run, leader, record)
    _free(lock)  # before exit.json, for the same reason
    _retry_write(run / "exit.json", {"exit_code": code, "time": time.time()})


def _free(lock: int | None) -> None:
    if lock is not None:
        os.ftruncate(lock, 0)
        os.close(lock)


def _take_gpus(spec: dict[str, Any], run: Path) -> int:
    lock = _lock(Path(spec["lock"]))
    if lock is None:
        owner: dict[str, Any] = {}
        _until(lambda: bool(owner.update(_load(Path(spec["lock"])) or {}) or owner), _OWNER_LIMIT_S)
        who = "{owner} on {host}, launch {launch}, since {time}".format_map({**dict.fromkeys(_OWNER, "?"), **owner})
        raise Refused("locked", f"the GPUs are held by {who}")
    for other in run.parent.iterdir():
        if other == run or (other / "exit.json").exists() or (other / "refused.json").exists():
            continue
        if not (_load(other / "launch.json") or {}).get("gpus", True):
            continue
        left, _ = living(other)
        if left:
            pids = ", ".join(str(proc.pid) for proc in left[:8])
            raise Refused("alive", f"processes of launch {other.name} still live: {pids}")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    values = (spec["owner"], socket.gethostname(), spec["launch"], now)
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(dict(zip(_OWNER, values))).encode(), 0)  # noqa: B905 strict= is 3.10
    return lock


def _spawn(spec: dict[str, Any], run: Path, umask: int) -> tuple[Proc, dict[str, Any]]:
    """Start the leader in a session of its own; its record is written before its program runs.

    Nobody lives unrecorded.
    """
    argv, env = [_text(word) for word in spec["argv"]], dict(os.environb)
    for name in spec["unset"]:
        env.pop(_text(name), None)
    mark = f"{spec['launch']}:{os.urandom(8).hex()}"
    ours = {"SPT_NOENV": "1", "TUNEBOT_LAUNCH_ID": spec["launch"], _MARK: mark}
    env.update({_text(name): _text(value) for name, value in {**spec["env"], **ours}.items()})
    box, order = None, spec["container"]
    if order is not None:
        names = dict.fromkeys([*order["env"], *spec["env"], *ours, *spec["unset"]])
        argv = [*map(_text, containers.words_before(order, run, spec["launch"], mark, list(names))), *argv]
        box = containers.box_of(order, mark, {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()})
    log = os.open(run / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    gate, go = os.pipe()
    failure, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        _become(argv, env, log, gate, fail, umask)
    os.close(gate)
    os.close(fail)
    leader, me = find(pid), find(os.getpid())
    if leader is None or me is None:
        raise Refused("system", "the server's process was killed before its program ran")
    told, holder = _plain([leader, me])
    asked = {"port": spec["port"], "gpus": spec["gpus"], "log_inode": os.fstat(log).st_ino}
    now = {"holder": holder, "boot_id": boot_id(), "mark": mark, "time": time.time()}
    record = {**told, **asked, **now, "container": box}
    _write(run / "launch.json", record)
    os.close(log)
    os.write(go, b"g")
    os.close(go)
    with os.fdopen(failure, "rb") as pipe:
        error = pipe.read()
    if error:
        program = spec["argv"][0] if order is None else os.fsdecode(argv[0])
        raise Refused("program", f"cannot start {program}: {error.decode(errors='replace')}")
    return leader, record


def _text(word: str) -> bytes:
    home = str(Path.home())
    return (home + word[1:] if word.startswith("~/") else word).encode("utf-8", "surrogateescape")


def _become(argv: list[bytes], env: dict[bytes, bytes], log: int, gate: int, fail: int, umask: int) -> None:
    try:
        os.setsid()
        os.dup2(log, 1)
        os.dup2(log, 2)
        for signum in _DEFAULTED:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.umask(umask)
        os.chdir(Path.home())
        if os.read(gate, 1):  # nothing comes where the holder was killed before it could record us
            os.execvpe(argv[0], argv, env)
    except (OSError, ValueError, IndexError) as err:
        os.write(fail, (getattr(err, "strerror", None) or str(err)).encode())
    finally:
        os._exit(127)


def _watch(run: Path, leader: Proc, record: dict[str, Any]) -> int | None:
    """Record and reap until nothing is left. Returns the leader's exit code: -9 where SIGKILL ended it.

    That of a client of Docker says nothing while its container lives.
    """
    me, code, began = os.getpid(), None, time.monotonic()
    seen = {(leader.pid, leader.start_ticks)}
    while True:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # no child is left; as orphans become our children, no descendant is
                if _over(run, record, code):
                    return code
                break
            if pid == 0:
                break
            if pid == leader.pid and code is None:
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                if record["container"] is None:
                    _retry_write(run / "leader.json", {"exit_code": code, "time": time.time()})
        looked = time.monotonic()
        contained: list[Proc] = []
        with contextlib.suppress(containers.Unsure):
            contained = _contained(run, record)
        procs = snapshot()
        seeds = [proc.pid for proc in procs.values() if proc.ppid == me] + [proc.pid for proc in contained]
        _record(run, members(procs, seeds, me), seen)
        cost = time.monotonic() - looked
        # On a host with thousands of processes the look itself costs: at most a twentieth of a core.
        poll = _EARLY_POLL_S if looked - began < _EARLY_S else _POLL_S
        signal.sigtimedwait({signal.SIGCHLD}, max(poll, 20 * cost))
        time.sleep(min(cost, _EARLY_POLL_S))  # hundreds of dying orphans are one wake-up


def _record(run: Path, procs: list[Proc], seen: set[tuple[int, int]]) -> None:
    new = [proc for proc in procs if (proc.pid, proc.start_ticks) not in seen]
    if not new:
        return
    lines = "".join(json.dumps({"pid": proc.pid, "start_ticks": proc.start_ticks}) + "\n" for proc in new)
    with contextlib.suppress(OSError), (run / "processes.jsonl").open("a") as file:  # a full disk: at the next look
        file.write(lines)
        file.flush()
        seen.update((proc.pid, proc.start_ticks) for proc in new)


def _retry_write(path: Path, value: dict[str, Any]) -> None:
    end = time.monotonic() + _EXIT_WRITE_LIMIT_S
    while True:
        try:
            return _write(path, value)
        except FileNotFoundError:  # somebody removed the run dir
            return None
        except OSError:  # a full disk may get room
            if time.monotonic() > end:
                return None
            time.sleep(1)


# --- the other verbs ---


def status(run: Path) -> dict[str, Any]:
    """State (running, exited, gone), the leader's exit code once it is dead, and what lives of the launch.

    The state is unknown where only Docker could say and gives no answer.
    """
    gone: dict[str, Any] = {"state": "gone", "leader_exit_code": None, "processes": []}
    if not run.is_dir():
        return gone
    if not (run / "launch.json").exists() and not _settled(run):
        return {**gone, "state": "running"}  # it is being started right now
    if (run / "refused.json").exists():
        return gone
    try:
        left, held = ([], False) if (run / "exit.json").exists() else living(run)
    except containers.Unsure:
        return {**gone, "state": "unknown"}
    # Read after the look: a holder writes exit.json and goes.
    ended, leader = _load(run / "exit.json"), _load(run / "leader.json")
    code = (ended or leader or {}).get("exit_code")
    if ended is None and (left or held):
        return {"state": "running", "leader_exit_code": code, "processes": _plain(left)}
    return {**gone, "state": "gone" if ended is None and leader is None else "exited", "leader_exit_code": code}


def stop(run: Path, grace_s: float) -> dict[str, Any]:
    """TERM to the leader and at most `grace_s` seconds for it, then KILL to all, until all are gone or 20 s passed.

    Where the leader is dead already the others are killed at once. A launch that was never started never will be.
    """
    with contextlib.suppress(FileExistsError):
        run.mkdir(mode=0o700, parents=True)
        (run / "claim").touch(mode=0o600)
    _until(lambda: _settled(run), KILL_LIMIT_S)
    record = _load(run / "launch.json")
    living(run)  # before relatives die
    box = None
    if record is not None and record["boot_id"] == boot_id():
        leader, box = Proc(record["pid"], 0, 0, record["start_ticks"]), record.get("container")
        if box is not None and containers.stop(box, grace_s):
            _until(lambda: not _lives(leader), _CLIENT_LIMIT_S)  # it ends with its container, and knows the exit code
        send(leader, signal.SIGTERM)
        _until(lambda: not _lives(leader), grace_s)
    left: list[Proc] = []

    def killed() -> bool:
        if box is not None:
            containers.kill(box)
        left[:], held = living(run)
        for proc in left:
            send(proc, signal.SIGKILL)
        return not left and not held and not living(run)[0] and (box is None or containers.over(box))

    _until(killed, KILL_LIMIT_S)
    left[:], _ = living(run)
    return {"exit_code": status(run)["leader_exit_code"], "left": _plain(left)}


def _until(done: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _lives(proc: Proc) -> bool:
    now = find(proc.pid)
    return now is not None and now.start_ticks == proc.start_ticks


def _plain(procs: list[Proc]) -> list[dict[str, int]]:
    return [{"pid": proc.pid, "start_ticks": proc.start_ticks} for proc in procs]


def log_of(run: Path) -> Path:
    """Where the launch's output is: a file that was renamed is still the one that is written to."""
    log, record = run / "server.log", _load(run / "launch.json")
    inode = None if record is None else record["log_inode"]
    with contextlib.suppress(FileNotFoundError):
        if inode in (None, log.stat().st_ino):
            return log
    for path in run.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == inode:
                return path
    return log


def owners(run: Path, port: int) -> dict[str, Any]:
    """Which processes of the launch listen on the TCP port, and whether anybody else does."""
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    listening.add(f"socket:[{fields[9]}]")
    if not listening:
        return {"ours": [], "others": False}
    left, _ = living(run)
    ours = {proc.pid: _sockets(proc.pid) & listening for proc in left}
    record = _load(run / "launch.json")
    if record is not None and record.get("container"):  # its processes are root's as a rule, and hidden from us
        for first in _contained(run, record):
            if not os.access(f"/proc/{first.pid}/fd", os.R_OK):
                ours[first.pid] = containers.sockets(record["container"]) & listening
    others = listening.difference(*ours.values())  # whosoever they are: their files may be hidden from us
    return {"ours": [pid for pid, sockets in ours.items() if sockets], "others": bool(others)}


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(entry))  # noqa: PTH115 Path.readlink is 3.9
    return found


def main(argv: list[str]) -> int:
    """Run one verb and print its answer."""
    verb, rest = argv[0], argv[1:]
    try:
        if verb == "start":
            answer = start(json.loads(sys.stdin.buffer.read()))
        elif verb == "outcome":
            answer = outcome(Path(rest[0]))
        elif verb == "status":
            answer = status(Path(rest[0]))
        elif verb == "stop":
            answer = stop(Path(rest[0]), float(rest[1]))
        elif verb == "owners":
            answer = owners(Path(rest[0]), int(rest[1]))
        else:
            raise Refused("system", f"no verb {verb!r}")
    except (Refused, OSError, ValueError) as err:
        answer = {"error": getattr(err, "kind", "system"), "message": str(err)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
