"""The tools that look at launches: their logs by line, byte, rank and text; a running server over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.research.common import ResearchError
from agent.research.facts import LaunchFacts, SessionFacts

from .conftest import EVERYWHERE, SECRET, Bench
from .test_research_tools import texts, use

LOG = b"""starting
[2026-11-29 23:26:21 TP0] Load weight begin.
[2026-11-29 23:26:21 TP1] Load weight begin.
  a line without a prefix
bar 1%%\rbar 100%%
[2026-11-29 23:26:30 TP1] KeyError: 12
[2026-11-29 23:26:31 TP0] token=%s done
""" % SECRET.encode()


def launch(log: Path, name: str = "l1", **more: Any) -> LaunchFacts:
    facts: dict[str, Any] = {"experiment": "baseline", "stage": "loading", "is_up": True, "port": None}
    return LaunchFacts(launch=name, log=log, **{**facts, **more})


@pytest.fixture
def log(bench: Bench) -> Path:
    path = bench.home / "l2.log"
    path.write_bytes(LOG)
    gone = launch(bench.home / "gone.log", is_up=False, stage="stopped")
    bench.facts = SessionFacts(launches=(gone, launch(path, "l2", experiment="eagle3")))
    return path


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7]),
        ({"launch": "l2", "lines": 2}, [6, 7]),
        ({"launch": "current", "from_line": 3, "lines": 2}, [3, 4]),
        ({"launch": "last", "from_byte": 0, "lines": 1}, [1]),
        ({"from_byte": 8, "lines": 1}, [1]),
        ({"from_byte": 9, "lines": 1}, [2]),
        ({"rank": 1}, [3, 4, 5, 6]),
        ({"rank": 1, "match": "keyerror"}, [6]),
        ({"match": "LOAD", "lines": 1}, [3]),
        ({"match": "load", "from_line": 3}, [3]),
        ({"from_line": 99}, []),
    ],
)
async def test_the_log(bench: Bench, log: Path, given: dict[str, Any], lines: list[int]) -> None:
    reply = await use(bench, "launch_log", **given)
    assert [quote.line for quote in reply.quotes] == lines
    assert {quote.path for quote in reply.quotes} <= {"log:l2"}
    assert reply.note == "launch l2 of eagle3 (loading)"


@EVERYWHERE
async def test_a_line_of_the_log_is_cleaned_and_redacted(bench: Bench, log: Path) -> None:
    rows = texts(await use(bench, "launch_log"))
    assert (rows[4], rows[6]) == ("bar 100%", "[2026-11-29 23:26:31 TP0] token=‹redacted› done")


async def test_no_log(bench: Bench, log: Path) -> None:
    with pytest.raises(ResearchError, match="there is no log to read: No such file"):
        await use(bench, "launch_log", launch="l1")
    with pytest.raises(ResearchError, match=r"there is no launch l9; there are: l1 \(baseline\), l2 \(eagle3\)"):
        await use(bench, "launch_log", launch="l9")


async def test_a_long_log_is_read_from_its_end(bench: Bench, log: Path) -> None:
    log.write_bytes(b"[2026-11-29 23:26:21 TP3] x\n" * 300_000 + b"the end\n")
    reply = await use(bench, "launch_log", lines=2)
    assert [(quote.line, quote.text[-7:]) for quote in reply.quotes] == [
        (300_000, "TP3] x"[-7:].rjust(7)),
        (300_001, "the end"),
    ]


@asynccontextmanager
async def server(pages: dict[str, tuple[int, bytes]]) -> AsyncIterator[tuple[int, list[str]]]:
    """A server with those pages; its port, and the paths that were asked for."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode()
        asked.append(line.removesuffix(" HTTP/1.1"))
        status, body = pages.get(line.split()[1], (404, b""))
        if status:
            writer.write(b"HTTP/1.1 %d X\r\nconnection: close\r\nlocation: /v1/abort\r\n\r\n" % status + body)
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], asked


INFO = {
    "tp_size": 8,
    "model_path": "/models/Kimi",
    "api_key": "sk-server-secret-0",
    "admin_api_key": 12345678,
    "ssl_keyfile_password": None,
    "launch_command": ["python3", "--api-key", "sk-server-secret-0"],
    "some_new_field": "whatever-secret-1",
    "internal_states": [{"last_gen_throughput": 89.5, "note": "whatever-secret-1"}],
    "version": "0.5.10",
}


@EVERYWHERE
async def test_server_info_shows_what_is_known_to_be_harmless(bench: Bench, log: Path) -> None:
    async with server({"/get_server_info": (200, json.dumps(INFO).encode())}) as (port, asked):
        bench.facts = SessionFacts(launches=(launch(log, "l2", port=port, stage="ready"),))
        reply = await use(bench, "server_info")
    assert asked == ["GET /server_info", "GET /get_server_info"]
    shown = "\n".join(texts(reply))
    for part in ('"tp_size": 8', '"model_path": "/models/Kimi"', '"last_gen_throughput": 89.5', '"version": "0.5.10"'):
        assert part in shown
    assert "secret-" not in shown and "12345678" not in shown
    assert '"ssl_keyfile_password": null' in shown
    assert {quote.path for quote in reply.quotes} == {"server-info:l2"}


@EVERYWHERE
async def test_metrics(bench: Bench, log: Path) -> None:
    body = b'# HELP x\nvllm:num_requests_running 3\nvllm:e2e_bucket{le="1"} 5\nvllm:kv_cache_usage_perc 0.5\n'
    async with server({"/metrics": (200, body)}) as (port, _):
        bench.facts = SessionFacts(launches=(launch(log, port=port, stage="ready"),))
        rows = texts(await use(bench, "metrics"))
        assert rows == ["vllm:num_requests_running 3", "vllm:kv_cache_usage_perc 0.5"]
        assert texts(await use(bench, "metrics", match="kv_cache")) == ["vllm:kv_cache_usage_perc 0.5"]


@pytest.mark.parametrize(
    ("page", "refusal"),
    [
        ((404, b""), "answers 404 for /metrics"),
        ((302, b""), "answers 302"),  # and is not followed
        ((0, b""), "did not answer: RemoteProtocolError"),
        ((200, b"x\n" * (2 << 20)), "longer than 2 MiB"),
    ],
)
async def test_a_server_that_gives_none(bench: Bench, log: Path, page: tuple[int, bytes], refusal: str) -> None:
    async with server({"/metrics": page}) as (port, asked):
        bench.facts = SessionFacts(launches=(launch(log, port=port, stage="ready"),))
        with pytest.raises(ResearchError, match=refusal):
            await use(bench, "metrics")
    assert asked == ["GET /metrics"]


async def test_a_measurement_is_not_disturbed(bench: Bench, log: Path) -> None:
    async with server({}) as (port, asked):
        bench.facts = SessionFacts(launches=(launch(log, port=port, stage="measuring"),), measuring=True)
        for tool in ("server_info", "metrics"):
            with pytest.raises(ResearchError, match="a round is measured now"):
                await use(bench, tool)
        assert texts(await use(bench, "launch_log", lines=1))
    assert not asked


async def test_a_server_that_does_not_answer_yet(bench: Bench, log: Path) -> None:
    with pytest.raises(ResearchError, match="launch l2 is loading: no server of ours answers"):
        await use(bench, "server_info")
