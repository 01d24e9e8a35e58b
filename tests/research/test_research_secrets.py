"""Twelve secrets on ten routes, split at every byte where a route is a stream: none arrives anywhere."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from agent.journal.codec import encode
from agent.ports import CommandResult
from agent.redact import Redactor
from agent.research.facts import LaunchFacts, SessionFacts

from .conftest import Bench, asker
from .fake_llm import answers, claim, serve, uses

BODY = base64.b64encode(bytes(range(7, 151))).decode()
SENTINELS = {
    "known variable": "plain-text-of-a-variable-01",
    "known flag": "plain-text-of-a-flag-02",
    "hub": "hf_SENTINELsentinel0123456789abc",
    "claude": "sk-ant-SENTINEL-sentinel-04-0123456789",
    "openai": "sk-SENTINELsentinel050123456789",
    "github": "ghp_SENTINELsentinel0601234567890123",
    "github-fine": "github_pat_SENTINELsentinel070123456789",
    "aws": "AKIASENTINEL08SENTIN",
    "google": "AIzaSENTINELsentinel090123456789012345",
    "bearer": "SENTINEL.bearer.10/0123456789",
    "url": "user11:SENTINELpassword11",
    "key": BODY[64:128],
}
LINES = [
    f"variable {SENTINELS['known variable']} and flag {SENTINELS['known flag']} needle",
    f"needle {SENTINELS['hub']} {SENTINELS['claude']}, {SENTINELS['openai']}; ({SENTINELS['github']})",
    f"needle \"{SENTINELS['github-fine']}\" '{SENTINELS['aws']}' <{SENTINELS['google']}>",
    f"needle Authorization: Bearer {SENTINELS['bearer']}",
    f"needle https://{SENTINELS['url']}@example.com/x",
    "-----BEGIN PRIVATE KEY-----",
    *(BODY[at : at + 64] for at in range(0, len(BODY), 64)),
    "-----END PRIVATE KEY-----",
]
TEXT = "\n".join(LINES)


@pytest.fixture
async def leaky(bench: Bench) -> Any:
    """Every route is full of secrets: files, history, log, server, playbook, board."""
    (bench.tree / "leaky.py").write_text(TEXT + "\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", TEXT]):
        subprocess.run(["git", *words], cwd=bench.tree, check=True)
    log = bench.home / "l1.log"
    log.write_text(TEXT + "\n")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readuntil(b"\r\n\r\n")
        told = json.dumps({"version": TEXT, "model_path": LINES, "tp_size": 8}) if b"info" in line else TEXT
        writer.write(b"HTTP/1.1 200 X\r\nconnection: close\r\n\r\n")
        for byte in told.encode():
            writer.write(bytes([byte]))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    facts = LaunchFacts(launch="l1", experiment="base", stage="ready", is_up=True, port=port, log=log)
    bench.facts = SessionFacts(launches=(facts,), config_of=lambda each: bench.config if each == "base" else None)
    bench.env = {"MY_TOKEN": SENTINELS["known variable"], "NOTE": TEXT}
    bench.args = {"api-key": SENTINELS["known flag"], "chat-template": TEXT}
    bench.redact = Redactor.of({"MY_TOKEN": SENTINELS["known variable"]}, [("api-key", SENTINELS["known flag"])])
    bench.board = TEXT
    async with server:
        yield bench


CALLS = [
    ("read", {"path": "sglang:leaky.py"}),
    ("read", {"path": "sglang:leaky.py", "start": 7, "lines": 2}),
    ("grep", {"pattern": ".", "paths": ["sglang:leaky.py"]}),
    ("grep", {"pattern": f"{TEXT[:90]}", "paths": ["sglang:leaky.py"]}),
    *(("grep", {"pattern": line, "literal": True, "paths": ["sglang:leaky.py"]}) for line in LINES[:5]),
    ("git_log", {"path": "sglang:"}),
    ("git_show", {"rev": "HEAD", "path": "sglang:leaky.py"}),
    ("launch_log", {}),
    ("launch_log", {"from_line": 7, "lines": 1}),
    ("server_info", {}),
    ("metrics", {}),
    (TEXT, {"path": "sglang:"}),
    ("read", {"path": TEXT}),
]


def leaks(text: str) -> list[str]:
    return [name for name, value in SENTINELS.items() if value in text]


async def test_no_secret_arrives_anywhere(leaky: Bench) -> None:
    argvs: list[Sequence[str]] = []
    run = leaky.target.run

    async def recorded(argv: Sequence[str], **more: Any) -> CommandResult:
        argvs.append(argv)
        return await run(argv, **more)

    leaky.target.run = recorded  # type: ignore[method-assign]
    end = answers(
        TEXT,
        claims=[claim(TEXT, 2, TEXT, TEXT), claim("leaky.py", 2, LINES[1], LINES[1])],
        flags=[{"name": "chat-template", "value": each} for each in LINES[:5]] + [{"name": TEXT, "value": TEXT}],
        risks=[TEXT, *LINES[:5]],
        experiment={"id": "x", "based_on": "base", "why": TEXT, "args": [{"name": "schedule-policy", "value": "fcfs"}]},
    )
    async with serve(uses(*CALLS), end) as llm:
        llm.piece = 1
        leaky.asker = asker(llm.url)
        status, finding = await leaky.run({"ask": TEXT})
    assert status == "done"
    assert len(leaky.used) == len(CALLS)
    # What the LLM said itself goes back to it as it was; all else that it is sent is ours.
    sent = [{**body, "messages": [m for m in body["messages"] if m["role"] == "user"]} for body in llm.requests]
    assert not leaks(json.dumps(sent))
    assert not leaks(json.dumps([encode(event) for event in leaky.told]))
    assert not leaks(repr(finding))
    assert not leaks(json.dumps(argvs))
    assert finding.proposal is not None and finding.answer is not None
    # The routes were open: what is no secret did arrive.
    assert json.dumps(sent).count("needle") > 20
    assert "needle" in finding.summary + finding.answer.text + finding.proposal.why


async def test_an_error_of_the_api_tells_none(leaky: Bench) -> None:
    for line in LINES[:5]:
        body = {"type": "error", "error": {"type": "invalid_request_error", "message": line}}
        async with serve((400, body)) as llm:
            leaky.asker = asker(llm.url)
            status, finding = await leaky.run({"ask": "anything?"})
        assert status == "failed" and not leaks(finding.summary)
