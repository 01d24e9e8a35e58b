"""A stand-in for Docker: a daemon that alone starts containers, in no tree of the client's, and the client's commands.

    standin_docker.py daemon FOLDER        standin_docker.py FOLDER run|ps|inspect|stop|kill|rm|exec|image ...

A container is a session of processes that dies with its first one, on the network of this machine. The client copies
its output, passes TERM on, and may be killed without the container noticing.
"""

import contextlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

IMAGES = ("server:1",)


class Daemon:
    """The containers by id, in the order in which they were made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.containers: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()

    def create(self, labels: dict[str, str], argv: list[str], env: dict[str, str]) -> str:
        name = os.urandom(32).hex()
        self.containers[name] = {"labels": labels, "argv": argv, "env": env, "state": "created", "code": None, "pid": 0}
        return name

    def start(self, name: str) -> None:
        with self.lock:
            box = self.containers[name]
            env = {"PATH": os.environ["PATH"], **box["env"]}
            with (self.folder / f"{name}.log").open("wb") as log:
                process = subprocess.Popen(
                    box["argv"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            box.update(state="running", pid=process.pid)
        threading.Thread(target=self._follow, args=(box, process), daemon=True).start()

    def _follow(self, box: dict[str, Any], process: "subprocess.Popen[bytes]") -> None:
        code = process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        box.update(state="exited", code=code if code >= 0 else 128 - code, pid=0)

    def wait(self, name: str) -> int:
        while self.containers[name]["code"] is None:
            time.sleep(0.02)
        return int(self.containers[name]["code"])

    def signal(self, name: str, signum: int) -> None:
        if pid := self.containers[name]["pid"]:
            os.kill(pid, signum)

    def stop(self, name: str, seconds: float) -> None:
        self.signal(name, signal.SIGTERM)
        end = time.monotonic() + seconds
        while self.containers[name]["pid"] and time.monotonic() < end:
            time.sleep(0.02)
        self.signal(name, signal.SIGKILL)
        self.wait(name)

    def remove(self, name: str) -> bool:
        with self.lock:
            return self.containers[name]["state"] != "running" and bool(self.containers.pop(name))

    def listed(self) -> dict[str, dict[str, Any]]:
        return self.containers


def serve(folder: Path) -> None:
    daemon = Daemon(folder)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if line := self.rfile.readline():  # else the client was killed
                verb, arguments = json.loads(line)
                self.wfile.write(json.dumps(getattr(daemon, verb)(*arguments)).encode())

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True
        request_queue_size = 100

    Server(str(folder / "socket"), Handler).serve_forever()


def call(folder: Path, verb: str, *arguments: object) -> Any:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(str(folder / "socket"))
        except OSError:
            sys.exit("Cannot connect to the Docker daemon. Is the docker daemon running?")
        sock.sendall(json.dumps([verb, arguments]).encode() + b"\n")
        with sock.makefile("rb") as file:
            return json.loads(file.read())


def run(folder: Path, words: list[str]) -> int:
    labels: dict[str, str] = {}
    env: dict[str, str] = {}
    cidfile = ""
    while words[0].startswith("-"):
        option = words.pop(0)
        if option == "--rm":
            continue
        value = words.pop(0)
        if option == "--label":
            labels[value.partition("=")[0]] = value.partition("=")[2]
        elif option == "--env":
            env.update({value: os.environ[value]} if value in os.environ else {})
        elif option == "--cidfile":
            cidfile = value
    image, *argv = words
    if image not in IMAGES:
        sys.stderr.write(f"Unable to find image '{image}' locally\n")
        return 125
    name = call(folder, "create", labels, argv, env)
    Path(cidfile).write_text(name)
    if "DIES_BEFORE_START" in env:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.signal(signal.SIGTERM, lambda *_: call(folder, "signal", name, signal.SIGTERM))
    call(folder, "start", name)
    with (folder / f"{name}.log").open("rb") as log:
        code = None
        while code is None:
            code = call(folder, "listed")[name]["code"]  # before the last look into the log
            while data := log.read(1 << 16):
                os.write(1, data)
            time.sleep(0.02)
    call(folder, "remove", name)
    return int(code)


def client(folder: Path, verb: str, words: list[str]) -> int:
    if verb == "run":
        return run(folder, words)
    if verb == "image":
        return 0 if words[-1] in IMAGES else 1
    listed = call(folder, "listed")
    if verb == "ps":
        wanted = words[words.index("--filter") + 1].partition("=")[2] if "--filter" in words else ""
        for name, box in listed.items():
            if not wanted or box["labels"].get(wanted.partition("=")[0]) == wanted.partition("=")[2]:
                print(name if "--quiet" in words else f"{name} {box['state']}")
        return 0
    if verb == "exec":
        name, argv = words[2], words[3:]
        return subprocess.run(argv).returncode if listed[name]["pid"] else 1
    seconds = float(words[words.index("-t") + 1]) if "-t" in words else 0.0
    for name in [word for word in words if word in listed]:
        if verb == "inspect":
            print(name, listed[name]["state"], listed[name]["pid"])
        elif verb == "stop":
            call(folder, "stop", name, seconds)
        elif verb == "kill":
            call(folder, "signal", name, signal.SIGKILL)
        elif verb == "rm" and not call(folder, "remove", name):
            return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "daemon":
        serve(Path(sys.argv[2]))
    sys.exit(client(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
