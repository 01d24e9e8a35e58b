"""What every kind of background task shares: its result, its failure, and how outside text becomes evidence."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal

from agent.core.model import Finding, LaunchConfig, Quote, TaskStatus
from agent.redact import redact_line
from agent.text import decode, one_line

Result = tuple[TaskStatus, Finding]
Redact = Callable[[str], str]
Progress = Callable[[str], None]

QUOTE_LIMIT = 300
"""Characters of a quoted line that are kept."""


class ResearchError(Exception):
    """A task cannot be carried out. The message is one sentence for the board."""

    def __init__(self, message: str, status: Literal["failed", "timeout"] = "failed") -> None:
        super().__init__(message)
        self.status: Literal["failed", "timeout"] = status


def quote_text(line: bytes, redact: Redact) -> str:
    """A line from outside as evidence. Secrets leave before it is cut, so that no part of one stays behind."""
    return clip(redact_line(redact, decode(line)).rstrip())


def numbered(path: str, rows: Iterable[bytes], redact: Redact, first: int = 1) -> tuple[Quote, ...]:
    """Lines that follow each other as evidence; `first` is the number of the first one."""
    return tuple(
        Quote(path=path, line=number, text=quote_text(row.expandtabs(4), redact))
        for number, row in enumerate(rows, first)
    )


def clip(text: str) -> str:
    """At most QUOTE_LIMIT characters of a text that is already clean and redacted."""
    return text if len(text) <= QUOTE_LIMIT else text[: QUOTE_LIMIT - 1] + "…"


def sentence(text: str, redact: Redact) -> str:
    """One redacted line for the board."""
    return one_line(redact(text))


def base_name(path: str) -> str:
    """The file name of `sglang:srt/server_args.py`, for lines that have little room."""
    return PurePosixPath(path.partition(":")[2] or path).name or path


def launch_env(config: LaunchConfig, gpu: bool = False) -> Mapping[str, str]:
    """The variables that the launch would add; its choice of GPUs only for a command that may see them."""
    hidden = () if gpu else ("CUDA_VISIBLE_DEVICES",)
    return {name: value for name, value in config.env.items() if value is not None and name not in hidden}
