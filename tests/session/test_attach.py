"""`baseline: attach`: somebody else's server is measured and never stopped."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.state import State
from agent.run import Options, open_session
from agent.sim.host import create_host, world_file
from agent.sim.ledger import alive_pids
from tests.session.kit import parsed, run, small_playbook


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[tuple[int, "subprocess.Popen[bytes]", Path]]:
    """A server that tunebot did not start: its port, its process, its host's ledger."""
    host = create_host(tmp_path / "foreign", world_file("small"))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [f"{host.home}/venv/bin/python3", "-m", "sglang.launch_server", "--model-path", "m", "--tp", "2"]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        env=host.full_env(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    yield port, process, host.ledger
    process.kill()
    process.wait()


def playbook(port: int, *more: dict[str, Any], **args: Any) -> dict[str, Any]:
    book = small_playbook({"id": "base"}, *more, target="local")
    book["experiments"][0]["baseline"] = "attach"
    book["server"]["args"] = {"model-path": "m", "tp": 2, "port": port, **args}
    return book


async def listening(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def test_it_is_measured_and_left_alone(foreign: Any, tmp_path: Path) -> None:
    port, process, _ = foreign
    await listening(port)
    session = await run(playbook(port, {"id": "idea", "args": {"ep-size": 2}}), tmp_path)
    assert session.words == {"base": "keep", "idea": "not-reached"}
    assert f"the attached server at port {port} still runs" in session.state.experiments["idea"].reason
    assert len(next(iter(session.state.launches.values())).rounds) == 3
    assert process.poll() is None


async def test_other_flags_than_asked_make_it_invalid(foreign: Any, tmp_path: Path) -> None:
    port, process, _ = foreign
    await listening(port)
    session = await run(playbook(port, **{"load-format": "dummy"}), tmp_path)
    assert session.words == {"base": "invalid"}
    assert "load-format" in session.state.experiments["base"].reason
    assert process.poll() is None


async def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    session = await run(playbook(port), tmp_path)
    assert session.words == {"base": "failed"}
    assert f"nothing listens on port {port}" in session.state.experiments["base"].reason


async def test_at_the_screen_the_next_launch_waits_until_its_owner_stops_it(foreign: Any, tmp_path: Path) -> None:
    port, process, ledger = foreign
    await listening(port)
    book = parsed(playbook(port, {"id": "idea", "server": {"command": ["no-such-server"]}}))
    options = Options(target=None, approved=(), keep=False, logs=tmp_path / "logs", attended=True)
    judged, over = asyncio.Event(), asyncio.Event()

    def listen(before: State, event: ev.Event, after: State) -> None:
        if isinstance(event, ev.VerdictReached):
            judged.set()
        if after.finished:
            over.set()

    async with asyncio.timeout(60), open_session(book, "", options, listen) as (engine, _):
        running = asyncio.create_task(engine.run())
        await judged.wait()
        assert not engine.state.finished
        os.kill(process.pid, 9)
        await over.wait()
        engine.submit(ev.InterruptRequested(at=engine.state.now, keep=False))
        state = await running
    assert state.ending == "completed"
    assert state.experiments["idea"].verdict and state.experiments["idea"].verdict.word == "failed"
    assert alive_pids(ledger) == []
