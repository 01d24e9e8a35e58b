"""targets.yaml: names for machines, and what is wrong with them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from agent.playbook.model import Playbook
from agent.ports import Target, TargetUnusable
from agent.targets.choose import open_named, open_target
from agent.targets.file import TargetEntry, find_target, load_targets
from agent.targets.local import LocalTarget
from agent.targets.ssh import SshTarget
from tests.session.kit import parsed, small_playbook
from tests.sshd import Sshd
from tests.targets.kit import PYTHON, log_bytes, spec, until

GOOD = """
gpu8: {kind: ssh, host: ann@gpu8.example, workdir: /data/tunebot, gpus: 8, env: {HF_HOME: ~/hf, N: 1}, path: [~/bin]}
here:
  kind: local
  workdir: ~/work
toy: {kind: simulated, world: small}
boxed:
  kind: ssh
  host: boxed
  docker: {run: [docker, run, --rm, --gpus, all, --network, host, "lmsysorg/sglang:v0.5.9"], stop_timeout: 30s}
  read: [~/src/sglang, /opt/flashinfer]
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
    boxed = found["boxed"]
    assert boxed.docker and (boxed.docker.run[-1], boxed.docker.stop_timeout) == ("lmsysorg/sglang:v0.5.9", 30.0)
    assert boxed.trees == {"sglang": "~/src/sglang", "flashinfer": "/opt/flashinfer"}
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
        ("a: {kind: local, venv: v}", "targets.yaml:1:24: targets.a.venv: the path must begin with / or ~/, found 'v'"),
        ("a: {kind: local, venv: ~/v, conda: x}", "'venv' and 'conda' exclude each other"),
        ("a: {kind: simulated, venv: ~/v}", "it takes only 'world'"),
        ("a: {kind: local, read: [src]}", "targets.yaml:1:24: targets.a.read: src is no folder such as"),
        ("a: {kind: local, read: [/]}", "/ is no folder such as"),
        ("a: {kind: local, read: [~/x/../../y]}", "is no folder such as"),
        ("a: {kind: local, read: [~/a/x, /b/x]}", "two folders are called x"),
        (
            "a: {kind: local, docker: {run: [docker, exec, c]}}",
            "targets.a.docker.run: what `docker exec` starts cannot",
        ),
        ("a: {kind: local, docker: {run: [docker, image]}}", "expected [docker, run, OPTIONS..., IMAGE]"),
        ("a: {kind: local, docker: {run: [docker, run, image]}}", "--network host is needed"),
        ("a: {kind: local, docker: {run: [docker, run, -id, image]}}", "--detach cannot be here: tunebot watches"),
        ("a: {kind: local, docker: {run: [docker, run, --restart=always, image]}}", "--restart cannot be here"),
        ("a: {kind: local, docker: {run: [d, run, --net=host, i], stop_timeout: 30}}", "write the unit, such as 30s"),
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
    boxed = open_named("boxed", tmp_path)
    assert list(boxed.trees) == ["sglang", "flashinfer"]
    await boxed.close()
    for name in ("nowhere", "ssh:", "ssh:-x", "local:x"):
        with pytest.raises(TargetUnusable, match="there is no target"):
            open_named(name, tmp_path)


def environment(folder: Path) -> Path:
    """Something that looks like a venv or a conda environment. Its python3 says where it is and what it was told."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python3"
    shown = '"${VIRTUAL_ENV-None}" "${CONDA_PREFIX-None}" "${CONDA_DEFAULT_ENV-None}"'
    # tunebot's own programs run with it too.
    python.write_text(f'#!/bin/sh\n[ $# = 0 ] && exec echo {folder} {shown}\nexec {PYTHON[0]} "$@"\n')
    python.chmod(0o755)
    return folder


Opened = Callable[..., Target]


@pytest.fixture(params=["local", "ssh"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Opens a target with these entries in targets.yaml; its home is `home`."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "tunebot").mkdir(parents=True)
    kind: dict[str, object] = {"kind": "local"}
    if request.param == "ssh":
        sshd: Sshd = request.getfixturevalue("shared_sshd")
        (home / ".ssh").mkdir()
        (home / ".ssh" / "config").write_text(sshd.config.read_text())
        kind = {"kind": "ssh", "host": "box", "env": {"HOME": str(home)}}

    def open_box(**entry: object) -> Target:
        text = yaml.safe_dump({"box": {**kind, "workdir": str(tmp_path / "work"), **entry}})
        (tmp_path / "config" / "tunebot" / "targets.yaml").write_text(text)
        return open_named("box", tmp_path)

    return open_box


async def said(target: Target) -> str:
    """What the python3 of the target's environment says, as a command and as a server."""
    try:
        command = (await target.run(["python3"], timeout_s=10.0)).output.decode()
        await target.launch(spec("l1", "python3"))
        assert await until(lambda: log_bytes(target, "l1", 0)) == command.encode()
        return command.strip()
    finally:
        await target.stop("l1", 1.0)
        await target.close()


async def test_a_venv_is_set_for_all_that_runs_there(opened: Opened, tmp_path: Path) -> None:
    venv = environment(tmp_path / "home" / "v")
    assert await said(opened(venv="~/v")) == f"{venv} {venv} None None"


async def test_a_conda_environment_is_set_for_all_that_runs_there(opened: Opened, tmp_path: Path) -> None:
    there = environment(tmp_path / "home" / "miniforge3" / "envs" / "sg")
    assert await said(opened(conda="~/miniforge3/envs/sg")) == f"{there} None {there} sg"


async def test_a_conda_environment_is_found_by_name(opened: Opened, tmp_path: Path) -> None:
    home = tmp_path / "home"
    listed, usual = environment(home / "elsewhere" / "one"), environment(home / "miniforge3" / "envs" / "two")
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"/gone/one\n{listed}\n{usual}\n{home}/elsewhere/both\n")
    for name, prefix in (("one", listed), ("two", usual)):
        target = opened(conda=name)
        assert (await target.run(["python3"], timeout_s=10.0)).output.decode() == f"{prefix} None {prefix} {name}\n"
        await target.close()


async def test_an_environment_that_is_not_there_is_said(opened: Opened, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "empty").mkdir()
    for folder in ("elsewhere/both", "miniforge3/envs/both"):
        environment(home / folder)
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{home}/elsewhere/both\n")
    for entry, words in (
        ({"venv": "~/none"}, "the venv ~/none is not there"),
        ({"venv": "~/empty"}, "the venv ~/empty has no python3 that can be started"),
        ({"conda": "none"}, "there is no conda environment none"),
        ({"conda": "both"}, "there are several conda environments both: .*elsewhere/both, .*envs/both"),
    ):
        with pytest.raises(TargetUnusable, match=words) as caught:
            target = opened(**entry)
            try:
                await target.exists("~/")
            finally:
                await target.close()
        assert caught.value.hint
