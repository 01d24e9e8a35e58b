"""targets.yaml: names for machines, and what is wrong with them."""

from pathlib import Path

import pytest

from agent.playbook.model import Playbook
from agent.ports import TargetUnusable
from agent.targets.choose import open_named, open_target
from agent.targets.file import TargetEntry, find_target, load_targets
from agent.targets.local import LocalTarget
from agent.targets.ssh import SshTarget
from tests.session.kit import parsed, small_playbook

GOOD = """
gpu8: {kind: ssh, host: ann@gpu8.example, workdir: /data/tunebot, gpus: 8, env: {HF_HOME: ~/hf, N: 1}, path: [~/bin]}
here:
  kind: local
  workdir: ~/work
toy: {kind: simulated, world: small}
"""


def test_a_good_file() -> None:
    found = load_targets(GOOD.encode(), "targets.yaml")
    assert isinstance(found, dict)
    assert found["gpu8"] == TargetEntry(
        kind="ssh",
        host="ann@gpu8.example",
        workdir="/data/tunebot",
        gpus=8,
        env={"HF_HOME": "~/hf", "N": "1"},
        path=("~/bin",),
    )
    assert (found["here"].kind, found["toy"].world) == ("local", "small")
    assert load_targets(b"", "t") == load_targets(b"{}", "t") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu8: {kind: ssh}", "targets.yaml:1:1: targets.gpu8: an ssh target needs 'host'"),
        ("gpu8: {kind: slurm}", "targets.yaml:1:14: targets.gpu8.kind: expected one of local, ssh, simulated"),
        ("gpu8: {kind: ssh, host: -oProxyCommand=x}", "cannot be the name of a host"),
        ("gpu8: {kind: ssh, host: x, hosts: y}", "unknown key 'hosts' in targets.gpu8"),
        ("gpu8: {kind: local, gpus: 2}", "'gpus' belongs to 'kind: ssh'"),
        ("gpu8: {kind: ssh, host: x, env: {A: null}}", "targets.gpu8.env.A: expected text, found nothing"),
        ("local: {kind: local}", "'local' means something already"),
        ("- a", "the file is a mapping of names to targets, found a list"),
        ("a: &x {kind: local}", "anchors"),
        ("a: [", "1:"),
    ],
)
def test_problems_have_their_place(text: str, words: str) -> None:
    found = load_targets(text.encode(), "targets.yaml")
    assert isinstance(found, list)
    assert words in "\n".join(map(str, found))


def test_the_first_file_that_has_the_name_wins(tmp_path: Path) -> None:
    ours, users = tmp_path / "targets.yaml", tmp_path / "user.yaml"
    ours.write_text("a: {kind: simulated}")
    users.write_text("a: {kind: local}\nb: {kind: local}")
    files = [tmp_path / "none.yaml", ours, users]
    kinds = {name: entry.kind for name in "abc" if (entry := find_target(name, files))}
    assert kinds == {"a": "simulated", "b": "local"}
    ours.write_text("a: {kind: nonsense}")
    with pytest.raises(TargetUnusable, match="kind: expected one of"):
        find_target("b", files)


def book(target: object) -> Playbook:
    return parsed(small_playbook(target=target))


async def test_names_of_the_file_are_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "targets.yaml").write_text(GOOD)
    for name, target in {
        "gpu8": open_target(None, book("gpu8"), tmp_path),
        "box": open_target(None, book({"ssh": "box", "gpus": 2}), tmp_path),
        "ann@box:22": open_target("ssh:ann@box:22", book("local"), tmp_path),
    }.items():
        assert isinstance(target, SshTarget) and target.name == name
        await target.close()
    for name in ("here", "toy"):
        target = open_named(name, tmp_path / "session")
        assert isinstance(target, LocalTarget) and target.name == name
        await target.close()
    for name in ("nowhere", "ssh:", "ssh:-x", "local:x"):
        with pytest.raises(TargetUnusable, match="there is no target"):
            open_named(name, tmp_path)
