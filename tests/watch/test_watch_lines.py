"""Cutting a log into lines: every chunking gives the same lines, whatever the bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.watch.lines import LINE_KEPT, Line, LineSplitter
from agent.watch.records import record

PIECES = st.sampled_from(
    [
        b"\n", b"\r", b"\r\n", b"[2026-11-29 23:26:21 TP1] Load weight begin",
        b"[20", b"26-11-29", b" 50%|##  | 1/2 [00:01",
        b"\xff\xfe", "█▊é".encode(), b"\x1b[1;33mx\x1b[0m", b"\x1b", b"", b"Traceback", b"y" * 6000, b"\x00",
    ]
)  # fmt: skip
LOGS = st.lists(st.one_of(PIECES, st.binary(max_size=12)), max_size=30).map(b"".join)


def read(*chunks: bytes) -> list[Line]:
    splitter = LineSplitter()
    return [line for chunk in chunks for line in splitter.feed(chunk)] + list(splitter.end())


@settings(deadline=None)
@given(log=LOGS, cuts=st.lists(st.integers(0, 40_000), max_size=20))
def test_any_chunking_gives_the_same_lines(log: bytes, cuts: list[int]) -> None:
    places = sorted(min(cut, len(log)) for cut in cuts)
    chunks = [log[a:b] for a, b in zip([0, *places], [*places, len(log)], strict=True)]
    assert read(*chunks) == read(log)


@settings(deadline=None)
@given(log=LOGS)
def test_one_byte_at_a_time(log: bytes) -> None:
    log = log[:2000]
    assert read(*(log[i : i + 1] for i in range(len(log)))) == read(log)


@settings(deadline=None)
@given(log=LOGS)
def test_no_line_holds_a_control_character_or_is_longer_than_its_cap(log: bytes) -> None:
    for line in read(log):
        assert "\n" not in line.text and "\r" not in line.text and "\x1b" not in line.text
        assert 0 < len(line.text) < LINE_KEPT + 100
        assert 1 <= line.number <= log.count(b"\n") + 1


def test_a_bar_takes_the_place_of_the_one_before_and_lines_are_counted_by_newlines() -> None:
    log = b"begin\n\rshards:   0% | 0/2 [\rshards:  50% | 1/2 [\rshards: 100% | 2/2 [\nend\r\nlast"
    assert read(log) == [
        Line(1, "begin"),
        Line(2, "shards:   0% | 0/2 ["),
        Line(2, "shards:  50% | 1/2 ["),
        Line(2, "shards: 100% | 2/2 ["),
        Line(3, "end"),
        Line(4, "last"),
    ]


def test_a_log_line_glued_to_a_bar_is_a_line_of_its_own() -> None:
    log = b"\rshards: 0/8 [00:00<?, ?it/s][2026-11-29 23:26:21 TP1] Load weight begin.\n"
    assert [line.text for line in read(log)] == [
        "shards: 0/8 [00:00<?, ?it/s]",
        "[2026-11-29 23:26:21 TP1] Load weight begin.",
    ]


def test_the_rest_of_an_endless_line_is_counted_and_not_kept() -> None:
    splitter = LineSplitter()
    for _ in range(1000):
        assert list(splitter.feed(b"x" * 10_000)) == []
    assert len(splitter.peek()) == LINE_KEPT
    (line,) = splitter.feed(b"\n")
    assert line.text == "x" * LINE_KEPT + f"… ({10_000_000 - LINE_KEPT} more bytes)"


def test_the_unfinished_line_can_be_seen() -> None:
    splitter = LineSplitter()
    list(splitter.feed(b"a\n\rshards:  12% | 1/8 ["))
    assert splitter.peek() == "shards:  12% | 1/8 ["


@pytest.mark.parametrize(
    ("text", "writer", "rank", "message"),
    [
        ("[2026-03-02 10:00:00] parent", "", None, "parent"),
        ("[2026-03-02 10:00:00 TP3] a", "TP3", 3, "a"),
        ("[2026-03-02 10:00:00 DP1 PP0 TP12 EP4] a", "DP1 PP0 TP12 EP4", 12, "a"),
        ("[10:00:00 TP0] old", "TP0", 0, "old"),
        ("[gpu_id=2] older", "rank2", 2, "older"),
        ("(Worker_TP1 pid=34) INFO 05-06 20:59:57 [loader.py:384] a", "Worker_TP1 pid=34", 1, "a"),
        ("(VllmWorker rank=5 pid=3) ERROR 05-06 20:59:57 [x.py:1] a", "VllmWorker rank=5 pid=3", 5, "a"),
        ("(EngineCore_DP0 pid=9) ERROR 05-06 20:59:57 [core.py:7]   File", "EngineCore_DP0 pid=9", None, "  File"),
        ("ERROR 03-12 18:19:00 engine.py:400] ValueError: b", "", None, "ValueError: b"),
        ("[rank4]: Traceback (most recent call last):", "rank4", 4, "Traceback (most recent call last):"),
        ("node0:345:4945 [7] NCCL WARN c", "node0:345", 7, "NCCL WARN c"),
        ("> [2026-03-02 10:00:00 TP3] quoted", "TP3", 3, "quoted"),
        ('  File "x.py", line 1, in f', "", None, '  File "x.py", line 1, in f'),
        ("", "", None, ""),
    ],
)
def test_the_prefix_of_a_line(text: str, writer: str, rank: int | None, message: str) -> None:
    row = record(1, text)
    assert (row.writer, row.rank, row.message) == (writer, rank, message)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_record(text: str) -> None:
    assert text.endswith(record(1, text).message)
