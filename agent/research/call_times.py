"""What the calls of a term take on the target: the all-reduce benchmark, run by the server's own Python."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.core.model import CallTimes, Finding, Host, LaunchConfig
from agent.core.terms import brief
from agent.research.common import Progress, ResearchError, Result, launch_env, quote_text, sentence
from agent.research.preflights.model_config import layers_of
from agent.research.preflights.used_gpus import used_gpus
from agent.research.server_python import python_of
from agent.research.sources import Sources
from agent.text import decode

SCRIPT = Path(__file__).parents[1] / "bench" / "allreduce.py"

LIMIT_S = 300.0
"""Importing PyTorch in each process and setting NCCL up takes up to a minute; what hangs is ended then."""

LONGEST_S = 60.0
"""Of one call: more is no time of an all-reduce."""


async def call_times_task(
    sources: Sources, entry: CallTimes, host: Host, config: LaunchConfig, progress: Progress
) -> Result:
    """Measure on the GPUs that the launch would use. Raises ResearchError where that does not come to an end."""
    ranks = len(used_gpus(config, host.gpus))
    if ranks < 2:
        raise ResearchError(f"an all-reduce needs two GPUs; the server uses {ranks}")
    run = entry.run or (python_of(None, config.command),)
    sizes = [str(size) for size in entry.sizes]
    progress(f"timing all-reduces on {ranks} GPUs")
    argv = [*run, "-c", SCRIPT.read_text(), "--ranks", str(ranks), *sizes]
    result = await sources.target.run(argv, timeout_s=LIMIT_S, env=launch_env(config, gpu=True))
    if result.timed_out:
        raise ResearchError(f"all-reduces did not end within {LIMIT_S:.0f} s", "timeout")
    lines = [line for line in result.output.splitlines() if line.strip()]
    if result.exit_code != 0:
        said = quote_text(_cause(lines), sources.redact) or "no output"
        raise ResearchError(f"all-reduces could not be timed (exit {result.exit_code}): {said}")
    # Libraries may have something to say after it.
    found = _seconds(next((line for line in reversed(lines) if line.startswith(b'{"sizes"')), b""), sizes)
    told = ", ".join(f"{size} bytes {brief(seconds)}" for size, seconds in found.items())
    calls, counted = await _count(sources, entry, config)
    summary = sentence(f"{ranks} GPUs: {told}{counted}", sources.redact)
    return "done", Finding(summary=summary, calls_s=found, calls=calls)


async def _count(sources: Sources, entry: CallTimes, config: LaunchConfig) -> tuple[int | None, str]:
    """The calls of a step, and how they were counted. Where the model does not say, what is believed stays."""
    if entry.per_layer is None:
        return None, ""
    try:
        layers = await layers_of(sources, config)
    except ResearchError as error:
        return None, f"; not counted: {error}"
    calls = entry.per_layer * layers
    return calls, f"; {calls} in a step of {layers} layers"


def _cause(lines: Sequence[bytes]) -> bytes:
    """The exception of the process that failed first; without any the last line."""
    errors = (line for line in lines if b"Error" in line and not line.startswith(b" "))
    return next(errors, lines[-1] if lines else b"")


def _seconds(line: bytes, sizes: list[str]) -> Mapping[str, float]:
    """Seconds of a call by size. Raises ResearchError for anything but times of all sizes that were asked for."""
    try:
        told = json.loads(decode(line))["sizes"]
        found = {size: float(told[size]["seconds"]) for size in sizes}
    except (ValueError, KeyError, TypeError) as error:
        raise ResearchError("all-reduces were timed, but what was printed is not the result") from error
    if not all(math.isfinite(seconds) and 0 < seconds < LONGEST_S for seconds in found.values()):
        raise ResearchError("all-reduces were timed, but the times cannot be right")
    return found
