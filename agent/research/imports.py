"""The preflight module-importable: whether the server's own Python can import a module, with no GPU in sight."""

import json
from pathlib import PurePosixPath

from agent.core.model import Finding, LaunchConfig, PreflightOutcome
from agent.playbook.model import ModuleImportable
from agent.ports import CommandResult
from agent.research.common import Progress, ResearchError, launch_env, sentence
from agent.research.sources import Sources

_IMPORT = """
import importlib, json, sys
try:
    importlib.import_module(sys.argv[1])
    said = {"ok": True}
except BaseException as error:
    said = {"type": type(error).__name__, "import": isinstance(error, ImportError),
            "missing": getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None,
            "message": (str(error).strip().splitlines() or [""])[-1]}
print()
print("TUNEBOT-IMPORT " + json.dumps(said), flush=True)
"""
_MARK = "TUNEBOT-IMPORT "
_TIMEOUT_S = 60.0


async def check_import(sources: Sources, check: ModuleImportable, config: LaunchConfig, progress: Progress) -> Finding:
    """Try the import. Raises ResearchError where the answer does not come, TargetUnusable as the target does."""
    module = check.module
    if not all(part.isidentifier() for part in module.split(".")):
        raise ResearchError(f"{module} is not the name of a module")
    python = python_of(check.python, config.command)
    progress(f"importing {module}")
    result = await sources.target.run(
        [python, "-c", _IMPORT, module],
        timeout_s=_TIMEOUT_S,
        env=launch_env(config),
        background=True,
        hide_gpus=True,
    )
    if result.timed_out:
        raise ResearchError(f"importing {module} did not end within {_TIMEOUT_S:.0f} s", "timeout")
    said = _said(result)
    if said is None:
        raise ResearchError(f"{python} ended with code {result.exit_code} while it imported {module}")
    outcome, summary = _judge(said, check, python)
    return Finding(summary=sentence(summary, sources.redact), outcome=outcome)


def python_of(given: str | None, command: tuple[str, ...]) -> str:
    """The Python that runs the server, as far as its command tells."""
    if given:
        return given
    program = PurePosixPath(command[0])
    if program.name.startswith("python"):
        return command[0]
    return str(program.with_name("python3")) if "/" in command[0] else "python3"


def _said(result: CommandResult) -> dict[str, object] | None:
    for line in reversed(result.output.decode("utf-8", "replace").splitlines()):
        if line.startswith(_MARK):
            try:
                said = json.loads(line.removeprefix(_MARK))
            except ValueError:
                return None
            return said if isinstance(said, dict) else None
    return None


def _judge(said: dict[str, object], check: ModuleImportable, python: str) -> tuple[PreflightOutcome, str]:
    module, message = check.module, f"{said.get('type')}: {said.get('message')}"
    if said.get("ok") is True:
        return "fine", f"{module} imports in {python}"
    missing = said.get("missing")
    if isinstance(missing, str) and f"{module}.".startswith(f"{missing}."):
        return check.otherwise, f"{module} is not installed for {python}"
    # Without a GPU a healthy module may refuse as well: only an ImportError speaks of the installation alone.
    if said.get("import") is not True and any(word in message.lower() for word in ("cuda", "gpu", "nvidia", "driver")):
        return "unknown", f"{module} does not import without a GPU: {message}"
    return check.otherwise, f"{module} does not import: {message}"
