"""The dead ends of a target: kept, read again, and nothing that a torn or foreign file can spoil."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.scope import KnownDeadEnd
from agent.dead_ends import keep_dead_ends, read_dead_ends
from agent.paths import dead_ends_file
from agent.redact import Redactor

PLAIN = Redactor({})
FUSION = KnownDeadEnd(
    experiment="fusion",
    word="ruled-out",
    reason="would fail: no SM12",
    at=1_796_000_000.0,
    session="20261128-101500-x-1a2b",
    environment="~/venv/bin/python3",
    args={"enable-x": True, "list": ("a", "b"), "gone": None},
    env={"NCCL_ALGO": "Tree"},
    scope={"flashinfer": "0.6.3"},
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_what_was_kept_is_read_again() -> None:
    assert read_dead_ends("gpu8") == ()
    assert keep_dead_ends("gpu8", [FUSION], PLAIN) is None
    assert read_dead_ends("gpu8") == (FUSION,)
    assert read_dead_ends("gpu9") == ()
    assert dead_ends_file("gpu8").stat().st_mode & 0o777 == 0o600


def test_the_same_end_is_kept_once() -> None:
    keep_dead_ends("gpu8", [FUSION], PLAIN)
    size = dead_ends_file("gpu8").stat().st_size
    keep_dead_ends("gpu8", [FUSION], PLAIN)
    assert dead_ends_file("gpu8").stat().st_size == size


def test_the_last_word_counts_for_each_idea_in_each_environment() -> None:
    later = replace(FUSION, at=FUSION.at + 9, reason="another", experiment="renamed")
    elsewhere = replace(FUSION, environment="/other/python3")
    keep_dead_ends("gpu8", [FUSION, elsewhere, later], PLAIN)
    assert read_dead_ends("gpu8") == (elsewhere, later)
    keep_dead_ends("gpu8", [replace(later, lives=True, word="keep")], PLAIN)
    assert read_dead_ends("gpu8") == (elsewhere,)


@pytest.mark.parametrize("name", ["a/b", "..", "user@host:22", "ü"])
def test_a_target_of_any_name_has_a_file_in_the_folder(name: str, state: Path) -> None:
    assert keep_dead_ends(name, [FUSION], PLAIN) is None
    assert read_dead_ends(name) == (FUSION,)
    (file,) = (state / "tunebot" / "dead-ends").iterdir()
    assert file.is_file()


@pytest.mark.parametrize("junk", [b'{"experiment": "torn', b"[]\n1\n\xff\xfe\n" + b"[" * 100_000, b'{"scope": 1}'])
def test_torn_and_foreign_lines_are_skipped(junk: bytes) -> None:
    keep_dead_ends("gpu8", [], PLAIN)
    dead_ends_file("gpu8").parent.mkdir(parents=True)
    dead_ends_file("gpu8").write_bytes(junk)
    keep_dead_ends("gpu8", [FUSION], PLAIN)
    assert read_dead_ends("gpu8") == (FUSION,)


def test_secrets_stay_out_of_it() -> None:
    secret = replace(FUSION, reason="failed with hunter2-secret", env={"X": "hunter2-secret"})
    keep_dead_ends("gpu8", [secret], Redactor({"MY_TOKEN": "hunter2-secret"}))
    assert b"hunter2" not in dead_ends_file("gpu8").read_bytes()


def test_a_disk_that_does_not_take_it_is_told(state: Path) -> None:
    (state / "tunebot").write_text("")
    problem = keep_dead_ends("gpu8", [FUSION], PLAIN)
    assert problem is not None and "not saved" in problem
