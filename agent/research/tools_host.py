"""The tools that tell of the machine: its GPUs, and which version of a package the server's Python has."""

from typing import Annotated

from pydantic import Field

from agent.playbook.model import Strict
from agent.ports import TargetUnusable
from agent.research.common import ResearchError
from agent.research.server_python import ANSWER, ask_python, python_of
from agent.research.tool import Reply, Scope, Tool

_USE = (
    "nvidia-smi",
    "--query-gpu=index,memory.used,memory.total,utilization.gpu,power.draw",
    "--format=csv",
)
_SMI_TIMEOUT_S = 10.0
_VERSION = f"""
import json, sys
from importlib.metadata import PackageNotFoundError, distribution
try:
    found = distribution(sys.argv[1])
    said = {{"version": found.version, "requires": found.requires or []}}
except PackageNotFoundError:
    said = {{}}
print()
print("{ANSWER}" + json.dumps(said), flush=True)
"""


class _Nothing(Strict):
    pass


class _Package(Strict):
    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="as pip calls it: flashinfer-python")
    ]


async def _gpus(scope: Scope, given: _Nothing) -> Reply:
    host = scope.host
    rows = [
        f"GPU {gpu.index}: {gpu.name}, SM {gpu.sm_major}.{gpu.sm_minor}, {gpu.memory_mib} MiB, driver {gpu.driver}"
        for gpu in host.gpus
    ]
    if host.cuda:
        rows.append(f"the driver runs CUDA up to {host.cuda}")
    rows += [f"GPU {number} is linked by: {' '.join(links)}" for number, links in enumerate(host.links)]
    note = ""
    try:
        used = await scope.sources.target.run(_USE, timeout_s=_SMI_TIMEOUT_S, background=True)
        rows += used.output.decode("utf-8", "replace").splitlines() if used.exit_code == 0 else []
    except TargetUnusable as error:
        note = str(error)
    if not rows:
        raise ResearchError("no GPU is known")
    return Reply(scope.quotes("gpus", rows), note)


async def _package(scope: Scope, given: _Package) -> Reply:
    python = python_of(None, scope.config.command)
    doing = f"asking for {given.name}"
    said = await ask_python(scope.sources, scope.config, python, _VERSION, [given.name], doing)
    if not said:
        raise ResearchError(f"{python} has no package {given.name}")
    requires = said.get("requires")
    rows = [f"{given.name} {said.get('version')}"]
    rows += [f"requires {each}" for each in requires] if isinstance(requires, list) else []
    return Reply(scope.quotes(f"package:{given.name}", rows))


TOOLS = (
    Tool("gpus", "The GPUs of the machine, how they are linked, and what they do now.", _Nothing, _gpus),
    Tool("package_version", "Which version of a Python package the server would run with.", _Package, _package),
)
