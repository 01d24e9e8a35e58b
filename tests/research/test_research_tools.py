"""The tools that an LLM may use on files, history, machine and packages: what they return, and what they refuse."""

import os
import subprocess
import sys
from typing import Any

import pytest

from agent.playbook.model import Strict
from agent.ports import TargetUnusable
from agent.research.common import ResearchError
from agent.research.tool import Reply, Scope
from agent.research.toolbox import TOOLS

from .conftest import EVERYWHERE, SECRET, Bench

ARGS = "sglang:srt/server_args.py"


async def use(bench: Bench, name: str, /, **given: Any) -> Reply:
    scope = Scope(sources=bench.sources, config=bench.config, host=bench.host, facts=lambda: bench.facts)
    return await TOOLS[name].use(scope, given)


def texts(reply: Reply) -> list[str]:
    return [quote.text for quote in reply.quotes]


def test_every_tool_has_a_closed_form() -> None:
    for tool in TOOLS.values():
        schema = tool.as_json()["input_schema"]
        assert issubclass(tool.given, Strict) and schema["additionalProperties"] is False
    assert not {"run", "write", "bash", "http_get"} & TOOLS.keys()


@EVERYWHERE
async def test_list(bench: Bench) -> None:
    for name in (".env", "hf_token", "notes.md"):
        (bench.tree / name).write_text("x" * 12)
    (bench.tree / "out").symlink_to(bench.home / ".ssh")
    reply = await use(bench, "list", path="sglang:")
    assert [row.split()[:2] for row in texts(reply)] == [["notes.md", "file"], ["out", "link"], ["srt", "folder"]]
    assert "12 bytes" in texts(reply)[0]
    assert reply.note == "2 whose names look like secrets are not shown"
    assert {quote.path for quote in reply.quotes} == {"list:sglang:"}


async def test_a_long_list_is_cut(bench: Bench) -> None:
    for number in range(230):
        (bench.tree / f"{number:03}.py").touch()
    reply = await use(bench, "list", path="sglang:")
    assert (len(reply.quotes), reply.note) == (200, "31 more are not shown")


@EVERYWHERE
async def test_stat(bench: Bench) -> None:
    os.utime(bench.tree / "srt" / "server_args.py", (0, 0))
    size = (bench.tree / "srt" / "server_args.py").stat().st_size
    assert texts(await use(bench, "stat", path=ARGS)) == [f"{ARGS}  file  {size} bytes  1970-01-01 00:00"]
    assert texts(await use(bench, "stat", path="sglang:srt"))[0].startswith("sglang:srt  folder  ")


@EVERYWHERE
async def test_read(bench: Bench) -> None:
    reply = await use(bench, "read", path=ARGS, start=13, lines=2)
    assert [(quote.path, quote.line) for quote in reply.quotes] == [(ARGS, 13), (ARGS, 14)]
    assert reply.note == "the file has 18 lines"
    around = await use(bench, "read", path=ARGS, around="flashinfer_cutlass", lines=3)
    assert [quote.line for quote in around.quotes] == [16, 17, 18]
    assert texts(await use(bench, "read", path=ARGS, start=999)) == []


@EVERYWHERE
async def test_grep(bench: Bench) -> None:
    (bench.tree / "config.json").write_text('{"a[0]": "(x)"}\n')
    (bench.tree / "token.json").write_text('{"a[0]": "(x)"}\n')
    assert [q.line for q in (await use(bench, "grep", pattern="ep_size +=", paths=["sglang:"])).quotes] == [12, 14]
    assert not (await use(bench, "grep", pattern="a[0]", literal=True, paths=["sglang:"])).quotes
    found = await use(bench, "grep", pattern="a[0]", literal=True, paths=["sglang:"], glob="*.json")
    assert [(quote.path, quote.text) for quote in found.quotes] == [("sglang:config.json", '{"a[0]": "(x)"}')]


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("read", {"path": "~/.ssh/id_rsa"}, "does not begin with the name of a source"),
        ("read", {"path": "sglang:../.ssh/id_rsa"}, "must stay inside the source"),
        ("read", {"path": "sglang:keys/known_hosts"}, "leads out of the source"),
        ("read", {"path": "/etc/passwd"}, "does not begin"),
        ("read", {"path": "sglang:srt/../../../etc/passwd"}, "must stay inside"),
        ("read", {"path": "sglang:a\0b"}, "is refused"),
        ("read", {"path": ["x"]}, "path: Input should be a valid string"),
        ("read", {"path": ARGS, "lines": -5}, "lines: Input should be greater"),
        ("read", {"path": ARGS, "lines": True}, "lines: Input should be"),
        ("read", {"path": ARGS, "around": "(a+)+$" + "b" * 2000}, "around: "),
        ("read", {"path": ARGS, "command": "id"}, "command: Extra inputs are not permitted"),
        ("read", {}, "path: Field required"),
        ("list", {"path": ARGS}, "is a file"),
        ("list", {"path": "sglang:keys"}, "leads out of the source"),
        ("list", {"path": "sglang:.git"}, "such files hold secrets"),
        ("list", {"path": "sglang:none"}, "does not exist"),
        ("stat", {"path": "sglang:.env"}, "such files hold secrets"),
        ("stat", {"path": "sglang:keys/id_rsa"}, "such files hold secrets"),
        ("grep", {"pattern": "PRIVATE", "paths": ["sglang:", "sglang:../.ssh"]}, "must stay inside"),
        ("grep", {"pattern": "x", "paths": "sglang:"}, "paths: "),
        ("grep", {"pattern": "x", "paths": []}, "paths: "),
        ("grep", {"pattern": "x", "paths": ["sglang:"] * 11}, "paths: "),
        ("grep", {"pattern": "x(", "paths": ["sglang:"]}, "grep failed"),
        ("grep", {"pattern": "a\0b", "paths": ["sglang:"]}, "characters that stand on no line"),
        ("grep", {"pattern": "x", "paths": ["sglang:"], "glob": "../*"}, "glob: "),
        ("grep", {"pattern": "x", "paths": ["sglang:"], "glob": "--include=*"}, "glob: "),
        ("git_log", {"path": "sglang:"}, "not a git repository"),
        ("git_show", {"path": ARGS, "rev": "--output=x"}, "rev: "),
        ("git_show", {"path": ARGS, "rev": "HEAD:x"}, "rev: "),
        ("git_show", {"path": ARGS, "rev": "a..b"}, "one commit"),
        ("git_show", {"path": "sglang:../.git", "rev": "HEAD"}, "must stay inside"),
        ("package_version", {"name": "--version"}, "name: "),
        ("package_version", {"name": "no-such-package-here"}, "has no package no-such-package-here"),
        ("launch_log", {"launch": "../../etc/passwd"}, "there is no launch"),
        ("server_info", {}, "there is no launch current; there are: none yet"),
        ("metrics", {"launch": "l1", "path": "/v1/abort"}, "path: Extra inputs"),
    ],
)
async def test_refusals(bench: Bench, name: str, given: dict[str, Any], refusal: str) -> None:
    (bench.tree / "keys").symlink_to(bench.home / ".ssh")
    with pytest.raises(ResearchError) as refused:
        await use(bench, name, **given)
    assert refusal in str(refused.value)
    assert not (bench.home / "x").exists()


def git(bench: Bench, *words: str) -> str:
    who = ["-c", "user.name=A B", "-c", "user.email=a@b.c", "-c", "commit.gpgSign=false", "-c", "protocol.allow=always"]
    done = subprocess.run(["git", *who, *words], cwd=bench.home, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(bench: Bench) -> Bench:
    """The tree lies in a work tree that begins above it, with a secret in each part."""
    git(bench, "init", "-q", "-b", "main")
    (bench.home / "above.py").write_text("above = 1\n")
    (bench.tree / ".env").write_text(f"KEY={SECRET}\n")
    git(bench, "add", "-A")
    git(bench, "commit", "-q", "-m", f"First {SECRET}")
    (bench.home / "above.py").write_text("above = 2\n")
    (bench.tree / ".env").write_text(f"KEY={SECRET}2\n")
    (bench.tree / "srt" / "server_args.py").write_text(f"ep_size = 8\ntoken = '{SECRET}'\n")
    git(bench, "commit", "-q", "-a", "-m", "Second \x1b[2J\n\nmore words")
    git(bench, "commit", "-q", "--allow-empty", "-m", "Touches nothing")
    return bench


@EVERYWHERE
async def test_git_log(repository: Bench) -> None:
    rows = texts(await use(repository, "git_log", path="sglang:"))
    assert [row.partition(": ")[2] for row in rows] == ["Second", "First ‹redacted›"]
    assert " A B: " in rows[0] and "a@b.c" not in rows[0]
    assert len(texts(await use(repository, "git_log", path=ARGS, count=1))) == 1


@EVERYWHERE
async def test_git_show(repository: Bench) -> None:
    reply = await use(repository, "git_show", rev="HEAD~1", path=ARGS)
    rows = texts(reply)
    assert "    more words" in rows and "+ep_size = 8" in rows and "+token = '‹redacted›'" in rows
    assert {quote.path for quote in reply.quotes} == {f"git:HEAD~1:{ARGS}"}
    folder = "\n".join(texts(await use(repository, "git_show", rev="main~1", path="sglang:")))
    assert "M\tsglang/srt/server_args.py".expandtabs(4) in folder
    assert ".env" not in folder and "above" not in folder
    later = await use(repository, "git_show", rev="HEAD~1", path=ARGS, start=4)
    assert later.quotes[0] == reply.quotes[3]
    with pytest.raises(ResearchError, match=r"git failed: .*nothing"):
        await use(repository, "git_show", rev="nothing", path=ARGS)


async def test_a_repository_runs_nothing_of_its_own(repository: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configuration, its attributes and the environment name programs; none of them is started."""
    bait = repository.home / "bait"
    bait.write_text(f"#!/bin/sh\necho $0 $* >> {repository.home}/owned\nexec cat\n")
    bait.chmod(0o755)
    programs = (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.bait.textconv",
        "diff.bait.command",
        "gpg.program",
    )
    for name in (*programs, "core.sshCommand", "filter.bait.smudge", "filter.bait.process", "core.editor"):
        git(repository, "config", name, str(bait))
    for name, value in (
        ("log.showSignature", "true"),
        ("core.hooksPath", str(repository.home)),
        ("pager.show", "true"),
    ):
        git(repository, "config", name, value)
    (repository.home / ".git" / "info").mkdir(exist_ok=True)
    (repository.home / ".git" / "info" / "attributes").write_text("* diff=bait filter=bait\n")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_PROXY_COMMAND", "GIT_EDITOR"):
        repository.target._env[name] = str(bait)
    for name, value in (("GIT_DIR", "/nowhere"), ("GIT_TRACE", f"{repository.home}/owned"), ("GIT_CONFIG_COUNT", "x")):
        repository.target._env[name] = value
    assert len(texts(await use(repository, "git_log", path="sglang:"))) == 2
    assert "+ep_size = 8" in texts(await use(repository, "git_show", rev="HEAD~1", path=ARGS))
    assert not (repository.home / "owned").exists()
    # The bait is good: git as anybody would call it takes it.
    subprocess.run(["git", "show", "HEAD~1"], cwd=repository.home, check=True, capture_output=True)
    assert (repository.home / "owned").exists()


async def test_a_commit_that_had_a_folder_there(repository: Bench) -> None:
    (repository.tree / "x").mkdir()
    for name in ("a", "hf_token"):
        (repository.tree / "x" / name).write_text("text\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "a folder")
    for name in ("a", "hf_token"):
        (repository.tree / "x" / name).unlink()
    (repository.tree / "x").rmdir()
    (repository.tree / "x").write_text("now a file\n")
    with pytest.raises(ResearchError, match="was a folder in HEAD"):
        await use(repository, "git_show", rev="HEAD", path="sglang:x")


@EVERYWHERE
async def test_gpus(bench: Bench) -> None:
    reply = await use(bench, "gpus")
    assert texts(reply)[0] == "GPU 0: RTX PRO 6000, SM 12.0, 97887 MiB, driver 580.1"
    assert "nvidia-smi" in reply.note
    bench.target.place.tools.mkdir()
    smi = bench.target.place.tools / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho index, memory.used\necho 0, 512 MiB\n")
    smi.chmod(0o755)
    assert texts(await use(bench, "gpus"))[-1] == "0, 512 MiB"


@EVERYWHERE
async def test_package_version(bench: Bench) -> None:
    bench.command = (sys.executable, "-m", "sglang.launch_server")
    rows = texts(await use(bench, "package_version", name="pytest-asyncio"))
    assert rows[0].startswith("pytest-asyncio 1.")
    assert any(row.startswith("requires pytest") for row in rows)
    bench.command = ("/nowhere/python3", "-m", "sglang.launch_server")
    with pytest.raises(TargetUnusable):
        await use(bench, "package_version", name="pytest")
