"""Preflights of the host and of the server's Python: on this machine and over SSH to it, with real processes."""

import http.server
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent.core.model import Finding, LaunchConfig
from agent.playbook.preflight_entries import PreflightEntry
from agent.redact import Redactor
from agent.research.common import ResearchError
from agent.research.preflight import preflight
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from tests.flags.trees import simulated, written
from tests.targets.kit import PYTHON, Place, Placed, serve, until

from .conftest import BLACKWELLS, TABLES


@pytest.fixture(params=["local", "ssh"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Placed]:
    """A host with its own home and PATH."""
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    place = Place(
        root=tmp_path,
        work=tmp_path / "work",
        env={},
        sshd=request.getfixturevalue("sshd") if request.param == "ssh" else None,
    )
    tool(place, "python3", f'exec {PYTHON[0]} "$@"')
    made = place.target()
    yield made
    await made.close()


def tool(place: Place, name: str, script: str) -> None:
    path = place.tools / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def look(target: Placed, entry: dict[str, Any], **changes: Any) -> Finding:
    """What a check of a playbook says; unknown where it cannot tell."""
    config = LaunchConfig(
        kind="sglang",
        command=("python3", "-m", "sglang"),
        args=changes.pop("args", {}),
        env={},
        source={"sglang": "~/sglang"},
        version=None,
        load_timeout_s=60.0,
    )
    adapter: TypeAdapter[PreflightEntry] = TypeAdapter(PreflightEntry)
    sources = Sources(target, config.source, Redactor({}))
    host = replace(BLACKWELLS, **changes)
    try:
        return await preflight(
            sources, adapter.validate_python(entry), host, config, FlagResolver().table, lambda _: None
        )
    except ResearchError as error:
        return Finding(summary=str(error), outcome="unknown")


async def test_the_source_over_any_link(target: Placed) -> None:
    tree = target.place.home / "sglang"
    tree.mkdir()
    (tree / "tables.py").write_text(TABLES)
    (tree / "use.py").write_text("def f(c):\n  return TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES[c]\n")
    table = {"in": "sglang:tables.py", "table": "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES", "key": "{gpu.sm_major}"}
    finding = await look(target, {"table-has-key": table})
    assert finding.outcome == "fails"
    assert finding.summary.endswith("only 9, 10: KeyError: 12 at use.py:2")


async def test_the_flags_of_a_source_over_any_link(target: Placed) -> None:
    root = written(simulated("0.5.23"), target.place.home / "sglang")
    finding = await look(target, {"flag-known": {}}, args={"tp": "8", "cuda-graph-max-bs": "128"})
    assert finding.outcome == "fails"
    assert finding.summary.startswith("'cuda-graph-max-bs' is short for several flags of SGLang 0.5.23")
    file = root / "srt" / "arg_groups" / "fields" / "exec_.py"
    file.write_text(file.read_text().replace("cuda_graph_max_bs_prefill:", "graph_max_bs_prefill:"))
    finding = await look(target, {"flag-known": {}}, args={"tp": "8", "cuda-graph-max-bs": "128"})
    assert (finding.outcome, finding.summary) == ("fine", "SGLang 0.5.23 knows every flag")


async def test_packages_of_the_servers_python(target: Placed) -> None:
    finding = await look(target, {"python-package": {"name": "pytest", "version": ">=9"}})
    assert finding.outcome == "fine", finding.summary
    finding = await look(target, {"python-package": {"name": "pytest", "version": "<2"}})
    assert finding.outcome == "fails"
    assert finding.summary.endswith("not <2")
    finding = await look(target, {"python-package": {"name": "flashinfer-python"}})
    assert (finding.outcome, finding.summary) == ("fails", "flashinfer-python is not installed for python3")
    finding = await look(target, {"python-package": {"name": "--help"}})
    assert (finding.outcome, finding.summary) == ("unknown", "--help is not the name of a package")


async def test_versions_of_cuda(target: Placed) -> None:
    site = target.place.home / "site" / "torch"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("raise RuntimeError('nobody may import this')\n")
    (site / "version.py").write_text("__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\nhip = None\n")
    tool(target.place, "python3", f'PYTHONPATH={site.parent} exec {PYTHON[0]} "$@"')
    tool(target.place, "nvcc", "echo Copyright 2005-2025; echo 'Cuda compilation tools, release 12.8, V12.8.93'")
    finding = await look(target, {"cuda": {"nvcc": ">=12.8", "torch": ">=12.8", "driver": ">=13.0"}}, cuda="13.0")
    assert finding.outcome == "fine", finding.summary
    assert finding.summary == "nvcc is of CUDA 12.8; torch is built for CUDA 12.8; the driver runs up to CUDA 13.0"
    finding = await look(target, {"cuda": {"nvcc": ">=12.9"}})
    assert (finding.outcome, finding.summary) == ("fails", "nvcc is of CUDA 12.8, not >=12.9")
    finding = await look(target, {"cuda": {"driver": ">=13.0"}})
    assert (finding.outcome, finding.summary) == ("unknown", "which CUDA the driver of gpu8 runs is not known")
    (site / "version.py").write_text("cuda: Optional[str] = None\nhip = '7.0'\n")
    finding = await look(target, {"cuda": {"torch": ">=12.8"}})
    assert (finding.outcome, finding.summary) == ("fails", "torch has no CUDA")


async def test_versions_that_commands_print(target: Placed) -> None:
    tool(target.place, "gcc", "echo 'gcc (Debian 12.2.0-14+deb12u1) 12.2.0'; echo 'Copyright (C) 2022'")
    run = {"run": ["gcc", "--version"]}
    finding = await look(target, {"command-version": {**run, "version": ">=11"}})
    assert (finding.outcome, finding.summary) == ("fine", "gcc is 12.2.0")
    finding = await look(target, {"command-version": {**run, "version": ">=13", "otherwise": "no-effect"}})
    assert (finding.outcome, finding.summary) == ("no-effect", "gcc is 12.2.0, not >=13")
    finding = await look(target, {"command-version": {**run, "version": ">=11", "after": "clang "}})
    assert finding.summary == "gcc ended with code 0 and printed no version behind 'clang '"
    finding = await look(target, {"command-version": {**run, "version": ">=11", "after": "deb12u1) "}})
    assert finding.outcome == "fine"


async def test_paths_and_room(target: Placed) -> None:
    finding = await look(target, {"path": {"exists": "~/bin-of-nobody"}})
    assert (finding.outcome, finding.summary) == ("fails", "~/bin-of-nobody does not exist")
    assert (await look(target, {"path": {"exists": "~/"}})).outcome == "fine"
    assert (await look(target, {"disk-free": {"path": "~/not/yet", "at_least": "1 MB"}})).outcome == "fine"
    finding = await look(target, {"disk-free": {"at_least": "900000TB"}})
    assert finding.outcome == "fails"
    assert " GiB are free at /" in finding.summary


LISTENS = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
time.sleep(600)
"""


async def test_a_port(target: Placed) -> None:
    port = await target.free_port()
    assert (await look(target, {"port-free": {"port": port}})).outcome == "fine"
    assert (await look(target, {"port-free": {}})).summary == "the flags name no port: a free one is chosen"
    with closing(socket.create_server(("127.0.0.1", port))):
        finding = await look(target, {"port-free": {}}, args={"port": str(port)})
        assert (finding.outcome, finding.summary) == ("fails", f"somebody else listens on port {port}")
    await serve(target, LISTENS, str(port))
    await until(lambda: _answers(target, port))
    finding = await look(target, {"port-free": {"port": port}})
    assert (finding.outcome, finding.summary) == ("fine", f"only a server of ours listens on port {port}")
    await target.stop("l1", 0.0)


async def _answers(target: Placed, port: int) -> bool:
    return await target.port_answers(port)


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response({"/ok": 200, "/away": 302}.get(self.path, 503))
        self.send_header("Location", "/ok")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_pages(target: Placed, pages: str) -> None:
    assert (await look(target, {"http": {"get": f"{pages}/ok"}})).outcome == "fine"
    finding = await look(target, {"http": {"get": f"{pages}/no"}})
    assert (finding.outcome, finding.summary) == ("fails", f"{pages}/no answers 503, not 200")
    assert (await look(target, {"http": {"get": f"{pages}/no", "status": 503}})).outcome == "fine"
    assert (await look(target, {"http": {"get": f"{pages}/away", "status": 302}})).outcome == "fine"
    port = await target.free_port()
    finding = await look(target, {"http": {"get": f"http://127.0.0.1:{port}/"}})
    assert finding.outcome == "fails"
    assert "does not answer: [Errno 111] Connection refused" in finding.summary


async def test_memory_that_somebody_else_holds(target: Placed) -> None:
    await serve(target, "import time; print('ready', flush=True); time.sleep(600)")
    (mine,) = (await target.survey())["launches"][0]["pids"][:1]
    smi(target.place, f"GPU-aa, {mine}, ours, 90000", used=90000)
    finding = await look(target, {"gpu": {"memory_free": "90GiB"}}, gpus=BLACKWELLS.gpus[:1])
    assert (finding.outcome, finding.summary) == ("fine", "90.0 GiB of each of 1 GPU can be had")
    smi(target.place, "GPU-aa, 1, theirs, 60000", used=60000)
    finding = await look(target, {"gpu": {"memory_free": "90GiB"}}, gpus=BLACKWELLS.gpus[:1])
    assert finding.outcome == "fails"
    assert finding.summary.startswith(
        "GPU 0 has 37.0 GiB for us, not 90.0 GiB: 58.6 GiB of GPU 0 held by pid 1 (theirs"
    )
    smi(target.place, "", used=60000)
    finding = await look(target, {"gpu": {"memory_free": "90GiB"}}, gpus=BLACKWELLS.gpus[:1])
    assert (finding.outcome, finding.summary) == (
        "unknown",
        "whose the GPU memory is cannot be told while a launch runs",
    )
    await target.stop("l1", 0.0)


def smi(place: Place, apps: str, used: int) -> None:
    """Put a nvidia-smi in place that knows one GPU."""
    answers = f'case "$1" in --query-compute*) printf "{apps}\\n" ;; *) echo "0, GPU-aa, {used}" ;; esac'
    tool(place, "nvidia-smi", answers)
