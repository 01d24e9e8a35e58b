"""What the source demands reaches the launch by the resolver, or by a person; otherwise the server dies of it."""

from pathlib import Path

import pytest

from tests.research.fake_llm import answers, serve, uses
from tests.session.demands import DEMANDED, play, playbook, runner


async def test_the_resolver_completes_it_where_the_playbook_accepts_that(tmp_path: Path) -> None:
    session = await play(playbook("resolver"), tmp_path)
    assert runner(session) == DEMANDED
    finding = session.state.tasks["ep-flashinfer/flags"].finding
    assert finding is not None and finding.requires == {"moe-runner-backend": DEMANDED}
    assert [quote for quote in finding.quotes if "asserts" in quote.text and DEMANDED in quote.text]


@pytest.mark.parametrize("approve", [False, True])
async def test_an_llm_completes_it_only_after_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approve: bool
) -> None:
    monkeypatch.setenv("TUNEBOT_MODEL", "claude-sonnet-5-5")
    look = uses(("grep", {"pattern": 'moe_a2a_backend == "flashinfer"', "paths": ["sglang:srt"]}))
    flags = [{"name": "moe-runner-backend", "value": DEMANDED}]
    async with serve(look, answers("It needs the cutlass runner.", flags=flags)) as llm:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", llm.url)
        session = await play(playbook(None, ask=True), tmp_path, approve=approve)
    assert runner(session) == (DEMANDED if approve else None)
    reason = session.state.experiments["ep-flashinfer"].reason
    assert ("OutOfMemoryError" if approve else "AssertionError") in reason
