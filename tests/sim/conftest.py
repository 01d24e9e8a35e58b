"""A small simulated host and its server, started through the host's own commands."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import alive_pids
from agent.sim.world import read_world

LIMIT_S = 10.0


def wait_for(condition: Callable[[], Any], limit: float = LIMIT_S) -> Any:
    deadline = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {limit} s in vain"
        time.sleep(0.01)
    return found


class Server:
    """One start of the simulated server. Its log is a file, stdout and stderr merged."""

    def __init__(self, host: SimHost, port: int, *flags: str, python: str = "python3", **env: str) -> None:
        self.host = host
        self.port = port
        self.log_path = host.home / f"log-{port}-{time.monotonic_ns()}"
        command = [python, "-m", "sglang.launch_server", "--model-path", "/models/m", "--tp", "2", "--port", str(port)]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, *flags],
                env={**host.full_env(), **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_bytes().decode()

    def status(self, path: str) -> int:
        """HTTP status of a GET; 0 if the port refuses."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def post(self, path: str, data: dict[str, Any]) -> Any:
        return json.loads(self.raw(path, data))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return json.loads(answer.read())

    def raw(self, path: str, data: dict[str, Any]) -> bytes:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(data).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            body: bytes = answer.read()
            return body

    def stream(self, path: str, data: dict[str, Any]) -> list[tuple[float, Any]]:
        """Events of a stream with their arrival (monotonic seconds); the last is the text [DONE]."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps({**data, "stream": True}).encode(),
            {"Content-Type": "application/json"},
        )
        events: list[tuple[float, Any]] = []
        with urllib.request.urlopen(request, timeout=20) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    text = line[6:].strip().decode()
                    events.append((time.monotonic(), text if text == "[DONE]" else json.loads(text)))
        return events

    def ready(self) -> "Server":
        wait_for(lambda: "fired up" in self.log or self.process.poll() is not None)
        assert self.process.poll() is None, self.log
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill_all(host: SimHost) -> None:
    for pid in alive_pids(host.ledger):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive_pids(host.ledger))


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def make_host(tmp_path: Path) -> Iterator[Callable[..., SimHost]]:
    """Makes small hosts; whatever runs on them is killed at the end."""
    hosts: list[SimHost] = []

    def make(**changes: Any) -> SimHost:
        world = {**read_world(world_file("small")), **changes}
        hosts.append(create_host(tmp_path / f"a host {len(hosts)}", world))
        return hosts[-1]

    yield make
    for host in hosts:
        kill_all(host)


@pytest.fixture
def host(make_host: Callable[..., SimHost]) -> SimHost:
    return make_host()


@pytest.fixture
def command(host: SimHost) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command on the host."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=host.full_env(), cwd=host.home, capture_output=True, text=True, timeout=20)

    return run
