"""`tunebot try`: one experiment on the baseline of the last session, as a playbook that one can keep."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.attempt import fits, make_attempt
from agent.cli import main
from agent.core.model import Host
from agent.core.reduce import initial
from agent.core.views.basics import value_text
from agent.diagnostics import UserError
from agent.fragments import shipped_fragments
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.playbook.write import yaml_text
from agent.servers.known_flags import all_known_flags
from agent.sessions import fold, session_folders
from tests.core.conftest import HOST, playbook, started
from tests.session.kit import small_playbook
from tests.test_sessions import record

PLAYBOOKS = Path(__file__).parent.parent / "playbooks"


def recorded(logs: Path, name: str, book: Playbook, host: Host = HOST) -> None:
    record(logs / name, [replace(started(book), host=host, session=name)])


def made(logs: Path, target: str, *words: str) -> Playbook:
    return make_attempt(logs, target, words).playbook


def test_the_baseline_and_one_change(tmp_path: Path) -> None:
    book = playbook({"id": "base", "args": {"mem-fraction-static": "0.80"}}, {"id": "other", "args": {"ep-size": "2"}})
    recorded(tmp_path, "20261130-101500-a-0001", book)
    words = ("cuda-graph-max-bs=010", "enable-mscclpp", "mem-fraction-static=null", "ENV:NCCL_ALGO=a b")
    attempt = make_attempt(tmp_path, "local", words)
    base, change = attempt.playbook.experiments
    assert base == book.experiments[0]
    assert change.args == {"cuda-graph-max-bs": "010", "enable-mscclpp": True, "mem-fraction-static": None}
    assert change.env == {"NCCL_ALGO": "a b"} and change.based_on == "base"
    assert attempt.playbook.workloads == book.workloads and attempt.playbook.objective == book.objective
    assert attempt.session == "20261130-101500-a-0001"
    assert attempt.file.parent == tmp_path and attempt.file.stat().st_mode & 0o777 == 0o600
    assert load_playbook(attempt.file.read_bytes(), "x", all_known_flags()) == attempt.playbook


def test_research_is_not_done_again(tmp_path: Path) -> None:
    base = {"id": "base", "research": [{"ask": "Why is it slow?"}], "revisit": []}
    recorded(tmp_path, "20261130-101500-a-0001", playbook(base))
    assert made(tmp_path, "local", "ep-size=2").experiments[0].research == ()


def test_the_newest_session_on_that_target(tmp_path: Path) -> None:
    def of(speed: str, target: Any) -> Playbook:
        return playbook({"id": "base", "args": {"max-running-requests": speed}}, target=target)

    recorded(tmp_path, "20261130-100000-a-0001", of("1", "local"))
    recorded(tmp_path, "20261130-110000-a-0002", of("2", "local"))
    recorded(tmp_path, "20261130-120000-a-0003", of("3", {"ssh": "gpu8", "gpus": 8}))
    (tmp_path / "20261130-130000-a-0004").mkdir()
    (tmp_path / "20261130-130000-a-0004" / "journal.jsonl").write_text("junk\n")
    assert made(tmp_path, "local", "ep-size=2").experiments[0].args == {"max-running-requests": "2"}
    there = made(tmp_path, "gpu8", "ep-size=2")
    assert there.experiments[0].args == {"max-running-requests": "3"}
    assert not isinstance(there.target, str) and there.target.gpus == 8


@pytest.mark.parametrize(
    ("target", "playbooks", "host", "expected"),
    [
        ("local", "local", "local", True),
        ("simulated:small", "simulated", "simulated", True),
        ("simulated", "simulated:small", "simulated", True),
        ("simulated", "local", "simulated", True),
        ("gpu8", {"ssh": "gpu8"}, "node17", True),
        ("gpu9", {"ssh": "gpu8"}, "node17", False),
        ("local", "simulated", "simulated", False),
    ],
)
def test_which_sessions_fit(target: str, playbooks: Any, host: str, expected: bool) -> None:
    start = replace(started(playbook(target=playbooks)), host=Host(name=host))
    assert fits(target, start) is expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cuda-graph-max-sb=1"], "did you mean 'cuda-graph-max-bs'"),
        (["tp=8"], "like this in base already"),
        (["ENV:X"], "needs a value"),
        (["=3"], "no flag"),
        (["mem-fraction-static=null"], "to take away"),
    ],
)
def test_what_makes_no_experiment_is_told_and_nothing_written(tmp_path: Path, words: Sequence[str], said: str) -> None:
    recorded(tmp_path, "20261130-101500-a-0001", playbook())
    with pytest.raises(UserError, match=said):
        make_attempt(tmp_path, "local", words)
    assert list(tmp_path.glob("*.yaml")) == []


def test_without_a_session_there_is_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "local", "ep-size=2", "--logs", str(tmp_path)]) == 2
    assert "no session" in capsys.readouterr().err


def test_a_secret_that_no_journal_keeps(tmp_path: Path) -> None:
    recorded(tmp_path, "20261130-101500-a-0001", playbook({"id": "base", "args": {"api-key": "‹redacted:api-key:1f›"}}))
    with pytest.raises(UserError, match="secret"):
        made(tmp_path, "local", "ep-size=2")


@pytest.mark.parametrize("file", sorted(PLAYBOOKS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_playbook_survives_being_written(file: Path) -> None:
    book = load_playbook(file.read_bytes(), file.name, all_known_flags(), fragments=shipped_fragments())
    assert isinstance(book, Playbook)
    assert load_playbook(yaml_text(book).encode(), "again.yaml", all_known_flags()) == book


def test_end_to_end_on_a_simulated_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(small_playbook(name="small"), sort_keys=False))
    logs = ["--headless", "--logs", str(tmp_path / "logs")]
    assert main(["run", str(file), "--target", "simulated:small", *logs]) == 0
    assert main(["try", "simulated:small", "ep-size=2", *logs]) == 0
    said = capsys.readouterr().err
    written = next((tmp_path / "logs").glob("*-try-ep-size-2-*.yaml"))
    assert f"playbook: {written}" in said
    state = fold(session_folders(tmp_path / "logs")[0])
    assert state.playbook.name == "try-ep-size-2" and state.playbook.target == "simulated:small"
    verdict = state.experiments["ep-size-2"].verdict
    # How much it gains depends on how busy this machine is; that it was measured does not.
    assert verdict is not None and verdict.gain is not None
    assert value_text(state, state.experiments["ep-size-2"])
    assert set(initial(started(state.playbook)).experiments) == {"base", "ep-size-2"}
