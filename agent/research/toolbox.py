"""The tools of one question to an LLM, with its budget: every call is journalled, and all that they return is data."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent.core import events as ev
from agent.ports import TargetUnusable
from agent.research import tools_files, tools_git, tools_host, tools_launch
from agent.research.budget import Meter
from agent.research.common import ResearchError, base_name, sentence
from agent.research.tool import Reply, Scope, Tool
from agent.text import one_line

TOOLS: Mapping[str, Tool] = {
    tool.name: tool for family in (tools_files, tools_git, tools_host, tools_launch) for tool in family.TOOLS
}
_MOST_BYTES = 64 << 10
"""Bytes of the result of one call."""

_ASKED_LIMIT = 450
"""Characters of the input of a call that are journalled; a mark of how many were cut comes on top."""

ANSWER_NOW = "The reading budget is used up: answer now, with what you have read."

Tell = Callable[[ev.TaskProgressed | ev.ToolUsed | ev.LlmSpent], None]


class Toolbox:
    """`seen` is every line that the tools returned: its text, by path and number."""

    def __init__(self, scope: Scope, meter: Meter, task: str, tell: Tell) -> None:
        self.seen: dict[str, dict[int, str]] = {}
        # Text from outside cannot close a mark that it does not know.
        self.mark = f"data-{secrets.token_hex(8)}"
        self._scope, self._meter, self._task, self._tell = scope, meter, task, tell

    @property
    def looked_at(self) -> str:
        """The names of what was looked at, for a sentence."""
        return ", ".join(dict.fromkeys(base_name(path) for path in self.seen))

    def as_data(self, text: str) -> str:
        """A text from outside between the marks that tell an LLM what it is."""
        return f"<{self.mark}>\n{text}\n</{self.mark}>"

    async def use(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one call, as the Messages API takes it."""
        redact = self._scope.sources.redact
        name = one_line(redact(str(call.get("name"))), 40)
        given = json.dumps(call.get("input"), ensure_ascii=False, separators=(",", ":"))
        asked = one_line(redact(given), _ASKED_LIMIT)
        self._tell(ev.TaskProgressed(at=time.time(), task=self._task, action=f"{name} {asked}"))
        text, refused, used = "", ANSWER_NOW, 0
        if room := min(self._meter.bytes_left, _MOST_BYTES):
            try:
                if redact(given) != given:  # it would stand in the argv of a command
                    raise ResearchError("the input has something in it that looks like a secret")
                text, refused = await self._read(name, call.get("input"), room), ""
            except (ResearchError, TargetUnusable) as error:
                refused = sentence(str(error), redact)
            used = len(text.encode("utf-8", "replace"))
            self._meter.add_call(used)
            text = text or self.as_data(refused)
        self._tell(ev.ToolUsed(at=time.time(), task=self._task, tool=name, asked=asked, bytes=used, refused=refused))
        content = text or refused
        return {
            "type": "tool_result", "tool_use_id": call.get("id"), "content": content, "is_error": bool(refused)
        }  # fmt: skip

    async def _read(self, name: str, given: object, room: int) -> str:
        tool = TOOLS.get(name)
        if tool is None:
            raise ResearchError(f"there is no such tool; there are: {', '.join(TOOLS)}")
        return self._text(await tool.use(self._scope, given), room)

    def _text(self, reply: Reply, room: int) -> str:
        """The lines below the path that they are from, as far as there is room; they count as seen."""
        rows: list[str] = []
        # A note may have names from outside in it.
        notes = [self._scope.sources.redact(one_line(reply.note))] if reply.note else []
        path = ""
        for quote in reply.quotes:
            row = f"{quote.line}: {quote.text}"
            room -= len(row.encode("utf-8", "replace")) + 1
            if room < 0:
                notes.append(f"cut off before {quote.path}:{quote.line}")
                break
            if quote.path != path:
                path = quote.path
                rows.append(path)
            rows.append(row)
            self.seen.setdefault(path, {})[quote.line] = quote.text
        return self.as_data("\n".join([*(rows or ["(no lines)"]), *(f"({note})" for note in notes)]))
