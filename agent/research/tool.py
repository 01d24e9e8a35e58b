"""What a tool of an LLM is: a name, the form of what it is given, and a function that only reads."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError

from agent.core.model import Host, LaunchConfig, Quote
from agent.playbook.model import Strict
from agent.research.common import ResearchError, numbered
from agent.research.facts import Facts
from agent.research.sources import Sources

Word = Annotated[str, Field(min_length=1, max_length=1000)]
"""A text that an LLM gives to a tool."""

SourcePath = Annotated[str, Field(min_length=1, max_length=1000, description="source:relative/path")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the tools of one question may look at: sources, machine, and the launches of this session."""

    sources: Sources
    config: LaunchConfig
    host: Host
    facts: Facts

    def quotes(self, path: str, rows: Iterable[str]) -> tuple[Quote, ...]:
        """Texts as lines that can be cited by `path` and number."""
        return numbered(path, (row.encode("utf-8", "replace") for row in rows), self.sources.redact)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool returned: lines, each with the place that it can be cited by, and a word about what is missing."""

    quotes: tuple[Quote, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """`given` is the model of the input that `run` takes beside the scope.

    `run` raises ResearchError and TargetUnusable with what the LLM is to be told.
    """

    name: str
    description: str
    given: type[Strict]
    run: Callable[[Scope, Any], Awaitable[Reply]]

    def as_json(self) -> dict[str, Any]:
        """The tool as the Messages API takes it."""
        return {"name": self.name, "description": self.description, "input_schema": self.given.model_json_schema()}

    async def use(self, scope: Scope, given: object) -> Reply:
        """Check what was given, and read. Raises ResearchError and TargetUnusable."""
        try:
            checked = self.given.model_validate(given)
        except ValidationError as error:
            raise ResearchError(problems(error)) from error
        return await self.run(scope, checked)


def problems(error: ValidationError) -> str:
    """What is wrong with an input, by field."""
    found = ((".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_url=False))
    return "; ".join(f"{field}: {what}" if field else what for field, what in found)
