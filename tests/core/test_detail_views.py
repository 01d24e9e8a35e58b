"""The page of an experiment as values."""

import pytest

from agent.core import events as ev
from agent.core.views.details import details
from agent.core.views.flags import HIDDEN, command_of
from agent.core.views.tasks import entry_facts, task_lines, transcript
from agent.playbook.model import AskEntry, ReadEntry
from agent.playbook.preflight_entries import TableHasKeyEntry
from tests.tui.states import begun, ended, loading, play, researched

STATE = ended()


def flags(name, state=STATE):
    return {row.name: row for row in details(state, name, 200.0).flags}


def test_flags_are_a_diff_against_the_parent():
    rows = flags("idea")
    assert [(row.mark, row.name) for row in rows.values()] == [
        ("~", "--tp"),
        ("-", "--cuda-graph-max-bs"),
        ("+", "--moe-a2a-backend"),
    ]
    assert (rows["--tp"].requested, rows["--tp"].before) == ("4", "8")
    assert rows["--cuda-graph-max-bs"].before == "128"


def test_the_baseline_is_a_diff_against_the_servers_own_flags():
    assert [(row.mark, row.name) for row in flags("base").values()] == [("+", "--cuda-graph-max-bs"), (" ", "--tp")]


def test_what_the_server_reported_stands_beside_what_was_requested():
    row = flags("base")["--cuda-graph-max-bs"]
    assert (row.requested, row.effective, row.status) == ("128", "plain words", "rewritten")


def test_a_flag_from_the_source_names_its_line():
    found = ev.ExperimentCompleted(at=110.0, experiment="later", adds={"moe-runner-backend": "cutlass"}, task="later/1")
    row = flags("later", play(researched(), found))["--moe-runner-backend"]
    assert (row.mark, row.origin) == ("+", "plain words:9")


def test_values_of_secret_names_are_hidden():
    view = details(STATE, "later", 200.0)
    assert {row.name: row.requested for row in view.env}["API_KEY"] == HIDDEN
    assert "very-secret-value" not in str(view)
    assert HIDDEN in command_of(STATE, "later")


def test_a_taken_away_variable_is_unset_in_the_command():
    spec = STATE.experiments["later"].spec.model_copy(update={"id": "mine", "env": {"NCCL_ALGO": None, "A": "b c"}})
    state = play(STATE, ev.ExperimentAdded(at=300.0, spec=spec))
    assert command_of(state, "mine").startswith("env -u NCCL_ALGO A='b c' python3 -m sglang.launch_server --tp 8")
    assert {row.name: row.requested for row in details(state, "mine", 300.0).env}["NCCL_ALGO"] == "unset"


def test_the_command_is_that_of_the_launch_as_one_would_type_it():
    assert command_of(STATE, "idea") == "NCCL_ALGO='plain words' python3 -m sglang.launch_server --tp 8 'a b'"


def test_a_load_tells_its_phases_and_where_it_broke():
    (load,) = details(STATE, "idea", 999.0).loads
    assert [(p.phase, p.start_s, p.duration_s, p.status) for p in load.phases] == [
        ("launch", 0.0, 2.0, "done"),
        ("import", 2.0, 3.0, "done"),
        ("load-weights", 5.0, 7.0, "failed"),
    ]
    assert (load.stage, load.failure, load.left) == ("failed", "failed in load-weights on rank 3 (exit -9)", (77,))


def test_a_load_that_goes_on_grows():
    state = loading(begun(), "base", "s-01", 110.0)
    views = [details(state, "base", now).loads[0] for now in (116.0, 120.0)]
    assert [view.phases[-1].duration_s for view in views] == [1.0, 5.0]
    assert views[0].phases[-1].status == "running"


def test_rounds_have_a_mean_with_its_interval():
    (measured,) = details(STATE, "base", 200.0).measured
    assert measured.objective and [n.throughput for n in measured.rounds] == [100.0, 100.5, 101.0]
    assert measured.mean and measured.mean.throughput == 100.5
    assert measured.mean.spread == pytest.approx(1.242, abs=0.001)


def test_a_dead_end_names_its_scope_and_evidence():
    end = details(STATE, "idea", 200.0).dead_end
    assert end is not None
    scope = dict(end.scope)
    assert list(scope)[:4] == ["host", "GPU", "GPUs", "topology"] and list(scope)[-1] == "environment"
    assert (scope["GPU"], scope["GPUs"]) == ("plain words (SM 12.0), RTX PRO 6000 (SM 12.0)", "2")
    assert scope["sglang"] == "unknown" and end.changed == ()
    assert end.evidence[0].line == 3
    assert details(STATE, "base", 200.0).dead_end is None


def test_steps_wait_for_approval_until_their_bytes_are_approved():
    state = begun()
    steps = details(state, "build", 101.0).steps
    assert [step.status for step in steps] == ["waits for approval"] * 2
    state = play(state, *(ev.ApprovalGiven(at=101.0, needed=step.needed) for step in steps))
    assert [step.status for step in details(state, "build", 101.0).steps] == ["approved"] * 2
    state = play(state, ev.PrepareRequested(at=102.0, experiment="build", step=0))
    assert [step.status for step in details(state, "build", 103.0).steps] == ["running", "approved"]
    state = play(state, ev.PrepareFinished(at=104.0, experiment="build", step=0, ok=False, summary="exit 1"))
    assert details(state, "build", 104.0).steps[0].status == "failed"


def test_a_reading_shows_the_lines_that_matter():
    (found,) = details(STATE, "later", 200.0).research
    assert found.quotes[found.gist + 3].line == 9


def test_running_tasks_come_first_and_the_others_by_experiment():
    lines = task_lines(researched(), 200.0)
    assert [(line.group, line.id) for line in lines] == [
        ("RUNNING", "idea/1"),
        ("build", "build/1"),
        ("later", "later/1"),
    ]
    assert (lines[0].told, lines[0].elapsed) == ("plain words", "1:39")


def test_a_transcript_has_the_entry_the_demands_and_every_quote():
    view = transcript(researched(), "later/1", 200.0)
    assert view.entry == (("in", "sglang:a.py"), ("around", "needs it"))
    assert view.requires == (("--moe-runner-backend", "cutlass"), ("--tp", "2"))
    assert len(view.quotes) == 5


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        (AskEntry.model_validate({"ask": "why so"}), (("ask", "why so"),)),
        (
            ReadEntry.model_validate({"read": {"in": "a:b", "around": "c", "lines": 5}}),
            (("in", "a:b"), ("around", "c"), ("lines", "5")),
        ),
        (
            TableHasKeyEntry.model_validate({"table-has-key": {"in": "a:b", "table": "T", "key": "{gpu.sm}"}}),
            (("in", "a:b"), ("table", "T"), ("key", "{gpu.sm}")),
        ),
    ],
)
def test_entries_read_as_in_the_playbook(entry, facts):
    assert entry_facts(entry) == facts
