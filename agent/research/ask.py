"""A question to an LLM, which may look at sources and launches with tools that only read. It carries out nothing.

The loop is our own: turns, tool calls, bytes, tokens, dollars and seconds are bounded, and every end is a sentence.
"""

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from agent.core import events as ev
from agent.core.model import Answer, Finding, Task
from agent.research import answer_form
from agent.research.answer_form import AnswerForm
from agent.research.answered import finding_of, first_sentence, said
from agent.research.budget import QUESTION, SESSION, Amount, Meter, Usage, limits
from agent.research.common import ResearchError, Result, sentence
from agent.research.llm import DEFAULT_MODEL, Dialogue, Model, OutOfTime, Turn, connect
from agent.research.prompt import system_prompt
from agent.research.proposals import CheckFlags
from agent.research.tool import Scope, problems
from agent.research.toolbox import ANSWER_NOW, TOOLS, Tell, Toolbox

NEEDS_KEY = "needs a key: set ANTHROPIC_API_KEY"

_MAX_TURNS = 24
_ENDS = {
    None: "the LLM's answer broke off",
    "refusal": "the LLM declined to answer",
    "max_tokens": "unusable answer: it was cut off before its end",
    "model_context_window_exceeded": "what was read does not fit into the LLM's context",
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts questions to one model, within limits for each question and for all of a session.

    Time in the tools is not counted: a measurement may suspend them, and each has a limit of its own.
    """

    model: Model
    question: Amount = QUESTION
    session: Amount = SESSION

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Asker | None":
        """The asker that the environment allows: None without a key, unless the server is on this machine.

        TUNEBOT_MODEL, TUNEBOT_EFFORT and ANTHROPIC_BASE_URL choose who answers; limits as `budget.limits`, which raises
        UserError, with a key or without.
        """
        question, session = limits(environ)
        told = {name: environ.get(name, "").strip() for name in ("TUNEBOT_MODEL", "TUNEBOT_EFFORT")}
        base_url = environ.get("ANTHROPIC_BASE_URL", "").strip()
        keyless = not any(environ.get(name, "").strip() for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
        if keyless and not _is_here(base_url):
            return None
        model = Model(told["TUNEBOT_MODEL"] or DEFAULT_MODEL, told["TUNEBOT_EFFORT"], base_url, keyless)
        return cls(model, question, session)

    async def answer(self, scope: Scope, task: Task, question: str, check: CheckFlags, tell: Tell) -> Result:
        """Ask, and let the LLM read until it answers; `check` judges the flags that it recommends.

        Raises ResearchError with the reason where there is no answer, TargetUnusable as the target does.
        """
        meter = Meter(self.model.name, self.question, self.session, lambda: _others(scope, task.id))
        toolbox = Toolbox(scope, meter, task.id, tell)
        counted = "" if meter.prices_known else ", whose prices are not known: money is not counted"
        tell(ev.TaskProgressed(at=time.time(), task=task.id, action=f"asking {self.model.name}{counted}"))
        async with await connect(self.model) as client:
            tools = [*(tool.as_json() for tool in TOOLS.values()), answer_form.as_json()]
            dialogue = Dialogue(client, self.model, system_prompt(scope, toolbox.mark), tools)
            redact = scope.sources.redact
            known = f"\n\nThe session so far:\n{toolbox.as_data(redact(task.board))}" if task.board else ""
            dialogue.say([_text(redact(question) + known)])

            def heard() -> None:
                tell(ev.LlmSpent(at=time.time(), task=task.id, spent=meter.spent))

            end = await _converse(dialogue, toolbox, meter, heard)
        if isinstance(end, AnswerForm):
            return "done", await finding_of(end, scope, toolbox.seen, check)
        words = said(end.words, redact)
        so_far = first_sentence(words) or (f"it looked at {toolbox.looked_at}" if toolbox.seen else "nothing")
        summary = sentence(f"stopped: {end.why}; what was found so far: {so_far}", redact)
        finding = Finding(summary=summary, answer=Answer(text=words) if words else None)
        return "timeout" if meter.seconds_left <= 0 else "done", finding


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A dialogue that a budget ended: why, and what the LLM said last."""

    why: str
    words: str


async def _converse(
    dialogue: Dialogue, toolbox: Toolbox, meter: Meter, heard: Callable[[], None]
) -> AnswerForm | _Stopped:
    words, asked_again = "", False
    for left in reversed(range(_MAX_TURNS)):
        if why := meter.no_room(meter.turns(1, dialogue.next_usage)):
            return _Stopped(why, words)
        seconds = meter.seconds_left
        try:
            turn = await dialogue.listen(seconds)
        except OutOfTime:
            meter.add_turn(Usage(), seconds)
            continue  # and out at the top
        meter.add_turn(turn.usage, turn.seconds)
        heard()
        words = turn.text or words
        if turn.stop_reason == "pause_turn":
            continue  # what it said so far is in the history; asked again, it goes on
        form = _form_of(turn)
        if isinstance(form, AnswerForm):
            return form
        if form and asked_again:
            raise ResearchError(f"unusable answer: {form}")
        asked_again = asked_again or bool(form)
        dialogue.say(_asked_again(turn, form) if form else [await toolbox.use(call) for call in turn.calls])
        if not meter.bytes_left or left == 1 or meter.no_room(meter.turns(2, dialogue.next_usage)):
            dialogue.say([_text(ANSWER_NOW)])
    return _Stopped(f"it came to no answer in {_MAX_TURNS} turns", words)


def _form_of(turn: Turn) -> AnswerForm | str:
    """The answer, or what is wrong with it; empty where other tools are to be used. Raises ResearchError."""
    if turn.stop_reason not in ("tool_use", "end_turn", "stop_sequence"):
        raise ResearchError(_ENDS.get(turn.stop_reason, f"the LLM ended with {turn.stop_reason}"))
    given = next((call.get("input") for call in turn.calls if call.get("name") == answer_form.NAME), None)
    if given is None:
        return "" if turn.calls else "the tool answer was not called"
    try:
        form = AnswerForm.model_validate(given)
    except ValidationError as error:
        return problems(error)
    return form if form.text.strip() else "its text is empty"


def _asked_again(turn: Turn, wrong: str) -> list[dict[str, Any]]:
    """What is said to a turn without a usable answer: every call wants a result."""
    words = f"This is no answer ({wrong}). Call the tool answer once, with its form filled in."
    results = [
        {"type": "tool_result", "tool_use_id": call.get("id"), "content": words, "is_error": True}
        for call in turn.calls
    ]
    return results or [_text(words)]


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _others(scope: Scope, task: str) -> Amount:
    """What all other questions of the session have used."""
    return reduce(add, (used for name, used in scope.facts().asked.items() if name != task), Amount())


def _is_here(url: str) -> bool:
    """Whether a URL leads to this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
