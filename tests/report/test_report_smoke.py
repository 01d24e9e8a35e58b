"""A report of a session with smoke loads: a row of the ledger, and words at each of them; none without."""

import json

import pytest

from agent.core import events as ev
from agent.headless import ledger_line
from agent.report.data import as_json
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.report.markdown import markdown
from agent.report.model import Report
from agent.report.page import page
from agent.report.records import ended
from agent.report.words import ledger_rows
from tests.core.conftest import World, playbook
from tests.report.html import Page


def played(smoke: object) -> World:
    world = World(fails={"idea": "out of memory"})
    world.play(playbook({"id": "base"}, {"id": "idea"}, smoke=smoke))
    return world


def report(smoke: object = "dummy") -> Report:
    state, lane = fold(played(smoke).events)
    return report_of(state, lane, now=state.now, live=False)


def test_the_ledger_counts_smoke_loads_apart() -> None:
    made = report()
    ledger = made.ledger
    assert (ledger.loads, ledger.loads_ready, ledger.smoke_loads, ledger.smoke_failed) == (1, 1, 2, 1)
    assert ledger.mean_load_s == 60.0
    smoke = {launch.id for trial in made.trials for launch in trial.launches if launch.load.purpose == "smoke"}
    assert ledger.smoke_s == pytest.approx(sum(span.lasts_s for span in made.lane if span.act.launch in smoke))
    lane = (ledger.loading_s, ledger.measuring_s, ledger.stopping_s, ledger.preparing_s, ledger.idle_s, ledger.away_s)
    assert sum(lane) == pytest.approx(ledger.elapsed_s), "the lane adds up with them in it"
    row = next(row for row in ledger_rows(ledger) if row[0] == "smoke loads")
    assert row[1] == "2" and "1 did not start" in row[2]


def test_every_form_says_which_loads_they_are() -> None:
    made = report()
    text, html = markdown(made), page(made)
    assert "smoke load ready after 1 min 00 s" in text and "smoke load failed in load-weights after" in text
    assert "| smoke loads | 2 |" in text and "in the smoke load: out of memory" in text
    assert "smoke loads" in html and "smoke load ready after" in html
    Page(html)
    told = json.loads(json.dumps(as_json(made)))
    base, idea = (one["launches"] for one in told["experiments"])
    assert [launch["purpose"] for launch in base] == ["smoke", "measure"]
    assert [launch["purpose"] for launch in idea] == ["smoke"]


def test_the_last_lines_of_a_headless_run_count_them() -> None:
    world = played("dummy")
    state, _ = fold(world.events)
    assert "1 loads paid (1:00), 2 smoke loads (" in ledger_line(state)
    last = world.events[-1]
    assert isinstance(last, ev.SessionEnded)
    assert ended(last, state)["loads"] == 1


def test_without_any_nothing_is_said_of_them() -> None:
    made = report(smoke=False)
    assert "smoke" not in markdown(made) and made.ledger.smoke_loads == 0 and made.ledger.smoke_s == 0
    state, _ = fold(played(False).events)
    assert "smoke" not in ledger_line(state)
