"""A configuration that is faster and wrong is invalid, whatever it would have gained."""

from pathlib import Path

from agent.headless import replay
from agent.journal.journal import read_journal
from tests.session.kit import run, small_playbook

GUARD = {"answers": "builtin", "max_logprob_drop": 0.02}


async def test_faster_and_wrong_is_invalid(tmp_path: Path) -> None:
    book = small_playbook(
        {"id": "base"},
        {"id": "wrong", "args": {"kv-cache-dtype": "fp4_e2m1"}},
        target="simulated:small",
        guard=GUARD,
        launches=1,
    )
    session = await run(book, tmp_path)
    assert session.words["wrong"] == "invalid"
    wrong = session.state.experiments["wrong"]
    assert "its answers are worse" in wrong.reason and "nats a token" in wrong.reason
    launch = session.state.launches[wrong.launches[-1]]
    baseline = session.state.launches[session.state.experiments["base"].launches[-1]]
    # It was faster, and its numbers stay to be seen. A busy machine can only slow a round.
    best = [max(r.metrics.output_throughput for r in one.rounds) for one in (launch, baseline)]
    assert best[0] > 1.05 * best[1]
    assert session.state.incumbent != "wrong"
    assert launch.guard is not None and baseline.guard is not None
    assert launch.guard.right.count("1") < baseline.guard.right.count("1")
    (told,) = [line for line in session.lines if " wrong " in line and "guard: " in line]
    assert "right, the baseline's" in told
    assert replay(read_journal(session.folder), [].append) == session.state


async def test_without_a_guard_nothing_is_asked(tmp_path: Path) -> None:
    session = await run(small_playbook({"id": "base"}, target="simulated:small"), tmp_path)
    assert all(launch.guard is None and not launch.guard_error for launch in session.state.launches.values())
