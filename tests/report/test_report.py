"""Reports of sessions that run, were cut off, resumed, or are full of text that tries to act."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core import events as ev
from agent.core.model import Answer, Claim, Finding, Spent
from agent.core.scope import ANYTHING, HOST, INSTALLED, LAUNCH, PACKAGES
from agent.core.state import State
from agent.journal.journal import FILE, Journal
from agent.report.data import as_json
from agent.report.facts import report_of, with_texts
from agent.report.lane import Act, Doing, Span, fold
from agent.report.markdown import code, escaped, fenced, markdown
from agent.report.model import Report
from agent.report.page import page
from agent.report.words import head_rows, lasting, ledger_rows
from agent.report_command import cleaned, read_report, written
from tests.core.conftest import World, playbook
from tests.report.html import Page
from tests.test_purity import ACTING
from tests.tui import states

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "logs" / "sample"
HOSTILE = (
    "<script>alert(1)</script><b onclick=x>&amp;\"'<!-- ]]> </pre></style><svg/onload=x>`|**_\x1b[31mred\u202e\ud800"
)


def recorded(folder: Path, events: list[ev.Event]) -> Journal:
    folder.mkdir(parents=True)
    journal = Journal(folder, lambda value: value)
    for event in events:
        journal.append(event)
    return journal


def story(cuts: tuple[int, ...] = ()) -> list[ev.Event]:
    """Two experiments: one is better, one fails."""
    world = World(speeds={"base": 100.0, "better": 120.0}, fails={"broken": "out of memory"})
    prepare = {"run": ["make"], "creates": "x"}
    book = playbook({"id": "base"}, {"id": "better"}, {"id": "broken", "prepare": [prepare]})
    world.play(book, cuts=cuts, approved=())
    return world.events


def reported(events: list[ev.Event], until: float | None = None) -> Report:
    state, lane = fold(events, until)
    return report_of(state, lane, now=max(state.now, until or 0.0), live=until is not None)


def of_state(state: State) -> Report:
    span = Span(act=Act(doing=Doing.IDLE), start_s=0.0, end_s=state.now - state.started_at)
    return report_of(state, (span,), now=state.now, live=True)


def answered() -> State:
    """A question was answered, another is being thought about at an unknown price."""
    state = states.ended()
    claim = Claim(text="it says so", path="a.py", line=3, quote="x", found=True)
    answer = Answer(text="Yes.\n\n- # one", claims=(claim,), risks=("it may be old",), confidence="low")
    question = states.task(state, "later", "9", "ask", state.tasks["build/1"].task.entry)
    spent = Spent(calls=3, read_bytes=100, input_tokens=1000, output_tokens=50, cost_usd=0.25)
    return states.play(
        state,
        ev.TaskRequested(at=160.0, task=question),
        ev.LlmSpent(at=161.0, task=question.id, spent=spent),
        ev.TaskFinished(at=162.0, task=question.id, status="done", finding=Finding(summary="yes", answer=answer)),
        ev.TaskRequested(at=163.0, task=replace(question, id="later/10")),
        ev.LlmSpent(at=165.0, task="later/10", spent=replace(spent, cost_usd=None)),
    )


def test_the_sample_page_is_the_one_in_the_docs() -> None:
    """Made again by: tunebot report logs/sample --output docs/report-sample.html."""
    made = written(read_report(SAMPLE), "html")
    assert (ROOT / "docs" / "report-sample.html").read_text(encoding="utf-8") == made


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    made = Page(page(read_report(SAMPLE)))
    tags = {tag for tag, _ in made.elements}
    assert {"main", "header", "section", "article", "table", "figure", "svg", "title"} <= tags
    assert not tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert made.links and all(link.startswith("#") and link[1:] in made.ids for link in made.links)
    assert len(made.ids) == len(set(made.ids))
    assert "SIMULATED" in made.text and "111.9 ±2.0" in made.text
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page(read_report(SAMPLE)))


def test_making_a_report_imports_nothing_that_acts() -> None:
    code = "import sys, agent.report.page, agent.report.markdown, agent.report.data, agent.report.facts\n"
    code += f"print(*[name for name in {ACTING!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == []


def test_the_timeline_has_a_bar_for_every_span_and_task() -> None:
    report = read_report(SAMPLE)
    made = page(report)
    bars = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="(\d+)"', made)
    assert len(bars) == len(report.lane) + len(report.tasks)
    server = [(float(x), float(width)) for x, width, height in bars if height == "34"]
    assert len(server) == len(report.lane)
    for span, (x, width) in zip(report.lane, server, strict=True):
        assert x == pytest.approx(84 + 666 * span.start_s / report.ledger.elapsed_s, abs=0.01)
        assert width == pytest.approx(max(1.2, 666 * span.lasts_s / report.ledger.elapsed_s), abs=0.01)
    assert "load-weights · eagle3" in made


def test_hostile_text_is_text() -> None:
    """Every text of a report becomes hostile: the page and its elements stay the same, and it can be read in them."""

    def spoilt(text: str) -> str:
        return text if re.fullmatch(r"[a-z_ -]*|[+~]", text) else text + HOSTILE

    plain = read_report(SAMPLE)
    before, after = Page(page(plain)), Page(page(cleaned(with_texts(plain, spoilt), {})))
    # What is broken at its spaces, for it to be read on a phone, has more of them.
    assert [e for e in after.elements if e != ("span", ())] == [e for e in before.elements if e != ("span", ())]
    assert "<script>alert(1)</script><b onclick=x>&amp;\"'<!-- ]]> </pre></style>" in after.text
    assert "\x1b" not in after.text and "\u202e" not in after.text
    assert "⟨U+202E⟩" in after.text


@pytest.mark.parametrize("text", [*states.HOSTILE[:7], HOSTILE])
def test_hostile_text_of_a_session(text: str) -> None:
    report = cleaned(of_state(states.ended(text)), {})
    for form in ("html", "markdown", "json"):
        made = written(report, form)
        assert "\x1b" not in made and "\u202e" not in made
        made.encode()
    Page(page(report))
    outside = re.sub(r"(?ms)^(`{3,})\S*$.*?^\1$", "", markdown(report))
    assert not re.search(r"(?<!\\)<", re.sub(r"(`+).*?(?<!`)\1(?!`)", "", outside))


@given(st.text(alphabet="`a|*_~<>[]()#-+=1. \n", max_size=30))
@settings(max_examples=200)
def test_markdown_of_any_text(text: str) -> None:
    assert re.sub(r"\\([^a-z0-9\s])", r"\1", escaped(text)) == " ".join(text.split())
    assert not re.match(r"[#+=-](?!\d)|\d+[.)](\s|$)", escaped(text))
    assert re.search(r"(?<!\\)(?:\\\\)*[|<>*`\[\]]", escaped(text)) is None
    first, *_, last = fenced([text])
    assert first == last and first not in text
    if span := code(text):
        ticks = re.match("`+", span)[0]  # type: ignore[index]
        assert span.endswith(ticks) and ticks not in span[len(ticks) : -len(ticks)].strip(" ")


def test_what_questions_cost() -> None:
    report = of_state(answered())
    llm = report.ledger.llm
    assert (llm.questions, llm.calls, llm.input_tokens, llm.output_tokens) == (3, 6, 2000, 100)
    assert (llm.cost_usd, llm.unpriced) == (0.25, 1)
    rows = {name: (amount, note) for name, amount, note in ledger_rows(report.ledger)}
    assert rows["LLM"][0] == "$0.25, and 1 at unknown prices"
    assert "2,000 + 100 tokens" in rows["LLM"][1]
    assert "it says so" in markdown(report) and "> \\- # one" in markdown(report)
    assert "quote found" in page(report)
    assert "risk: it may be old" in page(report) and "- risk: it may be old" in markdown(report)


def test_flags_that_the_server_did_not_take_as_asked() -> None:
    report = of_state(states.ended("another value"))
    base = next(one for one in as_json(report)["experiments"] if one["id"] == "base")
    (told,) = (row for row in base["changes"] if row["name"] == "--cuda-graph-max-bs")
    assert (told["status"], told["effective"]) == ("rewritten", "another value")
    assert "(rewritten: another value)" in page(report) and "(rewritten: another value)" in markdown(report)
    assert "--tp" not in {row["name"] for row in base["changes"]}


@pytest.mark.parametrize("kept", range(1, 60, 6))
def test_a_session_that_was_cut_off(tmp_path: Path, kept: int) -> None:
    events = story()[:kept]
    journal = recorded(tmp_path / "s", events)
    journal.close()
    with (tmp_path / "s" / FILE).open("ab") as file:
        file.write(b'{"seq":999,"event":"Torn')
    report = read_report(tmp_path / "s")
    assert report.head.ending in ("cut off", "completed")
    assert report.head.now == events[-1].at
    Page(page(report))
    json.dumps(as_json(report), allow_nan=False)
    assert markdown(report).startswith("# tunebot report: test")


@given(st.lists(st.integers(1, 60), max_size=3))
@settings(max_examples=25, deadline=None)
def test_the_lane_has_no_gap_and_adds_up(cuts: list[int]) -> None:
    events = story(tuple(cuts))
    report = reported(events)
    ledger = report.ledger
    kinds = ("loading", "measuring", "stopping", "preparing", "idle", "away")
    assert sum(getattr(ledger, f"{kind}_s") for kind in kinds) == pytest.approx(ledger.elapsed_s)
    assert ledger.elapsed_s == events[-1].at - events[0].at
    ends = [0.0, *(span.end_s for span in report.lane)]
    assert [span.start_s for span in report.lane] == ends[:-1]
    # tests.core.conftest resumes after a minute in which nobody was there
    resumes = sum(isinstance(event, ev.SessionResumed) for event in events)
    assert ledger.away_s == 60.0 * resumes and report.head.resumes == resumes


def test_time_until_now_goes_to_what_is_done_now() -> None:
    events = story()
    loads = next(n for n, event in enumerate(events) if isinstance(event, ev.LaunchStarted))
    report = reported(events[: loads + 1], until=events[loads].at + 50.0)
    assert report.ledger.loading_s == pytest.approx(events[loads].at - events[0].at + 50.0)
    assert report.ledger.loads_ready == 0 and report.ledger.mean_load_s is None


def test_every_key_of_the_json_is_documented() -> None:
    told = (ROOT / "docs" / "report.md").read_text()

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {key for item in value.values() for key in keys(item)}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    facts = {*HOST, *PACKAGES, *LAUNCH, INSTALLED, ANYTHING, "host", "environment", "image", "sglang"}
    free = facts | {task.kind for task in read_report(SAMPLE).tasks}
    used = keys(as_json(read_report(SAMPLE))) | keys(as_json(of_state(answered())))
    assert {key for key in used - free if f"`{key}`" not in told} == set()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (7290, "2 h 02 min"),
    ],
)
def test_times_in_words(seconds: float | None, words: str) -> None:
    assert lasting(seconds) == words


def test_head_says_how_it_went() -> None:
    rows = dict(head_rows(reported(story(cuts=(20,))).head))
    assert rows["took"].endswith("completed, resumed once")
