"""An LLM's answer on the screen: each claim says whether its quote was found, never that it is true."""

from dataclasses import replace

from agent.core import events as ev
from agent.core.model import Answer, Claim, Finding, Quote, Spent
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import State
from agent.core.views.details import details
from agent.core.views.tasks import transcript
from tests.core.conftest import playbook, started
from tui.widgets.findings import draw_tasks
from tui.widgets.transcript import draw_transcript

CLAIM = Claim(text="It needs a runner.", path="sglang:a.py", line=7, quote="assert runner == 'x'", found=True)
ANSWER = Answer(
    text="Yes, with another runner.\n\n- and [b]more[/]",
    claims=(CLAIM, replace(CLAIM, text="It is [bold]fast[/].", found=False)),
    risks=("It may not fit.",),
    confidence="low",
)


def asked(found: Finding) -> State:
    """A session in which a question of `base` was answered."""
    state = initial(started(playbook({"id": "base", "research": [{"ask": "what next?"}]})))
    while (decision := next_decision(state)) is not None:
        state, _ = reduce(state, decision)
    spent = Spent(calls=3, read_bytes=10, input_tokens=1234, output_tokens=56, cost_usd=0.25)
    state, _ = reduce(state, ev.LlmSpent(at=1.0, task="base/1", spent=spent))
    return reduce(state, ev.TaskFinished(at=1.0, task="base/1", status="done", finding=found))[0]


# The line of the found claim, and the answer's words in older journals.
QUOTES = (Quote(path="sglang:a.py", line=7, text="    assert runner == 'x'"), Quote(path="answer", line=1, text="Yes."))


def test_claims_risks_and_costs_are_shown_as_plain_text() -> None:
    state = asked(Finding(summary="yes", answer=ANSWER, quotes=QUOTES))
    text = draw_transcript(transcript(state, "base/1", 2.0), 100).plain
    assert "\nYes, with another runner.\n\n- and [b]more[/]\n" in text
    assert text.count("assert runner == 'x'") == len(ANSWER.claims)
    assert "✔ It needs a runner." in text and "quote found: sglang:a.py:7" in text
    assert "? It is [bold]fast[/]." in text and "quote not found" in text
    assert "with low confidence" in text and "! It may not fit." in text
    assert "3 tool calls, 1,234 + 56 tokens, $0.25" in text
    assert "proved" not in text


def test_the_page_of_an_experiment_shows_the_same_claims() -> None:
    answer = replace(ANSWER, claims=ANSWER.claims * 4)
    view = details(asked(Finding(summary="yes", answer=answer, quotes=QUOTES)), "base", 2.0)
    text = draw_tasks(view.research, 100).plain
    assert "  yes\n  ✔ It needs a runner.\n    quote found: sglang:a.py:7  assert runner == 'x'\n" in text
    assert "  ? It is [bold]fast[/].\n    quote not found: sglang:a.py:7" in text
    assert text.count("assert runner == 'x'") == 6
    assert text.endswith("2 more claims in the research view")


def test_what_was_said_before_a_limit_is_shown_in_full() -> None:
    state = asked(Finding(summary="stopped: half way", answer=Answer(text="Half way.\nAnd more.")))
    text = draw_transcript(transcript(state, "base/1", 2.0), 100).plain
    assert "\nstopped: half way\n\nHalf way.\nAnd more.\n" in text
    assert "confidence" not in text


def test_the_sentence_that_stands_for_an_answer_is_not_said_twice() -> None:
    state = asked(Finding(summary="Yes, with another runner.", answer=ANSWER))
    assert draw_transcript(transcript(state, "base/1", 2.0), 100).plain.count("Yes, with another runner.") == 1
