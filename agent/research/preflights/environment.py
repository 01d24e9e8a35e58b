"""module-importable, python-package, cuda, env: what the server would find around it. No GPU is in sight."""

import re

from agent.core.model import Host, LaunchConfig, PreflightOutcome
from agent.playbook.preflights import CudaCheck, EnvCheck, ModuleImportable, PythonPackage
from agent.research.common import Progress, ResearchError
from agent.research.preflights.reports import Report, in_range
from agent.research.server_python import ANSWER, ask_python, python_of
from agent.research.sources import Sources

_IMPORT = f"""
import importlib, json, sys
try:
    importlib.import_module(sys.argv[1])
    said = {{"ok": True}}
except BaseException as error:
    said = {{"type": type(error).__name__, "import": isinstance(error, ImportError),
            "missing": getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None,
            "message": (str(error).strip().splitlines() or [""])[-1]}}
print()
print("{ANSWER}" + json.dumps(said), flush=True)
"""
_PACKAGE = f"""
import importlib.metadata, json, sys
try:
    version = importlib.metadata.version(sys.argv[1])
except importlib.metadata.PackageNotFoundError:
    version = None
print()
print("{ANSWER}" + json.dumps({{"version": version}}), flush=True)
"""
# The compiler is looked for where FlashInfer and torch look; torch is not imported, which takes seconds.
CUDA_SCRIPT = f"""
import importlib.util, json, os, re, shutil, subprocess, sys
home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
nvcc = os.path.join(home, "bin", "nvcc") if home else shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
release, torch = None, None
try:
    text = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, timeout=30).stdout.decode("utf-8", "replace")
    release = re.search("release ([0-9.]+)", text)
except (OSError, subprocess.SubprocessError):
    pass
try:
    spec = importlib.util.find_spec("torch")
    with open(os.path.join(spec.submodule_search_locations[0], "version.py")) as file:
        torch = re.search("^cuda\\\\b.*=.*?([0-9]+[.][0-9]+)", file.read(), re.M)
except (OSError, ValueError, AttributeError, IndexError, TypeError):
    pass
print()
said = {{"nvcc": release and release[1], "path": nvcc, "torch": torch and torch[1]}}
print("{ANSWER}" + json.dumps(said), flush=True)
"""
_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


async def check_import(sources: Sources, check: ModuleImportable, config: LaunchConfig, progress: Progress) -> Report:
    """Try the import. Raises ResearchError where the answer does not come, TargetUnusable as the target does."""
    module = check.module
    if not _MODULE.fullmatch(module):
        raise ResearchError(f"{module} is not the name of a module")
    python = python_of(check.python, config.command)
    progress(f"importing {module}")
    said = await ask_python(sources, config, python, _IMPORT, [module], f"importing {module}")
    message = f"{said.get('type')}: {said.get('message')}"
    if said.get("ok") is True:
        return Report("fine", f"{module} imports in {python}")
    missing = said.get("missing")
    if isinstance(missing, str) and f"{module}.".startswith(f"{missing}."):
        return Report(check.otherwise, f"{module} is not installed for {python}")
    # Without a GPU a healthy module may refuse as well: only an ImportError speaks of the installation alone.
    if said.get("import") is not True and any(word in message.lower() for word in ("cuda", "gpu", "nvidia", "driver")):
        return Report("unknown", f"{module} does not import without a GPU: {message}")
    return Report(check.otherwise, f"{module} does not import: {message}")


async def check_package(sources: Sources, check: PythonPackage, config: LaunchConfig, progress: Progress) -> Report:
    """Raises as `check_import`."""
    name = check.name
    if not _PROJECT.fullmatch(name):
        raise ResearchError(f"{name} is not the name of a package")
    python = python_of(check.python, config.command)
    progress(f"asking for the version of {name}")
    said = await ask_python(sources, config, python, _PACKAGE, [name], f"asking for {name}")
    version = said.get("version")
    if not isinstance(version, str):
        return Report(check.otherwise, f"{name} is not installed for {python}")
    if check.version and not in_range(version, check.version):
        return Report(check.otherwise, f"{name} is {version}, not {check.version}")
    return Report("fine", f"{name} is {version}")


async def check_cuda(
    sources: Sources, check: CudaCheck, host: Host, config: LaunchConfig, progress: Progress
) -> Report:
    """Raises as `check_import`."""
    said: dict[str, object] = {"driver": host.cuda}
    if check.nvcc or check.torch:
        progress("asking for the versions of CUDA")
        said |= await ask_python(sources, config, python_of(None, config.command), CUDA_SCRIPT, [], "asking for CUDA")
    told: list[str] = []
    outcome: PreflightOutcome = "fine"
    for name, range_ in (("nvcc", check.nvcc), ("torch", check.torch), ("driver", check.driver)):
        version = said.get(name)
        if range_ is None:
            continue
        if isinstance(version, str) and version:
            held = in_range(version, range_)
            told.append(f"{_SPEAKS[name]} CUDA {version}" + ("" if held else f", not {range_}"))
        elif name == "driver":
            raise ResearchError(f"which CUDA the driver of {host.name} runs is not known")
        else:
            held = False
            told.append(f"{said.get('path')} does not tell a version" if name == "nvcc" else "torch has no CUDA")
        outcome = outcome if held else check.otherwise
    return Report(outcome, "; ".join(told))


_SPEAKS = {"nvcc": "nvcc is of", "torch": "torch is built for", "driver": "the driver runs up to"}


def check_env(check: EnvCheck, config: LaunchConfig) -> Report:
    """Looks at the variables that the launch would add."""
    value = config.env.get(check.name)
    shown = f"{check.name} is {value}" if value is not None else f"{check.name} is not set"
    if value is not None and value in check.not_in:
        reason = check.why or "the experiment's check excludes that"
    elif check.one_of and value not in check.one_of:
        reason = check.why or f"it must be {' or '.join(check.one_of)}"
    else:
        return Report("fine", shown)
    return Report(check.otherwise, f"{shown}: {reason}")
