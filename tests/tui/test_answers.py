"""An LLM's answer on the screen: each claim says whether its quote was found, never that it is true."""

from dataclasses import replace

from agent.core import events as ev
from agent.core.model import Answer, Claim, Finding, Spent
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.views.tasks import transcript
from tests.core.conftest import playbook, started
from tui.widgets.transcript import draw_transcript

CLAIM = Claim(text="It needs a runner.", path="sglang:a.py", line=7, quote="assert runner == 'x'", found=True)
ANSWER = Answer(
    text="Yes.",
    claims=(CLAIM, replace(CLAIM, text="It is [bold]fast[/].", found=False)),
    risks=("It may not fit.",),
    confidence="low",
)


def test_claims_risks_and_costs_are_shown_as_plain_text() -> None:
    state = initial(started(playbook({"id": "base", "research": [{"ask": "what next?"}]})))
    while (decision := next_decision(state)) is not None:
        state, _ = reduce(state, decision)
    spent = Spent(calls=3, read_bytes=10, input_tokens=1234, output_tokens=56, cost_usd=0.25)
    state, _ = reduce(state, ev.LlmSpent(at=1.0, task="base/1", spent=spent))
    found = Finding(summary="yes", answer=ANSWER)
    state, _ = reduce(state, ev.TaskFinished(at=1.0, task="base/1", status="done", finding=found))
    text = draw_transcript(transcript(state, "base/1", 2.0), 100).plain
    assert "✔ It needs a runner." in text and "quote found: sglang:a.py:7" in text
    assert "? It is [bold]fast[/]." in text and "quote not found" in text
    assert "with low confidence" in text and "! It may not fit." in text
    assert "3 tool calls, 1,234 + 56 tokens, $0.25" in text
    assert "proved" not in text
