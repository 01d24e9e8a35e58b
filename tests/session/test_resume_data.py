"""A session goes on with the prompts that it began with, or not at all."""

from pathlib import Path

import pytest

from agent.bench.datafile import looking_from
from agent.resume import ResumeError, restore
from tests.core.conftest import playbook, started
from tests.journal.test_journal import write


def test_a_session_is_not_resumed_with_another_file_of_prompts(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text('{"prompt": "a"}\n')
    found = looking_from(tmp_path)("chats.jsonl")
    data = {"file": found.path, "sha256": found.sha256}
    book = playbook({"id": "base"}, workloads=[{"name": "single", "data": data}])
    write(tmp_path, [started(book)])
    assert restore(tmp_path, None).playbook == book
    chats.write_text('{"prompt": "another"}\n')
    with pytest.raises(ResumeError, match=r"workload single: .*chats.jsonl has other bytes"):
        restore(tmp_path, None)
    chats.unlink()
    with pytest.raises(ResumeError, match="there is no file"):
        restore(tmp_path, None)
