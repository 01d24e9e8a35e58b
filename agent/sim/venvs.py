"""Python environments of a simulated host: their folders, and the pip that fills them.

An environment is a real venv by hand: a link to this interpreter, a pyvenv.cfg, and a .pth file that adds the
simulated site-packages. `.sim.json` in it says which host and which environment of the world it is.
"""

import json
import re
import shlex
import shutil
import sys
import time
from pathlib import Path

from agent.sim.parts import Environment
from agent.sim.procs import append
from agent.sim.world import World, parse_world

CHECKOUT = Path(__file__).resolve().parents[2]
TREES = Path(__file__).resolve().parent / "trees"
SITE = "lib/python3.12/site-packages"


def interpreter() -> Path:
    """The real interpreter below any venv."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def create_venv(folder: Path, root: Path) -> None:
    """A simulated venv without a server. The calling interpreter runs it, though its folders say Python 3.12."""
    real, version = interpreter(), f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / SITE
    for path in (folder / "bin", site, folder / "lib" / version / "site-packages"):
        path.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", "python3.12"):
        link = folder / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(real)
    (folder / "pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
    paths = f"{site}\n{CHECKOUT}\nimport agent.sim.startup\n"
    (folder / "lib" / version / "site-packages" / "simulated.pth").write_text(paths)
    (folder / ".sim.json").write_text(json.dumps({"root": str(root), "environment": None}))
    (site / "pip").mkdir(exist_ok=True)
    (site / "pip" / "__main__.py").write_text("from agent.sim.venvs import pip\n\npip()\n")
    for name in ("pip", "pip3"):
        write_script(folder / "bin" / name, folder / "bin" / "python3", "-m", "pip")


def write_script(path: Path, *command: str | Path, first: str = "") -> None:
    """Write an executable that becomes `command` with its own arguments added; `first` is shell code ahead of it."""
    path.write_text(f'#!/bin/sh\n{first}exec {shlex.join(map(str, command))} "$@"\n')
    path.chmod(0o755)


def install(folder: Path, name: str, environment: Environment) -> None:
    """Put the server of an environment into a venv."""
    site = folder / SITE
    for tree in ("common", f"sglang-{environment.generation}"):
        for source in sorted((TREES / tree).rglob("*.txt")):
            target = site / source.relative_to(TREES / tree).with_suffix("")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    for package, version in packages(environment).items():
        info = site / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    for module in environment.packages:
        (site / module).mkdir(exist_ok=True)
        (site / module / "__init__.py").touch()
    for package, version in (("sglang", environment.version), ("flashinfer", environment.flashinfer)):
        (site / package / "version.py").write_text(f'__version__ = "{version}"\n')
    if environment.nvcc:
        compiler = site / "nvidia" / f"cu{environment.nvcc.partition('.')[0]}" / "bin"
        compiler.mkdir(parents=True, exist_ok=True)
        write_nvcc(compiler / "nvcc", environment.nvcc)
    site_info = json.loads((folder / ".sim.json").read_text())
    told = {"environment": name, "torch": environment.torch, "cuda": environment.cuda, "nccl": environment.nccl}
    (folder / ".sim.json").write_text(json.dumps(site_info | told))
    write_script(folder / "bin" / "sglang", folder / "bin" / "python3", "-m", "sglang.cli.main")


def write_nvcc(path: Path, version: str) -> None:
    """A compiler of CUDA that only tells its version."""
    text = f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {version}, V{version}.93\n"
    write_script(path, "true", first=f"printf %s {shlex.quote(text)}\n")


def packages(environment: Environment) -> dict[str, str]:
    """What pip lists in an environment: distribution name to version."""
    listed = {
        "sglang": environment.version,
        "flashinfer-python": environment.flashinfer,
        "torch": environment.torch,
        f"nvidia-nccl-cu{environment.cuda.partition('.')[0]}": environment.nccl,
    }
    compiler = {"nvidia-cuda-nvcc": environment.nvcc} if environment.nvcc else {}
    return {**listed, **compiler, **{name.replace("_", "-"): version for name, version in environment.packages.items()}}


def load_site(prefix: Path) -> tuple[Path, str | None, World]:
    """Root of the host, name of the environment and the world of the venv at `prefix`."""
    site = json.loads((prefix / ".sim.json").read_text())
    root = Path(site["root"])
    return root, site["environment"], parse_world(json.loads((root / ".sim" / "world.json").read_text()))


def python_venv() -> None:
    """Entry of `python3 -m venv DIR` on a simulated host; arguments: root of the host, then those of venv."""
    root = Path(sys.argv[1])
    folders = [argument for argument in sys.argv[2:] if not argument.startswith("-")]
    if not folders:
        raise SystemExit(
            "usage: venv [-h] ENV_DIR [ENV_DIR ...]\nvenv: error: the following arguments are required: ENV_DIR"
        )
    began = time.time()
    time.sleep(parse_world(json.loads((root / ".sim" / "world.json").read_text())).seconds("venv"))
    for folder in folders:
        create_venv(Path(folder).absolute(), root)
        append(root / ".sim" / "ledger.jsonl", "venv", start=began, folder=str(Path(folder).absolute()))


def pip() -> None:
    """Entry of pip in a simulated venv."""
    root, _, world = load_site(Path(sys.prefix))
    command, wanted = (sys.argv[1:2] or ["help"])[0], [a for a in sys.argv[2:] if not a.startswith("-")]
    installed = _installed(world)
    if command == "install":
        _pip_install(root, world, wanted)
    elif command in ("list", "freeze"):
        _say("\n".join(f"{package}=={version}" for package, version in sorted(installed.items())))
    elif command == "show":
        found = [package for package in wanted if package.replace("_", "-") in installed]
        _say("---\n".join(f"Name: {item}\nVersion: {installed[item.replace('_', '-')]}\n" for item in found))
        if not found:
            sys.stderr.write(f"WARNING: Package(s) not found: {', '.join(wanted)}\n")
            raise SystemExit(1)
    elif command == "--version":
        _say(f"pip 25.3 from {sys.prefix}/{SITE}/pip (python 3.12)")
    else:
        sys.stderr.write(f'ERROR: unknown command "{command}"\n')
        raise SystemExit(1)


def _installed(world: World) -> dict[str, str]:
    """What pip lists in the environment of this interpreter."""
    name = load_site(Path(sys.prefix))[1]
    return packages(world.environments[name]) if name else {}


def _pip_install(root: Path, world: World, wanted: list[str]) -> None:
    began, ledger = time.time(), root / ".sim" / "ledger.jsonl"
    for requirement in wanted:
        names = [key for key, item in world.environments.items() if requirement in item.install]
        name = re.split("[<>=!~]", requirement)[0]
        if name in ("pip", "setuptools", "wheel", "uv") or (not names and name in _installed(world)):
            _say(f"Requirement already satisfied: {requirement} in ./{SITE}")
            continue
        if not names:
            append(ledger, "pip", start=began, requirement=requirement, code=1)
            sys.stderr.write(
                f"ERROR: Could not find a version that satisfies the requirement {requirement} (from versions: none)\n"
                f"ERROR: No matching distribution found for {requirement}\n"
            )
            raise SystemExit(1)
        _download(world, requirement, world.environments[names[0]])
        install(Path(sys.prefix), names[0], world.environments[names[0]])
        listed = " ".join(f"{key}-{value}" for key, value in packages(world.environments[names[0]]).items())
        _say(f"Successfully installed {listed}")
        append(ledger, "pip", start=began, requirement=requirement, code=0)


def _download(world: World, requirement: str, environment: Environment) -> None:
    listed = packages(environment)
    for package, version in listed.items():
        _say(f"Collecting {requirement if package == 'sglang' else f'{package}=={version}'}")
        _say(f"  Downloading {package.replace('-', '_')}-{version}-py3-none-any.whl")
        time.sleep(world.seconds("pip") / (len(listed) + 1))
    _say(f"Installing collected packages: {', '.join(reversed(listed))}")
    time.sleep(world.seconds("pip") / (len(listed) + 1))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
