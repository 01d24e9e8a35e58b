"""What waits for a person, and what leaving cuts short."""

from dataclasses import replace

from agent.core import events as ev
from agent.core.leaving import leaving
from agent.core.needs import Approval, Completion, MissingKey, needs
from agent.core.plan import approvals_needed
from agent.core.state import Stage
from tests.tui.states import begun, ended, loading, play, researched


def test_every_kind_of_need_in_the_order_of_what_it_holds_up():
    state = researched()
    assert [type(need) for need in needs(state)] == [Approval, Approval, Completion, MissingKey]


def test_an_approval_names_exactly_the_bytes_of_its_step():
    state = begun()
    first, second = needs(state)
    assert isinstance(first, Approval) and isinstance(second, Approval)
    assert [first.needed, second.needed] == list(approvals_needed(state.playbook, state.experiments["build"].spec))
    assert first.run == ("python3", "-m", "venv", "plain words")
    state = play(state, ev.ApprovalGiven(at=101.0, needed=first.needed))
    assert needs(state) == (second,)
    assert needs(play(state, ev.ApprovalGiven(at=101.0, needed=second.needed))) == ()


def test_a_skipped_experiment_needs_nobody():
    assert needs(play(begun(), ev.ExperimentSkipped(at=101.0, experiment="build"))) == ()


def test_a_completion_shows_what_is_different_and_goes_when_it_is_accepted():
    state = researched()
    found = next(need for need in needs(state) if isinstance(need, Completion))
    assert found.changes == (("moe-runner-backend", None, "cutlass"), ("tp", "8", "2"))
    event = ev.ExperimentCompleted(at=110.0, experiment=found.experiment, adds=found.adds, task=found.task)
    assert not any(isinstance(need, Completion) for need in needs(play(state, event)))


def test_with_accept_resolver_no_person_is_asked_for_flags():
    state = researched(accept="resolver")
    assert not any(isinstance(need, Completion) for need in needs(state))


def test_an_experiment_that_runs_takes_no_more_flags():
    state = loading(researched(), "later", "s-01", 110.0)
    assert not any(isinstance(need, Completion) for need in needs(state))


def test_a_session_that_ended_needs_nobody():
    state = play(researched(), ev.SessionEnded(at=200.0, ending="interrupted", serving=None))
    assert needs(state) == ()
    assert not leaving(state).asks


def test_leaving_asks_about_the_server_while_one_is_up():
    state = loading(begun(), "base", "s-01", 110.0)
    assert (leaving(state).server, leaving(state).unfinished) == ("base", 4)
    assert "load-weights" in leaving(state).doing


def test_leaving_without_a_server_tells_what_is_unfinished():
    at_stake = leaving(ended())
    assert (at_stake.server, at_stake.unfinished, at_stake.tasks) == ("", 2, 1)


def test_leaving_a_finished_session_asks_nothing():
    state = begun()
    done = {name: replace(e, stage=Stage.ENDED) for name, e in state.experiments.items()}
    assert not leaving(replace(state, experiments=done)).asks
