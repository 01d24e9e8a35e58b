"""tunebot's helper on a target over SSH: one process a connection, asked through its stdin, gone with its stdin.

It is sent over the connection and leaves no file behind but the wrapper. Requests are JSON lines. An answer is a line
of the nonce and a JSON object, then `size` bytes; whatever else appears on stdout (an rc file that talks) is noise.
Launches do not depend on it: the wrapper starts them in sessions of their own. Commands do: when stdin ends, or when
nobody has been heard for a while, each is killed with its whole tree.

Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.targets import places, wrapper
from agent.targets.environment import changes_of
from agent.targets.jobs import Jobs
from agent.targets.survey import survey

SILENCE_S = 60.0
"""After so long without a word from the other side it is gone, though the link may not have noticed."""

_CONNECT_LIMIT_S = 2.0
_PORT_TRIES = 1000
_SIMULATED = ".sim/SIMULATED"


def serve(order: dict[str, Any]) -> None:
    """Answer requests until stdin ends.

    `order` has nonce, workdir, quiet, the wrapper's source, and what `environment.changes_of` takes.
    """
    try:
        helper = _Helper(order)
    except places.Unfit as err:
        head = {"id": 0, "size": 0, "error": "environment", "message": str(err), "hint": err.hint}
        os.write(1, f"{order['nonce']} {json.dumps(head)}\n".encode())
        return
    helper.serve()


class _Helper:
    def __init__(self, order: dict[str, Any]) -> None:
        self._mark = order["nonce"].encode() + b" "
        base = {"HOME": str(Path.home()), **os.environ}
        self._env = {**base, **changes_of(order, base)}
        self._home = Path(self._env["HOME"])
        self._workdir = self._path(order["workdir"])
        self._source = order["wrapper"].encode()
        self._jobs = Jobs(self._env, bool(order["quiet"]))
        self._out = os.dup(1)
        os.dup2(2, 1)  # nothing else may write between answers
        self._writing, self._ending = threading.Lock(), threading.Lock()
        self._heard = time.monotonic()
        self._ports: set[int] = set()
        self._verbs: dict[str, Callable[[dict[str, Any]], Any]] = {
            "ping": lambda order: {},
            "read": lambda order: self._read(self._path(order["path"]), order),
            "log": self._log,
            "exists": lambda order: {"exists": os.path.exists(str(self._path(order["path"])))},  # noqa: PTH110 NULs
            "start": self._start,
            "outcome": lambda order: wrapper.outcome(self._run_dir(order)),
            "stop": lambda order: self._wrapper("stop", str(self._run_dir(order)), str(order["grace_s"])),
            "status": lambda order: wrapper.status(self._run_dir(order)),
            "owners": lambda order: wrapper.owners(self._run_dir(order), int(order["port"])),
            "free_port": lambda order: {"port": self._free_port()},
            "answers": lambda order: {"answers": _answers(int(order["port"]))},
            "survey": lambda order: survey(self._workdir),
        }

    def serve(self) -> None:
        for signum in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, lambda *_: self._end())
        threading.Thread(target=self._watch, daemon=True).start()
        self._send(0, self._hello())
        for line in sys.stdin.buffer:
            self._heard = time.monotonic()
            self._begin(json.loads(line))
        self._end()
        threading.Event().wait()  # until that has ended us

    def _begin(self, order: dict[str, Any]) -> None:
        verb, number = order["verb"], order["id"]
        if verb == "cancel":
            self._jobs.cancel(order["job"])
        elif verb == "quiet":
            self._jobs.quiet(bool(order["on"]))
        elif verb == "close":
            threading.Thread(target=self._close, args=(number,), daemon=True).start()
        elif verb == "run":
            job = self._jobs.add(number, order)  # before its thread runs: the next line may be its cancel
            threading.Thread(target=self._answer, args=(number, lambda _: job.run(), order), daemon=True).start()
        else:
            threading.Thread(target=self._answer, args=(number, self._verbs[verb], order), daemon=True).start()

    def _answer(self, number: int, work: Callable[[dict[str, Any]], Any], order: dict[str, Any]) -> None:
        body = b""
        try:
            head = work(order)
            if isinstance(head, tuple):
                head, body = head
        except (places.Unfit, wrapper.Refused) as err:
            head = {"error": getattr(err, "kind", "system"), "message": str(err), "hint": getattr(err, "hint", "")}
        except (OSError, ValueError) as err:
            words = getattr(err, "strerror", None) or str(err)
            head = {"error": "system", "message": words, "hint": "", "errno": getattr(err, "errno", None)}
        self._send(number, head, body)
        self._jobs.discard(number)  # then it is gone: after the answer, for `close`

    def _send(self, number: int, head: dict[str, Any], body: bytes = b"") -> None:
        line = json.dumps({**head, "id": number, "size": len(body)}).encode()
        data = memoryview(self._mark + line + b"\n" + body)
        try:
            with self._writing:
                while data:
                    data = data[os.write(self._out, data) :]
        except OSError:  # nobody reads any more
            self._end()

    def _hello(self) -> dict[str, Any]:
        simulated = (self._home / _SIMULATED).exists()
        return {"hostname": socket.gethostname(), "home": str(self._home), "simulated": simulated}

    def _watch(self) -> None:
        while time.monotonic() - self._heard < SILENCE_S:
            time.sleep(1.0)
        self._end()

    def _close(self, number: int) -> None:
        self._jobs.close()
        self._send(number, {})

    def _end(self) -> None:
        if self._ending.acquire(blocking=False):
            # In a thread: a signal may have come while this one holds the locks that this needs.
            threading.Thread(target=self._leave).start()

    def _leave(self) -> None:
        self._jobs.close()
        os._exit(0)

    def _read(self, path: Path, order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        return {}, places.read_range(path, int(order["offset"]), int(order["limit"]))

    def _log(self, order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        log = wrapper.log_of(self._run_dir(order))
        data, inode, length = places.read_piece(log, int(order["offset"]), int(order["limit"]))
        return {"inode": inode, "length": length}, data

    def _start(self, order: dict[str, Any]) -> dict[str, Any]:
        spec = {name: order[name] for name in ("launch", "port", "gpus", "owner", "argv", "env", "unset", "container")}
        spec.update(runs=str(self._workdir / "runs"), lock=str(self._workdir / "gpu.lock"))
        return self._wrapper("start", spec=spec)

    def _wrapper(self, *words: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run a verb of the wrapper in a process of its own, which ends in its own time whatever becomes of us."""
        script = places.install_wrapper(self._workdir, self._source)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(script), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._env,
            start_new_session=True,
        )
        output, _ = process.communicate(json.dumps(spec).encode())
        try:
            answer = json.loads(output)
        except ValueError:
            what = output.decode("utf-8", "replace").strip()[-200:]
            return {"error": "system", "message": f"the wrapper's {words[0]} failed: {what}", "hint": ""}
        return dict(answer)

    def _free_port(self) -> int:
        for _ in range(_PORT_TRIES):
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                port: int = sock.getsockname()[1]
            if port not in self._ports:
                self._ports.add(port)
                return port
        raise places.Unfit("no free TCP port", "too many connections are open")

    def _run_dir(self, order: dict[str, Any]) -> Path:
        return self._workdir / "runs" / str(order["launch"])

    def _path(self, path: str) -> Path:
        return self._home / (str(self._home) + path[1:] if path.startswith("~/") else path)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), _CONNECT_LIMIT_S) as probe:
            # A port that nobody listens on may happen to be connected to itself.
            return bool(probe.getsockname() != probe.getpeername())
    except socket.timeout:  # noqa: UP041 they are two before 3.10. A full backlog: something listens
        return True
    except OSError:
        return False
