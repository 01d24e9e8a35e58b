"""The machine around the server: nvidia-smi, venv and pip, the source trees, the world model."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.sim.host import SimHost, create_host, open_host, world_file
from agent.sim.ledger import read_ledger
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
    assert command("nvidia-smi", "topo", "-p2p", "r").stdout.startswith("\tGPU0\tGPU1\nGPU0\t X \tOK\n")
    topology = command("nvidia-smi", "topo", "-m").stdout
    assert topology.startswith("\t\x1b[4mGPU0\tGPU1\tCPU Affinity") and "GPU0\t X \tNODE\t" in topology
    assert "release 12.8" in command("nvcc", "--version").stdout


def test_nvlink_world(tmp_path: Path) -> None:
    host = create_host(tmp_path, world_file("nvlink"))
    answer = subprocess.run(["nvidia-smi", "topo", "-m"], env=host.full_env(), capture_output=True, text=True)
    assert "GPU1\tNV18\t X \tNV18\tNV18" in answer.stdout
    there = subprocess.run(["python3", "-c", "import deep_ep"], env=host.full_env(), capture_output=True)
    assert there.returncode == 0
    assert open_host(tmp_path) == host


def test_the_state_of_the_driver_is_where_a_host_shows_it(make_host: Callable[..., SimHost]) -> None:
    forced = make_host(gpu={"driver": "590.1", "driver_options": {"RegistryDwords": '"ForceP2P=0x11"'}})

    def cat(host: SimHost, *paths: str) -> str:
        return subprocess.run(["cat", *paths], env=host.full_env(), capture_output=True, text=True).stdout

    assert 'RegistryDwords: "ForceP2P=0x11"\n' in cat(forced, "/proc/driver/nvidia/params")
    assert "EnableResizableBar: 0\n" in cat(forced, "/proc/driver/nvidia/params")
    assert "590.1" in cat(forced, "/proc/driver/nvidia/version") and "iommu=pt" in cat(forced, "/proc/cmdline")
    assert 'RegistryDwords: ""\n' in cat(make_host(), "/proc/driver/nvidia/params")
    assert cat(forced, "/etc/hostname") == Path("/etc/hostname").read_text(), "other files are what they are"


def test_versions_are_where_a_host_shows_them(make_host: Callable[..., SimHost]) -> None:
    newer = {"version": "0.5.23", "cuda": "13.0", "torch": "2.14.1", "nccl": "2.28.9", "nvcc": "13.0"}
    host = make_host(environments={"default": {}, "new": {**newer, "install": ["sglang==0.5.23"]}}, rules=[])
    for words in (["python3", "-m", "venv", "v"], ["v/bin/pip", "install", "sglang==0.5.23"]):
        subprocess.run(words, env=host.full_env(), cwd=host.home, check=True, capture_output=True)
    code = (
        "import importlib.metadata as m, torch;"
        " print(m.version('sglang'), torch.version.cuda, torch.cuda.nccl.version(),"
        " *[d.version for d in m.distributions() if d.name.startswith('nvidia-nccl')],"
        " 'sm_120' in torch.cuda.get_arch_list())"
    )

    def ask(*words: str) -> str:
        return subprocess.run(words, env=host.full_env(), cwd=host.home, capture_output=True, text=True).stdout.strip()

    assert ask("python3", "-c", code) == "0.5.9 12.8 (2, 27, 5) 2.27.5 True"
    assert ask("v/bin/python", "-c", code) == "0.5.23 13.0 (2, 28, 9) 2.28.9 True"
    assert "release 12.8" in ask("nvcc", "--version")
    assert "release 13.0" in ask(f"v/{SITE}/nvidia/cu13/bin/nvcc", "--version")
    assert (host.home / "v" / SITE / "nvidia_nccl_cu13-2.28.9.dist-info").is_dir()


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


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"name": "x", "sped": 1}, "unknown key 'sped'"),
        ({}, "missing key 'name'"),
        ({"name": "x", "phases": {"loading": 1}}, "unknown key 'loading'"),
        ({"name": "x", "gpu": {"coutn": 1}}, "world.gpu: unknown key 'coutn'"),
        ({"name": "x", "rules": [{"when": {}, "then": {"fail": {"phase": "nowhere"}}}]}, "unknown phase 'nowhere'"),
        ({"name": "x", "rules": [{"when": {"environment": "y"}, "then": {}}]}, "unknown environment 'y'"),
        ({"name": "x", "rules": [{"when": {}, "then": {"load": {"lod": 2}}}]}, "unknown phase 'lod'"),
        ({"name": "x", "speed": "fast"}, "world.speed: expected float"),
        (
            {"name": "x", "step": {"compute_ms": 1, "allreduces": 2, "row_bytes": 3, "kernels": {}}},
            "missing key 'nccl'",
        ),
        ({"name": "x", "laws": ["of nature"]}, "there are none called 'of nature'"),
    ],
)
def test_world_is_strict(data: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_world(read_world(data))


def test_by_hand(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "agent.sim.host", str(tmp_path), "--world", "small"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert f"HOME={tmp_path}" in answer.stdout and "sglang.launch_server" in answer.stdout
