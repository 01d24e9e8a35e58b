"""The answers about small logs, and that mutated logs give the same ones."""

# ruff: noqa: E501 - log lines are as long as servers write them

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.servers import KINDS
from agent.watch.engine import LogEngine
from agent.watch.outcome import Diagnosis, conclude
from agent.watch.watch import LoadWatch

from .dying import deaths, named
from .samples import SAMPLES, Sample

NOISE = (
    "[2026-03-02 10:00:20 TP0] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.",
    "host0:1:1 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file",
    "/opt/x.py:1: FutureWarning: this is deprecated, and out of memory errors are not supported\n  warnings.warn(",
    '[2026-03-02 10:00:20] INFO:     10.0.0.1:4 - "GET /health HTTP/1.1" 503 Service Unavailable',
    '[2026-03-02 10:00:20] HTTP Request: HEAD https://huggingface.co/big/config.json "HTTP/1.1 404 Not Found"',
    "[W626 08:49:56.6 socket.cpp:200] [c10d] The hostname of the client socket cannot be retrieved. err=-3",
    "[2026-03-02 10:00:20 TP0] The following error message 'operation scheduled before its operands' can be ignored.",
)


def answer(log: str | bytes, server: str, cuts: list[int] | None = None) -> Diagnosis:
    data = log.encode() if isinstance(log, str) else log
    engine = LogEngine(KINDS[server](None))  # type: ignore[arg-type]
    places = sorted(min(cut, len(data)) for cut in cuts or [])
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        for _ in engine.feed(data[start:end]):
            pass
    for _ in engine.finish():
        pass
    return conclude(engine)


def summary(found: Diagnosis) -> tuple[object, ...]:
    return found.outcome, found.category, str(found.phase), found.rank


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_answer(sample: Sample) -> None:
    found = answer(sample.log, sample.server)
    assert summary(found) == (sample.outcome, sample.category, sample.phase, sample.rank), found
    assert (found.root is None) if sample.root is None else (found.root is not None and sample.root in found.root.text)
    assert "input_value" not in found.reason


def turned_ranks(log: str, by: int) -> str:
    return re.sub(
        r"\bTP(\d)\b|\bGPU (\d) has",
        lambda m: f"TP{(int(m[1]) + by) % 4}" if m[1] else f"GPU {(int(m[2]) + by) % 4} has",
        log,
    )


def later(log: str, hours: int) -> str:
    return re.sub(r"(2026-03-02 |11-30 )(\d\d):", lambda m: f"{m[1]}{(int(m[2]) + hours) % 24:02d}:", log)


def noisy(log: str, places: list[tuple[float, int]]) -> str:
    """Healthy lines between the messages, never inside a block."""
    rows = log.split("\n")
    free = [
        i
        for i, row in enumerate(rows)
        if (i and row.startswith("[2026") and "Traceback" not in row and rows[i - 1] == "") or i == 1
    ]
    for share, kind in sorted(places, reverse=True):
        if free:
            rows.insert(free[int(share * (len(free) - 1))], NOISE[kind])
    return "\n".join(rows)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    sample=st.sampled_from(SAMPLES),
    by=st.integers(0, 3),
    hours=st.integers(0, 9),
    path=st.sampled_from(["/opt", "/home/user/venv/lib/python3.12/site-packages", "/v2"]),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, len(NOISE) - 1)), max_size=4),
    cuts=st.lists(st.integers(0, 4000), max_size=30),
)
def test_a_mutated_log_gives_the_same_answer(
    sample: Sample, by: int, hours: int, path: str, places: list[tuple[float, int]], cuts: list[int]
) -> None:
    log = later(turned_ranks(sample.log, by), hours).replace("/opt", path).replace("/models/big", "/data/other-model")
    rank = sample.rank if sample.rank is None or "Rank 1" in sample.log else (sample.rank + by) % 4
    if sample.server == "sglang" and sample.category not in ("cli-arguments", "hang-silent"):
        log = noisy(log, places)
    found = answer(log, sample.server, cuts)
    assert summary(found) == (sample.outcome, sample.category, sample.phase, rank)


@pytest.mark.parametrize(
    "mark",
    [
        "2026-11-29T23:26:21.123456789Z ",
        "web-1  | ",
        "[pod/llm-0/server] ",
        "Nov 30 00:36:01 node7 sglang[4711]: ",
        "2026-11-29T23:26:21+0000 node7 sglang[4711]: ",
        "> ",
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_prefixes_of_launchers_and_shippers(mark: str, ending: str) -> None:
    for sample in SAMPLES:
        log = "".join(f"{mark}\x1b[1m{row}\x1b[0m{ending}" for row in sample.log.splitlines())
        assert summary(answer(log, sample.server))[:3] == (sample.outcome, sample.category, sample.phase), sample.name


@settings(deadline=None)
@given(data=st.binary(max_size=3000), server=st.sampled_from(sorted(KINDS)))
def test_any_bytes_have_an_answer(data: bytes, server: str) -> None:
    assert answer(data, server).reason


@settings(deadline=None, max_examples=60)
@given(
    sample=st.sampled_from(SAMPLES),
    places=st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=8)), max_size=20),
)
def test_a_damaged_log_has_an_answer(sample: Sample, places: list[tuple[int, bytes]]) -> None:
    data = bytearray(sample.log.encode())
    for place, junk in places:
        data[place : place + len(junk)] = junk
    assert answer(bytes(data), sample.server).reason


@pytest.mark.parametrize("seed", range(25))
def test_of_eight_ranks_that_die_at_once_the_first_is_named(seed: int) -> None:
    case = deaths(seed)
    found = named(case)
    assert (found.outcome, found.rank) == ("failed", case.ledger[0])


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.outcome == "failed"], ids=lambda sample: sample.name)
def test_the_board_gives_the_reason_that_explain_gives(sample: Sample) -> None:
    watch = LoadWatch(KINDS[sample.server](None), None)  # type: ignore[arg-type]
    watch.feed(sample.log.encode(), 1.0)
    failure, found = watch.diagnose(-9, stopped_by_us=False), answer(sample.log, sample.server)
    assert (failure.reason, failure.category, failure.rank) == (found.reason, found.category, found.rank)
    assert failure.evidence[0].text == (found.root.text if found.root else None)
