"""docs/story.md quotes the figures and the lines of the run that made them, and that run was the story."""

import json
from typing import Any

from tests.docs.pages import ROOT
from tests.story.page import FIGURES, OVERLAP, PAGE, made
from tests.story.run import wrong_estimates, wrong_outcomes

TOLD: dict[str, Any] = json.loads(FIGURES.read_text())
TIMES: dict[str, Any] = json.loads(OVERLAP.read_text())


def test_the_page_has_the_figures_of_the_run() -> None:
    """Made again by: make story."""
    assert PAGE.read_text() == made()


def test_the_run_ended_as_the_story_does() -> None:
    assert wrong_outcomes(TOLD) == []


def test_the_report_estimated_what_the_other_plan_paid() -> None:
    assert wrong_estimates(TOLD["saved"]) == []
    assert TOLD["unchecked"]["loads"] - TOLD["checked"]["loads"] == TOLD["saved"]["estimate_loads"]


def test_all_research_was_done_meanwhile() -> None:
    assert TIMES["research"]["undone"] == [] and TIMES["research"]["done"] > TIMES["launches"]


def test_no_path_of_the_machine_is_in_it() -> None:
    for file in (PAGE, FIGURES, OVERLAP):
        assert str(ROOT) not in file.read_text() and "/tmp/" not in file.read_text()
