"""The two tools that an LLM may use for a question: read and grep, over the same confined sources as a playbook."""

import secrets
from collections.abc import Mapping
from typing import Any

from agent.core.model import Quote
from agent.ports import TargetUnusable
from agent.research.common import Progress, ResearchError, base_name, sentence
from agent.research.grep import search
from agent.research.read import block_start, find, load
from agent.research.sources import Sources

MAX_CALLS = 20
MAX_BYTES = 200_000
"""Bytes of tool results for one question."""

_MAX_LINES = 200
_MAX_HITS = 50
_MAX_PATHS = 10

TOOLS: list[dict[str, Any]] = [
    {
        "name": "read",
        "description": "Lines of a source file: around the first line with a text, or from a line number on.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "source:relative/path"},
                "around": {"type": "string", "description": "show the lines around the first line with this text"},
                "start": {"type": "integer", "description": "or: the first line to show"},
                "lines": {"type": "integer", "description": f"how many lines, at most {_MAX_LINES}; 60 if not given"},
            },
            "required": ["path"],
        },
    },
    {
        "name": "grep",
        "description": "Lines of source files that match an extended regular expression (grep -E).",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "paths": {"type": "array", "items": {"type": "string"}, "description": "source:relative/path, ..."},
            },
            "required": ["pattern", "paths"],
        },
    },
]


class ToolRefused(Exception):
    """A call of a tool that was not carried out; the message goes back to the LLM."""


class AskTools:
    """The tools of one question, with its budget. `seen` is every line that they returned."""

    def __init__(self, sources: Sources, progress: Progress) -> None:
        self.seen: dict[tuple[str, int], str] = {}
        self._sources = sources
        self._progress = progress
        self._calls = 0
        self._bytes = 0
        # File text cannot close a mark that it does not know.
        self._mark = f"file-text-{secrets.token_hex(4)}"

    @property
    def left(self) -> bool:
        """Whether the budget allows another call."""
        return self._calls < MAX_CALLS and self._bytes < MAX_BYTES

    async def call(self, name: str, given: object) -> str:
        """Carry out one call. Raises ToolRefused with what the LLM is to be told."""
        if not self.left:
            raise ToolRefused("the reading budget is used up: answer with what you have read")
        self._calls += 1
        arguments = given if isinstance(given, Mapping) else {}
        try:
            if name == "read":
                quotes, note = await self._read(arguments), ""
            elif name == "grep":
                quotes, note = await self._grep(arguments)
            else:
                raise ToolRefused("there is no such tool: only read and grep")
        except (ResearchError, TargetUnusable) as error:
            raise ToolRefused(sentence(str(error), self._sources.redact)) from error
        return self._result(quotes, note)

    async def _read(self, arguments: Mapping[str, object]) -> tuple[Quote, ...]:
        path = _text(arguments, "path")
        self._progress(sentence(f"reading {base_name(path)}", self._sources.redact))
        count = min(_number(arguments, "lines", 60), _MAX_LINES)
        file = await load(self._sources, path)
        if "around" in arguments:
            first = block_start(await find(self._sources, file, _text(arguments, "around")), count)
        else:
            first = _number(arguments, "start", 1)
        return file.quotes(self._sources, first, count)

    async def _grep(self, arguments: Mapping[str, object]) -> tuple[tuple[Quote, ...], str]:
        pattern = _text(arguments, "pattern")
        paths = arguments.get("paths")
        if not isinstance(paths, list) or not 0 < len(paths) <= _MAX_PATHS:
            raise ToolRefused(f"paths must be a list of 1 to {_MAX_PATHS} texts")
        self._progress(sentence(f"grep {pattern}", self._sources.redact))
        hits = await search(self._sources, pattern, [_as_text(path, "paths") for path in paths], _MAX_HITS)
        notes = ["there are more hits"] if hits.more else []
        if hits.missing:
            notes.append(f"not there: {', '.join(hits.missing)}")
        return hits.quotes, "; ".join(notes)

    def _result(self, quotes: tuple[Quote, ...], note: str) -> str:
        rows: list[str] = []
        for quote in quotes:
            row = f"{quote.path}:{quote.line}: {quote.text}"
            self._bytes += len(row.encode("utf-8", "replace")) + 1
            if self._bytes > MAX_BYTES:
                note = "the reading budget is used up here: answer with what you have read"
                break
            self.seen[quote.path, quote.line] = quote.text
            rows.append(row)
        body = "\n".join(rows) if rows else "(no lines)"
        return f"<{self._mark}>\n{body}\n</{self._mark}>" + (f"\n{note}" if note else "")


def _text(arguments: Mapping[str, object], name: str) -> str:
    return _as_text(arguments.get(name), name)


def _as_text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 1000:
        raise ToolRefused(f"{name} must be a text of 1 to 1000 characters")
    return value


def _number(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ToolRefused(f"{name} must be a whole number from 1")
    return value
