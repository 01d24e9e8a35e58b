"""An experiment that an LLM proposes waits for a person, who approves exactly the bytes that would run."""

from typing import Any

import pytest

from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.model import Finding
from agent.core.needs import Completion, Proposal, needs
from agent.core.plan import proposal_digest
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import Stage, State
from agent.core.views.basics import Place, board
from agent.core.views.board import board_view
from agent.core.views.briefing import briefing
from agent.playbook.model import Experiment
from tests.core.conftest import World, playbook, started

IDEA = Experiment.model_validate(
    {"id": "idea", "based_on": "base", "args": {"ep-size": "8"}, "why": "half the experts"}
)


def asked(**finding: Any) -> State:
    """A session with a question about its baseline that ended in this finding."""
    book = playbook({"id": "base", "research": [{"ask": "what next?"}]}, {"id": "other"})
    state = initial(started(book, attended=True))
    while (decision := next_decision(state)) is not None:
        state, _ = reduce(state, decision)
    found = Finding(summary="try experts", **finding)
    return reduce(state, ev.TaskFinished(at=state.now, task="base/1", status="done", finding=found))[0]


def proposed(state: State) -> Proposal:
    (need,) = (need for need in needs(state) if isinstance(need, Proposal))
    return need


def test_it_stands_on_the_board_and_nothing_runs_by_itself() -> None:
    state = asked(proposal=IDEA)
    assert state.experiments["idea"].stage is Stage.PROPOSED
    assert state.experiments["idea"].proposed_by == "base/1"
    (row,) = (row for row in board(state) if row.place is Place.PROPOSALS)
    assert (row.experiment, row.glyph, row.word) == ("idea", "◇", "proposed")
    assert any(section.place is Place.PROPOSALS for section in board_view(state))
    world = World()
    assert "idea" not in {launch.experiment for launch in world.play(state.playbook).launches.values()}


def test_approving_shows_what_would_run_and_binds_to_it() -> None:
    state = asked(proposal=IDEA)
    need = proposed(state)
    assert need.command[-2:] == ("--ep-size", "8") and need.changes == (("--ep-size", None, "8"),)
    assert need.why == "half the experts" and need.digest == proposal_digest(state, "idea")
    state, _ = reduce(state, ev.ProposalApproved(at=1.0, experiment="idea", digest=need.digest))
    assert state.experiments["idea"].stage is Stage.TODO
    with pytest.raises(IllegalTransition):
        reduce(state, ev.ProposalApproved(at=1.0, experiment="idea", digest=need.digest))


def test_an_approval_of_other_bytes_changes_nothing() -> None:
    state = asked(proposal=IDEA)
    digest = proposed(state).digest
    for other in ({"args": {"ep-size": "4"}}, {"env": {"A": "b"}}):
        changed = state.with_experiment("idea", spec=IDEA.model_copy(update=other))
        with pytest.raises(IllegalTransition, match="other than what was approved"):
            reduce(changed, ev.ProposalApproved(at=1.0, experiment="idea", digest=digest))
    # What its parent gets meanwhile is part of what would run.
    later = state.with_experiment("base", added={"moe-runner-backend": "cutlass"})
    with pytest.raises(IllegalTransition, match="other than what was approved"):
        reduce(later, ev.ProposalApproved(at=1.0, experiment="idea", digest=digest))


def test_declined_it_is_not_reached() -> None:
    state, _ = reduce(asked(proposal=IDEA), ev.ExperimentSkipped(at=1.0, experiment="idea"))
    assert state.experiments["idea"].stage is Stage.ENDED
    assert not [need for need in needs(state) if isinstance(need, Proposal)]


def test_a_taken_name_gets_a_number_and_an_unknown_parent_is_left_out() -> None:
    state = asked(proposal=IDEA.model_copy(update={"id": "other"}))
    assert state.experiments["other-2"].stage is Stage.PROPOSED and state.experiments["other"].proposed_by is None
    state = asked(proposal=IDEA.model_copy(update={"based_on": "nobody"}))
    assert set(state.experiments) == {"base", "other"}


def test_a_proposal_does_not_keep_a_session_open() -> None:
    state = asked(proposal=IDEA)
    for name in ("base", "other"):
        state = state.with_experiment(name, stage=Stage.ENDED)
    assert state.finished


def test_flags_of_an_llm_are_never_added_by_themselves() -> None:
    state = asked(requires={"ep-size": "8"})
    assert state.playbook.accept == "resolver"
    while (decision := next_decision(state)) is not None:
        assert not isinstance(decision, ev.ExperimentCompleted)
        state, _ = reduce(state, decision)


def test_flags_of_an_llm_for_an_experiment_ahead_wait_for_a_person() -> None:
    book = playbook({"id": "base"}, {"id": "other", "research": [{"ask": "what does it need?"}]})
    state = initial(started(book))
    while (decision := next_decision(state)) is not None:
        state, _ = reduce(state, decision)
    found = Finding(summary="it needs experts", requires={"ep-size": "8"})
    state, _ = reduce(state, ev.TaskFinished(at=state.now, task="other/1", status="done", finding=found))
    (need,) = needs(state)
    assert isinstance(need, Completion) and need.from_llm and need.adds == {"ep-size": "8"}


def test_a_question_knows_the_board() -> None:
    state = asked()
    text = state.tasks["base/1"].task.board
    assert "output_throughput" in text and "base" in text and "other (on base)" in text
    assert briefing(state).startswith("The goal is a better output_throughput (tok/s)")
