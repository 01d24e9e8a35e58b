"""One hash for all prepare steps of an experiment."""

from agent.core import commands as do
from agent.core import events as ev
from agent.core.needs import Approval, needs
from agent.core.plan import approvals_missing, approvals_needed, plan_approval
from agent.core.schedule import missing_approvals
from agent.core.views.details import details
from tests.core.conftest import World, playbook
from tests.tui.states import begun, play

FIRST = {"run": ["python3", "-m", "venv", "~/new"], "creates": "~/new"}
SECOND = {"run": ["~/new/bin/pip", "install", "x"]}


def plan(*steps: dict[str, object], **changes: object) -> str:
    book = playbook({"id": "base"}, {"id": "new", "prepare": list(steps)}, **changes)
    return plan_approval(book, book.experiments[1])


def test_it_stands_for_every_byte_the_order_and_the_target() -> None:
    plans = [
        plan(FIRST, SECOND),
        plan(SECOND, FIRST),
        plan(FIRST, {"run": ["~/new/bin/pip", "install", "y"]}),
        plan({**FIRST, "creates": "~/other"}, SECOND),
        plan(FIRST, SECOND, SECOND),
        plan(FIRST, SECOND, target="elsewhere"),
    ]
    assert len(set(plans)) == len(plans)
    assert plan(FIRST, SECOND) == plans[0] and plans[0].startswith("new@")


def test_of_a_single_step_it_is_that_of_the_step() -> None:
    book = playbook({"id": "base"}, {"id": "new", "prepare": [FIRST]})
    assert [plan_approval(book, book.experiments[1])] == list(approvals_needed(book, book.experiments[1]))
    assert plan_approval(book, book.experiments[0]) == ""


def test_with_it_every_step_runs_and_without_it_none() -> None:
    book = playbook({"id": "base"}, {"id": "new", "prepare": [FIRST, SECOND]})
    new = book.experiments[1]
    approved = World()
    state = approved.play(book, approved=(plan_approval(book, new),))
    assert [c.index for c in approved.done if isinstance(c, do.Prepare)] == [0, 1]
    assert state.experiments["new"].verdict and state.experiments["new"].verdict.word != "not-reached"
    refused = World().play(book)
    assert f"need approval: --approve {plan_approval(book, new)}" in refused.experiments["new"].reason
    assert missing_approvals(refused, new) == [plan_approval(book, new)]


def test_where_some_steps_are_approved_the_others_are_asked_for_one_by_one() -> None:
    book = playbook({"id": "base"}, {"id": "new", "prepare": [FIRST, SECOND]})
    first, second = approvals_needed(book, book.experiments[1])
    assert approvals_missing(book, book.experiments[1], (first,)) == [second]
    assert second in World().play(book, approved=(first,)).experiments["new"].reason


def test_given_during_the_session_nobody_is_asked_any_more() -> None:
    state = begun()
    asked = [need for need in needs(state) if isinstance(need, Approval)]
    assert len(asked) == 2 and len({need.plan for need in asked}) == 1
    state = play(state, ev.ApprovalGiven(at=101.0, needed=asked[0].plan))
    assert needs(state) == ()
    assert {step.status for step in details(state, "build", 101.0).steps} == {"approved"}
