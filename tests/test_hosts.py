"""The machines that the start screen lists, and what one says when it is asked."""

import json
from pathlib import Path

import pytest

from agent.core.views.entries import HostAnswer
from agent.dead_ends import keep_dead_ends
from agent.hosts import answer_of, ask_host, host_entries
from tests.test_dead_ends import FUSION, PLAIN


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_machines_of_both_files_and_of_earlier_sessions(tmp_path: Path) -> None:
    (tmp_path / "config" / "tunebot").mkdir(parents=True)
    mine = "gpu8: {kind: ssh, host: root@elsewhere}\nown: {kind: local, venv: ~/v}\n"
    (tmp_path / "config" / "tunebot" / "targets.yaml").write_text(mine)
    (tmp_path / "targets.yaml").write_text("gpu8: {kind: ssh, host: gpu8.lab}\n")
    for name in ("gpu8", "old:22"):
        keep_dead_ends(name, [FUSION], PLAIN)
    found = {entry.name: entry for entry in host_entries()}
    assert list(found) == ["local", "gpu8", "own", "ssh:old:22"]
    assert (found["gpu8"].where, found["gpu8"].file, found["gpu8"].dead_ends) == ("ssh gpu8.lab", "targets.yaml", 1)
    assert found["own"].where == "this machine, ~/v" and found["local"].dead_ends == 0
    assert (found["ssh:old:22"].kept, found["ssh:old:22"].dead_ends) == ("old:22", 1)


def test_a_file_with_problems_says_so(tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("gpu8: {kind: ssh}\n")
    broken = host_entries()[-1]
    assert broken.name == "targets.yaml" and "an ssh target needs 'host'" in broken.problem


@pytest.mark.parametrize(
    ("checks", "usable", "text"),
    [
        ([("gpus", "ok", "8 x X", ""), ("gpu memory", "ok", "nobody holds any", "")], True, "8 x X; nobody holds any"),
        ([("connection", "bad", "no answer", "is it up?")], False, "no answer (is it up?)"),
    ],
)
def test_what_the_doctor_says_in_one_line(checks: list[tuple[str, ...]], usable: bool, text: str) -> None:
    names = ("name", "state", "text", "hint")
    said = {"usable": usable, "checks": [dict(zip(names, check, strict=True)) for check in checks]}
    assert answer_of(json.dumps(said).encode()) == HostAnswer(usable=usable, text=text)


@pytest.mark.parametrize("junk", [b"", b"[]", b'{"checks": []}', b'{"checks": [{}]}', b"\xff"])
def test_no_answer_is_an_answer(junk: bytes) -> None:
    assert not answer_of(junk).usable


async def test_a_machine_that_is_not_there_is_told_in_words() -> None:
    answer = await ask_host("nowhere")
    assert answer == HostAnswer(usable=False, text=answer.text) and "there is no target nowhere" in answer.text


async def test_this_machine_answers() -> None:
    assert (await ask_host("local")).usable
