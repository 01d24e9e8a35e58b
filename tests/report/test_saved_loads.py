"""What the ledger counts as a load that was never paid: what a check ruled out, and what its best case set aside."""

from agent.core.model import Finding
from agent.core.saved import saved_loads
from agent.core.state import State
from agent.headless import ledger_line
from agent.report.data import as_json
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.report.model import Report
from agent.report.words import ledger_rows
from tests.core.conftest import World, playbook

RULED_OUT = {"id": "tree", "preflight": [{"env": {"name": "NCCL_ALGO", "not_in": ["Tree"], "why": "no"}}]}


def played(*ideas: dict[str, object]) -> tuple[State, Report]:
    """A session in which a decode step takes 10 ms, 122 x 20 us of it in all-reduces; what is checked would fail."""
    world = World(findings={"tree/check1": Finding(summary="no", outcome="fails")})
    world.play(playbook({"id": "base"}, *ideas, terms={"allreduce": {"count": 122, "each": "20us"}}))
    state, lane = fold(world.events)
    return state, report_of(state, lane, now=state.now, live=False)


def rows(report: Report) -> dict[str, tuple[str, str]]:
    return {name: (amount, note) for name, amount, note in ledger_rows(report.ledger)}


def test_a_load_that_was_not_worth_it_is_saved() -> None:
    state, report = played({"id": "few", "removes": {"allreduce": 5}}, {"id": "all", "removes": {"allreduce": 122}})
    (saved,) = report.ledger.saved
    assert (saved.experiment, saved.by) == ("few", "best case")
    assert saved.estimate_s == report.ledger.saved_s == report.ledger.mean_load_s
    assert report.ledger.loads == 2
    assert rows(report)["loads saved by checks and best cases"][0] == "1"
    assert "2 loads paid" in ledger_line(state) and "1 saved by preflights and best cases" in ledger_line(state)
    assert as_json(report)["ledger"]["saved"][0]["by"] == "best case"


def test_what_a_check_ruled_out_is_saved_beside_it() -> None:
    _, report = played(RULED_OUT, {"id": "few", "removes": {"allreduce": 5}})
    assert [(one.experiment, one.by) for one in report.ledger.saved] == [("tree", "check"), ("few", "best case")]
    _, alone = played(RULED_OUT)
    assert rows(alone)["loads saved by checks"][0] == "1"


def test_what_is_not_reached_for_another_reason_saves_nothing() -> None:
    state, report = played({"id": "child", "when": {"all": ["base"], "are": ["failed"]}})
    ended = state.experiments["child"].verdict
    assert ended and ended.word == "not-reached"
    assert saved_loads(state) == () and report.ledger.saved == ()
    assert rows(report)["loads saved by checks"][0] == "0"
