"""What a person changed and wrote, in all forms of a report; text that tries to act stays text."""

import json
import re
from dataclasses import replace

from agent.core import events as ev
from agent.core.state import Note, Todo
from agent.report.data import as_json
from agent.report.markdown import markdown
from agent.report.page import page
from agent.report_command import cleaned
from tests.report.html import Page
from tests.report.test_report import HOSTILE, of_state
from tests.tui import states

AT = 200.0


def test_notes_things_to_do_and_dead_ends_by_hand() -> None:
    state = states.play(
        states.ended(),
        ev.NoteWritten(at=AT, experiment="base", text="the fans were *loud*"),
        ev.TodoAdded(at=AT, text="check <power>"),
        ev.TodoAdded(at=AT, text="call"),
        ev.TodoTicked(at=AT, todo=1, done=True),
        ev.DeadEndMarked(at=AT, experiment="later", reason="no driver"),
    )
    report = of_state(state)
    text = markdown(report)
    assert "- noted at 1:40: the fans were \\*loud\\*" in text
    assert "- [ ] check \\<power\\>\n- [x] call" in text
    assert "| `later` | by hand | no driver |" in text
    html = page(report)
    assert "noted at 1:40: the fans were *loud*" in html and "check &lt;power&gt;" in html and "done: call" in html
    told = json.loads(json.dumps(as_json(report)))
    assert told["todos"] == [{"text": "check <power>", "done": False}, {"text": "call", "done": True}]
    trials = {trial["id"]: trial for trial in told["experiments"]}
    assert trials["base"]["notes"] == [{"at_s": 100.0, "text": "the fans were *loud*"}]
    later = trials["later"]
    assert (later["place"], later["word"], later["dead_end"]["reason"]) == ("DEAD ENDS", "by hand", "no driver")
    assert later["verdicts"]["parent"]["word"] == "not-reached"


def test_words_that_try_to_act_are_only_words() -> None:
    state = states.ended()
    state = state.with_experiment("base", notes=(Note(at=AT, text=HOSTILE),))
    state = replace(state.with_experiment("idea", given_up=HOSTILE), todos=(Todo(text=HOSTILE),))
    report = cleaned(of_state(state), {})
    assert Page(page(report)).text.count("<script>alert(1)</script>") >= 3
    assert "<script" not in re.sub(r"(`+).*?(?<!`)\1(?!`)", "", markdown(report)).replace("\\<script", "")
