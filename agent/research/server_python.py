"""The Python that runs the server: which it is, and questions that it answers with no GPU in sight."""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agent.core.model import LaunchConfig
from agent.ports import CommandResult
from agent.research.common import ResearchError, launch_env
from agent.research.sources import Sources

ANSWER = "TUNEBOT-ANSWER "
"""What a script prints ahead of its answer: modules print what they like while they are imported."""

LIMIT_S = 60.0


async def ask_python(
    sources: Sources, config: LaunchConfig, python: str, script: str, words: Sequence[str], doing: str
) -> Mapping[str, object]:
    """The JSON object that a script prints behind ANSWER, run as the server would be, with no GPU in sight.

    Raises ResearchError where it does not come, TargetUnusable as the target does.
    """
    result = await sources.target.run(
        [python, "-c", script, *words], timeout_s=LIMIT_S, env=launch_env(config), background=True, hide_gpus=True
    )
    if result.timed_out:
        raise ResearchError(f"{doing} did not end within {LIMIT_S:.0f} s", "timeout")
    said = _answer(result)
    if said is None:
        raise ResearchError(f"{python} ended with code {result.exit_code} while {doing}")
    return said


def _answer(result: CommandResult) -> Mapping[str, object] | None:
    for line in reversed(result.output.decode("utf-8", "replace").splitlines()):
        if line.startswith(ANSWER):
            try:
                said = json.loads(line.removeprefix(ANSWER))
            except ValueError:
                return None
            return said if isinstance(said, dict) else None
    return None


def python_of(given: str | None, command: tuple[str, ...]) -> str:
    """The Python that runs the server, as far as its command tells."""
    if given:
        return given
    program = PurePosixPath(command[0])
    if program.name.startswith("python"):
        return command[0]
    return str(program.with_name("python3")) if "/" in command[0] else "python3"
