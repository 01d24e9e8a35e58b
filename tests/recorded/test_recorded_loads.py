"""Real loads of SGLang, replayed as they arrived: phases at the marks, never ready too early, causes found."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from agent.core.model import Phase
from agent.servers import server_kind
from agent.watch.watch import LoadWatch

from .conftest import RECORDED

MARKS = {
    "server_args": Phase.CONFIG,
    "init_dist_begin": Phase.DIST_INIT,
    "load_begin": Phase.LOAD_WEIGHTS,
    "load_end": Phase.KV_CACHE,
    "capture_begin": Phase.GRAPH_CAPTURE,
    "uvicorn_started": Phase.HTTP_START,
    "uvicorn_running": Phase.WARMUP,
    "fired_up": Phase.READY,
}
CASES = sorted(path.parent for path in RECORDED.glob("*/chunks.jsonl"))
KIND = server_kind("sglang", httpx.AsyncClient())


def chunks(case: Path) -> Iterator[tuple[float, bytes]]:
    for row in (case / "chunks.jsonl").read_text().splitlines():
        chunk = json.loads(row)
        yield chunk["t"], chunk["text"].encode() if "text" in chunk else base64.b64decode(chunk["b64"])


def expected(case: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((case / "expected.yaml").read_text())
    return loaded


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_phases_begin_at_their_marks(case: Path) -> None:
    marks = json.loads((case / "case.json").read_text())["marks"]
    watch = LoadWatch(KIND, None)
    began: dict[Phase, float] = {}
    for now, data in chunks(case):
        for update in watch.feed(data, now):
            if update.begins:
                assert update.phase not in began
                began[update.phase] = now
    assert list(began) == [phase for phase in KIND.phases if phase in began]
    for mark, phase in MARKS.items():
        if mark != "load_end":  # this mark is the first rank's, the phase ends with the last
            assert began.get(phase) == pytest.approx(marks.get(mark), abs=0.3) if mark in marks else phase not in began
    assert (Phase.READY in began) == expected(case)["was_ready"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if expected(case)["outcome"] == "failed"], ids=lambda case: case.name
)
def test_the_cause_is_found(case: Path) -> None:
    watch = LoadWatch(KIND, None)
    for now, data in chunks(case):
        watch.feed(data, now)
    failure = watch.diagnose(json.loads((case / "case.json").read_text()).get("exit_code"), stopped_by_us=False)
    want = expected(case)
    assert want["root_line"] in failure.evidence[0].text
    assert (failure.category, failure.phase) == (want["category"], want["phase"])
