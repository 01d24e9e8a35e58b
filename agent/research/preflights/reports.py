"""What every check shares: its result, versions in a range, and facts of the host in its texts."""

import re
from dataclasses import dataclass

from agent.core.model import Host, PreflightOutcome, Quote
from agent.playbook.versions import satisfies
from agent.research.common import ResearchError
from agent.text import one_line

_TEMPLATE = re.compile(r"\{(gpu\.[a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found: its outcome, one sentence, and the lines that show it."""

    outcome: PreflightOutcome
    summary: str
    quotes: tuple[Quote, ...] = ()


def in_range(version: str, spec: str) -> bool:
    """Whether a version that somebody printed lies in a range. Raises ResearchError where it is none."""
    try:
        return satisfies(version, spec)
    except ValueError as error:
        raise ResearchError(one_line(str(error))) from error


def gib(size: float) -> str:
    """Bytes for people."""
    return f"{size / (1 << 30):.1f} GiB"


def fill(text: str, host: Host) -> str:
    """The text with `{gpu.sm_major}` and the like filled in from the host.

    Raises ResearchError where the host does not say, or where its GPUs differ.
    """
    return _TEMPLATE.sub(lambda match: _fact(match[1], host), text)


def _fact(name: str, host: Host) -> str:
    if not host.gpus:
        raise ResearchError(f"{name} is not known: no GPU of {host.name} was found")
    values = {
        "gpu.sm_major": {str(gpu.sm_major) for gpu in host.gpus},
        "gpu.sm_minor": {str(gpu.sm_minor) for gpu in host.gpus},
        "gpu.sm": {f"{gpu.sm_major}{gpu.sm_minor}" for gpu in host.gpus},
        "gpu.name": {gpu.name for gpu in host.gpus},
        "gpu.count": {str(len(host.gpus))},
    }.get(name)
    if values is None:
        raise ResearchError(f"{name} is not a fact of a host")
    if len(values) > 1:
        raise ResearchError(f"{name} is not the same on all GPUs of {host.name}")
    return values.pop()
