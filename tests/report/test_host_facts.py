"""What was read of the host stands at the head of every form of a report."""

import json
from dataclasses import replace

from agent.core import events as ev
from agent.report.data import as_json
from agent.report.markdown import markdown
from agent.report.page import page
from agent.report.words import head_rows
from tests.report.test_report import of_state
from tests.tui import states

FACTS = {"power limit": "8 x 600 W", "driver options": "none", "IOMMU": "8 x <off>"}


def test_what_was_read_of_the_host_is_told_in_its_order() -> None:
    state = replace(states.ended(), facts={})
    assert "set up" not in dict(head_rows(of_state(state).head))
    report = of_state(states.play(state, ev.FactsRead(at=200.0, environment="", facts=FACTS)))
    assert dict(head_rows(report.head))["set up"] == "driver options none; IOMMU 8 x <off>; power limit 8 x 600 W"
    assert "- set up: driver options none; IOMMU 8 x \\<off\\>; power limit 8 x 600 W" in markdown(report)
    assert "IOMMU 8 x &lt;off&gt;" in page(report)
    told = json.loads(json.dumps(as_json(report)))
    assert told["host_facts"] == ["driver options none", "IOMMU 8 x <off>", "power limit 8 x 600 W"]
