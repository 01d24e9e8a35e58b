"""A folder that is a simulated machine: its home, its commands, its Python environments, its ledger.

`python -m agent.sim.host ROOT --world story` creates one and says how to start the server by hand.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.sim import venvs
from agent.sim.facts import driver_options
from agent.sim.parts import Gpu, Model
from agent.sim.world import World, parse_world, read_world

WORLDS = Path(__file__).resolve().parent / "worlds"


@dataclass(frozen=True)
class SimHost:
    """A simulated machine. Commands run with HOME=`home`, PATH=`path`, and `env` in addition."""

    home: Path
    path: str
    env: dict[str, str]
    ledger: Path
    world: World

    def full_env(self) -> dict[str, str]:
        """All environment variables of a command on this host."""
        return {**self.env, "HOME": str(self.home), "PATH": self.path}


def create_host(
    root: Path, world: Path | dict[str, Any], speed: float | None = None, seed: int | None = None
) -> SimHost:
    """Create the machine in `root`, or bring an existing one to this world, keeping its ledger and its venvs.

    `speed` divides every duration of the world but token streaming; `seed` is that of the noise. Both replace what
    the world says. Raises ValueError if the world does not fit the model.
    """
    data = read_world(world)
    data |= {key: value for key, value in (("speed", speed), ("seed", seed)) if value is not None}
    parsed = parse_world(data)
    root = root.absolute()
    state = root / ".sim"
    for folder in (root / "bin", root / "tmp", state / "gpu", state / "busy"):
        folder.mkdir(parents=True, exist_ok=True)
    (state / "world.json").write_text(json.dumps(data))
    (state / "SIMULATED").write_text(f"world {parsed.name}: everything on this machine is simulated\n")
    _write_commands(root, parsed)
    _write_proc(root, parsed.gpu)
    _write_models(root, parsed.models)
    if not (root / "venv").exists():
        name = parsed.default_environment()
        venvs.create_venv(root / "venv", root)
        venvs.install(root / "venv", name, parsed.environments[name])
    checkout = root / "sglang" / "python"
    checkout.parent.mkdir(exist_ok=True)
    if not checkout.exists():
        checkout.symlink_to(root / "venv" / venvs.SITE)
    return _describe(root, parsed)


def open_host(root: Path) -> SimHost:
    """The machine that `create_host` made in `root` before."""
    data: Mapping[str, Any] = json.loads((root / ".sim" / "world.json").read_text())
    return _describe(root.absolute(), parse_world(data))


def world_file(name: str) -> Path:
    """Path of a world that comes with the package, by name."""
    return WORLDS / f"{name}.yaml"


def _describe(root: Path, world: World) -> SimHost:
    path = f"{root / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    env = {"LANG": "C.UTF-8", "TMPDIR": str(root / "tmp")}
    return SimHost(home=root, path=path, env=env, ledger=root / ".sim" / "ledger.jsonl", world=world)


def _write_commands(root: Path, world: World) -> None:
    bin_folder, default = root / "bin", root / "venv" / "bin"
    venvs.write_script(bin_folder / "nvidia-smi", *_python("nvidia_smi", "main"), root)
    make = shlex.join([*map(str, _python("venvs", "python_venv")), str(root)])
    first = f'if [ "$1" = -m ] && [ "$2" = venv ]; then shift 2; exec {make} "$@"; fi\n'
    for name in ("python", "python3", "python3.12"):
        venvs.write_script(bin_folder / name, default / "python3", first=first)
    for name in ("sglang", "pip", "pip3"):
        venvs.write_script(bin_folder / name, default / name)
    venvs.write_nvcc(bin_folder / "nvcc", world.environments[world.default_environment()].cuda)
    mapped = f'case "$1" in /proc/driver/*|/proc/cmdline) set -- {shlex.quote(str(root))}"$1";; esac\n'
    venvs.write_script(bin_folder / "cat", shutil.which("cat") or "/bin/cat", first=mapped)


def _write_proc(root: Path, gpu: Gpu) -> None:
    """What `cat` of this host shows of the kernel: its command line, the driver and its options."""
    driver = root / "proc" / "driver" / "nvidia"
    driver.mkdir(parents=True, exist_ok=True)
    (root / "proc" / "cmdline").write_text("BOOT_IMAGE=/vmlinuz ro iommu=pt\n")
    (driver / "version").write_text(f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {gpu.driver}\n")
    lines = (f"{name}: {value}\n" for name, value in sorted(driver_options(gpu).items()))
    (driver / "params").write_text("".join(lines))


def _python(module: str, function: str) -> list[str | Path]:
    """A command that runs one function of this package, with as few imports as can be."""
    code = (
        f"import sys; sys.path.insert(0, {str(venvs.CHECKOUT)!r}); from agent.sim.{module} import {function} as f; f()"
    )
    return [venvs.interpreter(), "-I", "-S", "-c", code]


def _write_models(root: Path, models: tuple[Model, ...]) -> None:
    for model in models:
        folder = root / model.path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(model.config), indent=2))
        files = [f"model-{n:05d}-of-{model.shards:05d}.safetensors" for n in range(1, model.shards + 1)]
        weights = {f"model.layers.{number}.weight": file for number, file in enumerate(files)}
        index = {"metadata": {"total_size": 0}, "weight_map": weights}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
        for file in files:
            (folder / file).write_bytes(b"")


def main() -> None:
    """Create a host by hand, for debugging."""
    parser = argparse.ArgumentParser(prog="python -m agent.sim.host")
    parser.add_argument("root", type=Path)
    parser.add_argument("--world", default="story", help="name of a shipped world, or a file")
    parser.add_argument("--speed", type=float)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    world = Path(options.world) if options.world.endswith((".yaml", ".yml")) else world_file(options.world)
    host = create_host(options.root, world, options.speed, options.seed)
    words = ["env", *(f"{key}={value}" for key, value in host.full_env().items()), f"{host.home}/venv/bin/python3"]
    sys.stdout.write(shlex.join(words) + " -m sglang.launch_server --model-path m --tp 8\n")


if __name__ == "__main__":
    main()
