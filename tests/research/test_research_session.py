"""A question in a whole session on a simulated host: it sees the launch, is journalled, and starts nothing."""

import json
from pathlib import Path

import pytest

from agent.core.state import Stage
from agent.diagnostics import UserError
from tests.session.kit import run, small_playbook

from .fake_llm import answers, claim, serve, uses

ASK = {"ask": "What should be tried next?", "needed": True}


async def test_a_question_in_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEBOT_MODEL", "claude-sonnet-5-5")
    book = small_playbook(
        {"id": "base"}, {"id": "idea", "args": {"enable-mscclpp": True}, "research": [ASK]}, target="simulated:small"
    )
    book["workloads"][0] |= {"requests": 1, "rounds": 1}
    experiment = {
        "id": "next",
        "based_on": "base",
        "why": "less to do",
        "args": [{"name": "schedule-policy", "value": "fcfs"}],
    }
    look = uses(
        ("grep", {"pattern": "moe_a2a_backend ==", "paths": ["sglang:srt"]}),
        ("launch_log", {"launch": "last", "from_line": 1, "lines": 20}),
        ("gpus", {}),
    )
    end = answers(
        "Try another policy.",
        claims=[claim("server_args.py", 1, "a quote that stands nowhere at all")],
        flags=[{"name": "schedule-policy", "value": "fcfs"}],
        experiment=experiment,
    )
    async with serve(look, end) as llm:
        llm.when = lambda: any(log.stat().st_size for log in tmp_path.glob("logs/*/launches/*.log"))
        monkeypatch.setenv("ANTHROPIC_BASE_URL", llm.url)
        session = await run(book, tmp_path)
    task = session.state.tasks["idea/1"]
    assert task.status == "done" and task.finding is not None and task.finding.answer is not None
    assert task.spent is not None and (task.spent.calls, task.spent.output_tokens) == (3, 4)
    grep, log, gpus = (block["content"] for block in llm.told)
    assert 'moe_a2a_backend == "' in grep
    assert "\nlog:" in log and "of base" in log
    assert "GPU 0: " in gpus
    assert "base" in llm.requests[0]["messages"][0]["content"][0]["text"]  # the board

    proposal = session.state.experiments["next"]
    assert (proposal.stage, proposal.proposed_by) == (Stage.PROPOSED, "idea/1")
    assert set(session.real_launches()) == {"base", "idea"}
    # What an LLM recommends is never applied by itself.
    assert "schedule-policy" not in session.state.launches[session.state.experiments["idea"].launches[-1]].config.args
    records = [json.loads(line) for line in (session.folder / "journal.jsonl").read_text().splitlines()]
    used = [record["data"]["tool"] for record in records if record.get("event") == "ToolUsed"]
    assert used == ["grep", "launch_log", "gpus"]


async def test_limits_that_cannot_be_understood_end_it_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNEBOT_SESSION_USD", "five")
    with pytest.raises(UserError, match="TUNEBOT_SESSION_USD is five, not a number"):
        await run(small_playbook(), tmp_path)
    assert not (tmp_path / "logs").exists()
