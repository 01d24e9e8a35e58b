"""One run of one client on the fast server, and what was measured of it."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench_client.clients import HERE, Client, Load, environment, work_folder
from tests.real.setup_peers import vllm_python

SERVER_CORE, CLIENT_CORE = "0", "1"
LIMIT_S = 300.0


class RunError(Exception):
    """A client did not do its load; the message says where its output is."""


@dataclass(frozen=True)
class Run:
    """What one run took. Its key is the client with its version, the load, and which repeat it is.

    `tokens` is what the server sent, warm-up among them. `duration_s` is the load's, as the client reports it;
    `wall_s` and `cpu_s` are those of the whole process tree from its start on. `server_cpu_s` is the server's.
    """

    client: str
    version: str
    kind: str
    requests: int
    concurrency: int
    repeat: int
    tokens: int
    duration_s: float
    wall_s: float
    cpu_s: float
    server_cpu_s: float
    load_1m: float

    @property
    def key(self) -> tuple[str, str, str, int, int, int]:
        """What tells it from the others."""
        return self.client, self.version, self.kind, self.requests, self.concurrency, self.repeat


def line_of(run: Run) -> str:
    """A run as it is kept."""
    return json.dumps(asdict(run)) + "\n"


def runs_of(text: str) -> list[Run]:
    """The runs that were kept; a torn last line is none."""
    return [Run(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextmanager
def fast_server(step_ms: float = 0.0) -> Iterator[str]:
    """The fast server on a core of its own, in the environment that has uvloop; its URL."""
    command = ["taskset", "-c", SERVER_CORE, str(vllm_python()), str(HERE / "server.py"), "--step-ms", str(step_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def meter(url: str) -> tuple[int, float]:
    """Tokens sent and CPU seconds used by the server so far."""
    with urllib.request.urlopen(f"{url}/meter", timeout=30) as answer:
        made = json.load(answer)
    return made["tokens"], made["cpu_s"]


def measure(client: Client, load: Load, kind: str, repeat: int) -> Run:
    """Run a client once. Raises RunError."""
    out = work_folder() / "out" / client.name.replace(" ", "-")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    metered = [sys.executable, str(HERE / "metered.py"), CLIENT_CORE, str(LIMIT_S), str(out / "metered.json")]
    load_1m = os.getloadavg()[0]
    tokens, server_cpu_s = meter(load.url)
    with (out / "stdout").open("wb") as stdout, (out / "stderr").open("wb") as stderr:
        argv = [*metered, *client.argv(load, out)]
        subprocess.run(argv, stdout=stdout, stderr=stderr, cwd=work_folder(), env=environment(), check=True)
    used = json.loads((out / "metered.json").read_text(encoding="utf-8"))
    tokens_after, server_cpu_after_s = meter(load.url)
    if used["exit_code"] not in client.codes:
        raise RunError(f"{client.name} ended with {used['exit_code']}: {_last_line(out)} (see {out})")
    try:
        duration_s = client.duration_s(load, out)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{client.name}: {error} (see {out})") from error
    return Run(
        client=client.name,
        version=client.version,
        kind=kind,
        requests=load.requests,
        concurrency=load.concurrency,
        repeat=repeat,
        tokens=tokens_after - tokens,
        duration_s=duration_s,
        wall_s=used["wall_s"],
        cpu_s=used["cpu_s"],
        server_cpu_s=server_cpu_after_s - server_cpu_s,
        load_1m=load_1m,
    )


def _last_line(out: Path) -> str:
    text = (out / "stderr").read_text(encoding="utf-8", errors="replace") or (out / "stdout").read_text(
        encoding="utf-8", errors="replace"
    )
    return next(iter(text.strip().splitlines()[-1:]), "no output")[:200]
