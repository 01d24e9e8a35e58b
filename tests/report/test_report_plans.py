"""A report of a session with strategies and terms: what was given up, and what was expected of what was tried."""

import json

from agent.core import events as ev
from agent.report.data import as_json
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.report.markdown import markdown
from agent.report.model import Report
from agent.report.page import page
from tests.core.conftest import World, playbook
from tests.report.html import Page

GROUPS = [
    {"id": "ar", "name": "all-reduce *replacements*", "members": ["tree"], "then": "ep"},
    {"id": "ep", "members": ["plain"]},
]


def report() -> Report:
    world = World(speeds={"tree": 60.0, "plain": 110.0})
    ideas = [{"id": "tree", "removes": {"allreduce": 122}}, {"id": "plain"}]
    terms = {"allreduce": {"count": 122, "each": "20us"}}
    world.play(playbook({"id": "base"}, *ideas, groups=GROUPS, terms=terms))
    assert any(isinstance(event, ev.PivotReached) for event in world.events)
    state, lane = fold(world.events)
    return report_of(state, lane, now=state.now, live=False)


def test_the_json_tells_strategies_and_what_was_expected() -> None:
    found = json.loads(json.dumps(as_json(report())))
    first, second = found["strategies"]
    assert first["standing"] == "given up" and first["given_up_s"] > 0
    assert [tried["experiment"] for tried in first["trail"]] == ["tree"] and first["to"] == "ep"
    assert second["standing"] == "kept" and second["kept"] == "plain" and second["given_up_s"] is None
    expected = {one["id"]: one["expected"] for one in found["experiments"]}
    assert expected["plain"] is None
    assert 0.3 < expected["tree"]["best"] < 0.35 and expected["tree"]["measured"] < -0.35


def test_markdown_and_page_have_a_section_for_each_and_the_timeline_says_when() -> None:
    made = report()
    text = markdown(made)
    assert "## Strategies" in text and "## Expected" in text
    assert "all-reduce \\*replacements\\*" in text and "given up; next: ep" in text
    html = page(made)
    assert 'id="strategies"' in html and 'id="expected"' in html and 'class="pivot"' in html
    assert 'href="#strategies"' in html
    Page(html)


def test_without_them_there_is_no_section() -> None:
    world = World()
    world.play(playbook({"id": "base"}))
    state, lane = fold(world.events)
    made = report_of(state, lane, now=state.now, live=False)
    assert "Strategies" not in markdown(made) and 'id="strategies"' not in page(made)
    assert as_json(made)["strategies"] == []
