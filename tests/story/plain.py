"""A plain script that tunes as people do by hand: launch, wait for ready, warm up, measure, stop, one after the other.

It knows nothing of tunebot's engine, targets or watch. The load generator is the same, so that the rounds are.
"""

import asyncio
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.bench.client import Server, first_model
from agent.bench.load import run_load
from agent.bench.plan import plan_of, warm_up_plan
from agent.core.model import LaunchConfig
from agent.core.plan import flag_words, planned_configs
from agent.playbook.model import Playbook, Workload
from agent.servers.common import with_address
from agent.sim.host import SimHost
from tests.sim.conftest import free_port

POLL_S = 0.5


def tune(playbook: Playbook, ids: list[str], host: SimHost) -> float:
    """Try the experiments in this order on a host; the seconds that it took."""
    began = time.monotonic()
    specs = {one.id: one for one in playbook.experiments}
    configs = planned_configs(playbook)
    for name in ids:
        for step in specs[name].prepare:
            if not (step.creates and _at_home(step.creates, host).exists()):
                subprocess.run(
                    _words(step.run, host), env=host.full_env(), cwd=host.home, check=True, capture_output=True
                )
        with _serving(configs[name], host) as url:
            for workload in playbook.workloads:
                asyncio.run(_measure(url, workload))
    return time.monotonic() - began


@contextmanager
def _serving(config: LaunchConfig, host: SimHost) -> Iterator[str]:
    """Launch a server and wait until it is ready, by its health; stop it in the end, and wait for that too."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = _words([*config.command, *flag_words(with_address(config.args, port))], host)
    env = host.full_env() | {name: value for name, value in config.env.items() if value is not None}
    process = subprocess.Popen(command, env=env, cwd=host.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not _healthy(url):
        if process.poll() is not None:
            raise RuntimeError(f"exit {process.returncode}: {shlex.join(command)}")
        time.sleep(POLL_S)
    yield url
    process.send_signal(signal.SIGTERM)
    process.wait()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


async def _measure(url: str, workload: Workload) -> None:
    server = Server(url)
    model = await first_model(server)
    await run_load(server, warm_up_plan(workload, model))
    for index in range(workload.rounds):
        await run_load(server, plan_of(workload, model, index))


def _words(words: list[str] | tuple[str, ...], host: SimHost) -> list[str]:
    return [str(_at_home(word, host)) if word.startswith("~/") else word for word in words]


def _at_home(path: str, host: SimHost) -> Path:
    return host.home / path.removeprefix("~/")
