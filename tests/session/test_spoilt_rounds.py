"""A round that the client's host spoilt is repeated on the same launch, and the session has its comparisons."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from agent.bench import metrics as bench_metrics
from agent.bench.health import Health
from agent.bench.hygiene import hygiene_of
from agent.bench.sample import Sample
from agent.core import events as ev
from agent.core.metrics import Hygiene, RoundMetrics
from agent.headless import replay
from agent.journal.journal import read_journal
from agent.playbook.workload import Workload
from agent.report.markdown import markdown
from agent.report_command import read_report
from agent.review.verify import verify
from tests.session.kit import run, small_playbook


async def test_a_spoilt_round_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = count(1)

    def of_a_busy_host(
        metrics: RoundMetrics, good: Sequence[Sample], health: Health, workload: Workload
    ) -> tuple[Hygiene, ...]:
        lag_ms = 1500.0 if next(rounds) == 2 else 1.0
        calm = replace(health, cpu_fraction=0.1, loop_lag_p99_ms=lag_ms, host_load_others=0.1)
        return hygiene_of(metrics, good, calm, workload)

    monkeypatch.setattr(bench_metrics, "hygiene_of", of_a_busy_host)
    book = small_playbook({"id": "base"}, {"id": "idea", "args": {"ep-size": 2}}, target="simulated:small")
    session = await run(book, tmp_path)
    base, idea = session.state.launches.values()
    assert [r.index for r in base.rounds] == [0, 2, 1] and [r.index for r in base.spoilt] == [1]
    assert len(idea.rounds) == 3 and not idea.spoilt
    verdict = session.state.experiments["idea"].verdict
    assert verdict and verdict.gain is not None, verdict
    (told,) = [line for line in session.lines if "spoilt" in line]
    assert "w round 2 spoilt: the client woke up to 1500.0 ms late (p99)" in told and told.endswith("; repeated")
    # The server saw four rounds of one launch, and no prompt twice.
    pid = session.real_launches()["base"]["pid"]
    asked = [e for e in read_journal(session.folder) if isinstance(e, ev.RoundRequested) and e.launch == base.id]
    prompts = [request["prompt"] for request in session.requests() if request["pid"] == pid]
    assert len(asked) == 4 and len(set(prompts)) >= 4 * book["workloads"][0]["requests"]
    events = read_journal(session.folder)
    assert verify(events).difference is None
    assert replay(events, [].append) == session.state
    assert "spoilt, and repeated: round 2: the client woke up" in markdown(read_report(session.folder))
