"""The machine around the server: nvidia-smi, venv and pip, the source trees, the world model."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.sim.failures import CHAINS, HEAD, line_of
from agent.sim.host import SimHost, create_host, open_host, world_file
from agent.sim.ledger import read_ledger
from agent.sim.rules import outcome_of
from agent.sim.venvs import SITE
from agent.sim.world import parse_world, read_world
from tests.sim.conftest import Server, wait_for

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_nvidia_smi_follows_the_ranks(host: SimHost, port: int, command: Command) -> None:
    query = ["nvidia-smi", "--query-gpu=index,memory.used,compute_cap,utilization.gpu", "--format=csv,noheader,nounits"]
    assert command(*query).stdout == "0, 0, 12.0, 0\n1, 0, 12.0, 0\n"
    server = Server(host, port).ready()
    rows = [line.split(", ") for line in command(*query).stdout.splitlines()]
    assert [int(row[1]) for row in rows] == [int(49.5 * 1024) + 4] * 2
    apps = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"]
    uuid, pid, used = command(*apps).stdout.splitlines()[0].split(", ")
    assert uuid.startswith("GPU-") and int(used) == int(49.5 * 1024)
    assert "scheduler_TP0" in Path(f"/proc/{pid}/cmdline").read_text()
    assert "sglang::scheduler_TP1" in command("nvidia-smi").stdout
    server.process.kill()
    server.process.wait()
    wait_for(lambda: command(*apps).stdout == "")
    assert command(*query).stdout == "0, 0, 12.0, 0\n1, 0, 12.0, 0\n"


def test_nvidia_smi_formats(command: Command) -> None:
    units = command("nvidia-smi", "--query-gpu=name,memory.total,driver_version,power.draw", "--format=csv").stdout
    assert units.splitlines()[0] == "name, memory.total [MiB], driver_version, power.draw [W]"
    assert ", 97887 MiB, 580.95.05, 32.00 W" in units.splitlines()[1]
    assert command("nvidia-smi", "--query-gpu=nonsense", "--format=csv").returncode == 2
    topology = command("nvidia-smi", "topo", "-m").stdout
    assert topology.startswith("\t\x1b[4mGPU0\tGPU1\tCPU Affinity") and "GPU0\t X \tNODE\t" in topology
    assert "release 12.8" in command("nvcc", "--version").stdout


def test_nvlink_world(tmp_path: Path) -> None:
    world = {"name": "hopper", "gpu": {"count": 4, "compute_cap": "9.0"}, "topology": {"nvlink": 18}}
    host = create_host(tmp_path, world)
    answer = subprocess.run(["nvidia-smi", "topo", "-m"], env=host.full_env(), capture_output=True, text=True)
    assert "GPU1\tNV18\t X \tNV18\tNV18" in answer.stdout
    assert open_host(tmp_path) == host


def test_packages_and_unit_tests_run_in_the_environment(host: SimHost, command: Command) -> None:
    quiet = command("python3", "-c", "import sglang, flashinfer")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    code = "import sglang, sys; print(sglang.__version__, sglang.__file__, sys.executable, sep='\\n')"
    words = command("python3", "-c", code).stdout.splitlines()
    assert words == ["0.5.9", f"{host.home}/venv/{SITE}/sglang/__init__.py", f"{host.home}/venv/bin/python3"]
    missing = command("python3", "-c", "import deep_ep")
    assert missing.returncode == 1 and "No module named 'deep_ep'" in missing.stderr
    torch = command("python3", "-c", "import torch; print(torch.cuda.get_device_capability(), torch.version.cuda)")
    assert torch.stdout == "(12, 0) 12.8\n"
    tests = command("python3", "-m", "unittest", "sglang.test.test_allreduce")
    assert tests.returncode == 0 and "OK (skipped=1)" in tests.stderr
    assert "Version: 0.5.9" in command(f"{host.home}/venv/bin/pip", "show", "sglang").stdout
    assert "torch==2.9.1" in command("python3", "-m", "pip", "list").stdout
    served = command("sglang", "serve", "--model-path", "m", "--tpp", "2")
    assert served.returncode == 2 and "unrecognized arguments: --tpp 2" in served.stderr
    assert (host.home / ".sim" / "SIMULATED").exists()


def test_venv_and_pip_make_the_second_environment(host: SimHost, port: int, command: Command) -> None:
    folder = f"{host.home}/venvs/cu130"
    assert command("python3", "-m", "venv", folder).returncode == 0
    empty = command(f"{folder}/bin/python", "-m", "sglang.launch_server")
    assert empty.returncode == 1 and "No module named" in empty.stderr
    wrong = command(f"{folder}/bin/pip", "install", "deep_ep")
    assert wrong.returncode == 1 and "No matching distribution found for deep_ep" in wrong.stderr
    done = command(f"{folder}/bin/pip", "install", "sglang==0.5.23")
    assert done.returncode == 0 and "Successfully installed sglang-0.5.23" in done.stdout
    assert Path(f"{folder}/bin/sglang").exists()
    record = next(r for r in read_ledger(host.ledger) if r["kind"] == "pip" and r["code"] == 0)
    assert record["t"] - record["start"] >= 80 / 800
    python = f"{folder}/bin/python"
    old = Server(host, port, "--cuda-graph-max-bs", "8", python=python)
    assert old.process.wait(10) == 2 and "ambiguous option: --cuda-graph-max-bs could match" in old.log
    log = Server(host, port, "--cuda-graph-max-bs-decode", "8", python=python).ready().log
    for text in (
        "Init parallel begin.",
        "Memory baseline taken.",
        "Capture target decode CUDA graph begin. backend=full",
    ):
        assert f" TP0] {text}" in log
    assert "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 100000" in log


def test_what_research_finds_in_the_trees(tmp_path: Path) -> None:
    site = create_host(tmp_path, world_file("story")).home / "venv" / SITE
    table = (site / "sglang/srt/distributed/device_communicators/all_reduce_utils.py").read_text()
    assert "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES = {\n    9: {" in table and "    12: {" not in table
    assert "supported_major_versions=[9, 10]" in (site / "flashinfer/jit/comm.py").read_text()
    arguments = (site / "sglang/srt/server_args.py").read_text()
    assert 'if self.moe_a2a_backend == "flashinfer":' in arguments and "class ServerArgs" in arguments
    assert (tmp_path / "sglang/python/sglang/srt/server_args.py").exists()
    assert (tmp_path / "models/Kimi-K2.5/config.json").exists()


def test_frames_of_the_shipped_worlds_are_in_their_trees(tmp_path: Path) -> None:
    host = create_host(tmp_path, world_file("story"))
    frames = {*HEAD, *(frame for chain in CHAINS.values() for frame in chain)}
    for rule in host.world.rules:
        frames |= set(rule.then.fail.frames) if rule.then.fail else set()
    lost = [frame for frame in frames if line_of(host.home / "venv" / SITE / frame[0], frame[2]) == 0]
    assert lost == []


ARGS: dict[str, Any] = {"disable_custom_all_reduce": True, "ep_size": 1, "moe_a2a_backend": "none"}


@pytest.mark.parametrize(
    ("flags", "env", "environment", "tok_s"),
    [
        ({}, {}, "default", 89.5),
        ({"speculative_algorithm": "EAGLE3"}, {}, "default", 54.1),
        ({"disable_custom_all_reduce": False}, {}, "default", 89.5),
        ({"disable_custom_all_reduce": False}, {"SGLANG_FORCE_PCIE_CUSTOM_ALL_REDUCE": "1"}, "default", 38.0),
        ({}, {"NCCL_ALGO": "allreduce:tree"}, "default", 82.0),
        ({"ep_size": 8}, {}, "default", 101.2),
        ({}, {}, "cuda13", 94.0),
        ({"enable_torch_symm_mem": True}, {}, "cuda13", 108.0),
        ({"flashinfer_allreduce_fusion_backend": "trtllm"}, {}, "cuda13", 112.0),
        ({}, {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}, "cuda13", 126.0),
    ],
)
def test_story_rates(flags: dict[str, Any], env: dict[str, str], environment: str, tok_s: float) -> None:
    world = parse_world(read_world(world_file("story")))
    outcome = outcome_of(world, {**ARGS, **flags}, env, environment)
    assert outcome.tok_s == pytest.approx(tok_s, rel=1e-4) and outcome.fail is None


@pytest.mark.parametrize(
    ("flags", "env", "exception", "phase"),
    [
        ({"enable_torch_symm_mem": True}, {}, "KeyError", "dist-init"),
        ({"enable_flashinfer_allreduce_fusion": True}, {}, "RuntimeError", "graph-capture"),
        ({}, {"NCCL_ALGO": "Tree"}, "RuntimeError", "graph-capture"),
        ({"moe_a2a_backend": "deepep"}, {}, "ImportError", "load-weights"),
        ({"moe_a2a_backend": "flashinfer"}, {}, "torch.OutOfMemoryError", "graph-capture"),
    ],
)
def test_story_failures(flags: dict[str, Any], env: dict[str, str], exception: str, phase: str) -> None:
    world = parse_world(read_world(world_file("story")))
    fail = outcome_of(world, {**ARGS, **flags}, env, "default").fail
    assert fail is not None and (fail.exception, fail.phase) == (exception, phase)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"name": "x", "sped": 1}, "unknown key 'sped'"),
        ({}, "missing key 'name'"),
        ({"name": "x", "phases": {"loading": 1}}, "unknown key 'loading'"),
        ({"name": "x", "gpu": {"coutn": 1}}, "world.gpu: unknown key 'coutn'"),
        ({"name": "x", "rules": [{"when": {}, "then": {"fail": {"phase": "nowhere"}}}]}, "unknown phase 'nowhere'"),
        ({"name": "x", "rules": [{"when": {"environment": "y"}, "then": {}}]}, "unknown environment 'y'"),
        ({"name": "x", "speed": "fast"}, "world.speed: expected float"),
    ],
)
def test_world_is_strict(data: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_world(data)


def test_by_hand(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "agent.sim.host", str(tmp_path), "--world", "small"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert f"HOME={tmp_path}" in answer.stdout and "sglang.launch_server" in answer.stdout
