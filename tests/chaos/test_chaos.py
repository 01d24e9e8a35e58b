"""The harness itself: its plans follow from the seed, and its judge sees what is put before it."""

from collections import Counter

import pytest

from agent.sim.ledger import read_ledger
from agent.sim.procs import append
from tests.chaos import case
from tests.chaos.case import Result, play
from tests.chaos.oracle import judge
from tests.chaos.plan import AIMS, MOMENTS, Cue, Life, Places, SessionPlan, aimed, exhaustive, plans
from tests.chaos.run import too_few
from tests.chaos.session import Kill, Operator, Without

PLACES = Places(writes=100, local_steps=150, ssh_steps=120)


def test_the_same_seed_makes_the_same_plans() -> None:
    assert plans(7, 200, PLACES) == plans(7, 200, PLACES)
    assert plans(7, 200, PLACES) != plans(8, 200, PLACES)


@pytest.mark.parametrize("kills", [200, 1000])
def test_plans_hold_the_kills_and_each_schedule(kills: int) -> None:
    made = plans(7, kills, PLACES)
    assert sum(len(plan.lives) + len(plan.second) for plan in made) >= kills
    assert {plan.schedule for plan in made} == {"time", "state", "write", "step", "server", "pair"}


def test_a_thousand_kills_are_at_every_moment_of_every_place() -> None:
    taken = Counter(
        (plan.ssh, cue.at, cue.n, cue.moment)
        for plan in plans(7, 1000, PLACES)
        if plan.schedule in MOMENTS
        for life in plan.lives
        for cue in life.cues
    )
    wanted = [(ssh, c.at, c.n, c.moment) for (_, ssh), cues in exhaustive(PLACES).items() for c in cues]
    assert taken == Counter(wanted)


def test_some_sessions_launch_again_and_some_have_a_guard() -> None:
    made = plans(7, 200, PLACES)
    others = [plan for plan in made if plan.schedule not in MOMENTS]
    assert {plan.launches for plan in others} == {1, 2, 3} and {plan.guard for plan in others} == {True, False}
    assert all((plan.launches, plan.guard) == (1, False) for plan in made if plan.schedule in MOMENTS)


def test_sessions_are_aimed_at_what_was_hit_too_seldom() -> None:
    """Each of their cues is the beginning of that state, or the only way there."""
    for state, name in AIMS.items():
        plan = aimed(7, 30, state)
        cues = [cue for life in plan.lives for cue in life.cues]
        assert plan == aimed(7, 30, state) and not plan.ssh and (plan.launches, plan.guard) == (1, False)
        assert {cue.name for cue in cues} == ({"LaunchStarted", "ServerReady", name} if plan.serve else {name})


def result(*states: str) -> Result:
    kills = [Kill(state, researching=False, cue="") for state in states]
    return Result(aimed(7, 0, "ready"), kills, Counter(), [], None, 0.0)


@pytest.mark.parametrize(
    ("kills", "seen", "few"),
    [
        (200, [state for state in AIMS for _ in range(20)], ["researching"]),  # a state beside another one
        (200, [state for state in AIMS if state != "failed" for _ in range(30)], ["failed", "researching"]),
        (20, [state for state in AIMS for _ in range(2)], []),
        (30, ["serving", "ended", *(state for state in AIMS for _ in range(2))], ["researching"]),
    ],
)
def test_what_was_hit_too_seldom(kills: int, seen: list[str], few: list[str]) -> None:
    assert too_few(kills, [result(*seen)]) == few


def _plan(*names: str) -> SessionPlan:
    lives = tuple(Life(cues=(Cue(at="name", name=name, n=1),), power_loss=True) for name in names)
    # The short playbook, which is that of two operators.
    return SessionPlan(number=0, schedule="pair", ssh=False, serve=False, weather=False, seed=1, lives=lives)


@pytest.mark.long
def test_a_session_that_is_killed_keeps_its_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the judge sees it where the ledger tells of a second start, of a round measured again, of a lost line."""

    def judge_twice(operator: Operator) -> list[object]:
        honest = judge(operator)
        assert honest == []
        records = read_ledger(operator.ledger)
        launch = next(record for record in records if record["kind"] == "launch")
        request = next(r for r in records if r["kind"] == "request" and r["prompt"].isalnum() and r["ok"])
        operator.heard[0].lines.append((0.0, "   0:00  nobody                   said this"))
        append(operator.ledger, "launch", launch_id=launch["launch_id"], start=0)
        append(operator.ledger, "request", prompt="0" * 16, ok=True, start=request["start"])
        assert {"lost", "twice", "unasked"} <= {violation.kind for violation in judge(operator)}
        return []

    monkeypatch.setattr(case, "judge", judge_twice)
    result = play(_plan("LaunchStarted", "RoundMeasured", "StopRequested"), Without())
    assert [kill.state for kill in result.kills] == ["loading", "measuring", "stopping"]
    assert result.violations == []
