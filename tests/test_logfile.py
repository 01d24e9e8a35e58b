"""A growing log as lines: cut as it is drawn, at any speed of growth, in little memory."""

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.logfile import BLOCK, LogFile
from agent.logscan import Matches, RankLines, Selection
from agent.text import LINE_LIMIT

STAMP = b"[2026-11-29 23:26:21 TP1] "


def read_all(log: LogFile) -> list[str]:
    while log.advance():
        pass
    return [log.line(index) for index in range(len(log))]


def lines_of(tmp_path: Path, data: bytes) -> list[str]:
    path = tmp_path / "log"
    path.write_bytes(data)
    return read_all(LogFile(path))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\n\n\ntwo", ["one", "two"]),
        (b"a\n\rbar 1\rbar 2\rbar 3\nb\n", ["a", "bar 3", "b"]),
        (b"bar 1\rbar 2\r", ["bar 2"]),
        (b"bar 1\rbar 2", ["bar 2"]),
        (b"bar 1\nbar 2\r\nbar 3\n", ["bar 1", "bar 2", "bar 3"]),
        (b"0/8 [00:00]" + STAMP + b"Load\n", ["0/8 [00:00]", "[2026-11-29 23:26:21 TP1] Load"]),
        (
            b"a\rb" + STAMP + b"Load\rbar\rbar 2\n",
            ["b", "[2026-11-29 23:26:21 TP1] Load", "bar 2"],
        ),
        (STAMP + b"x\n" + STAMP + b"y\n", ["[2026-11-29 23:26:21 TP1] x", "[2026-11-29 23:26:21 TP1] y"]),
        (b"\x1b[31mred\x1b[0m\xff\n", ["red\ufffd"]),
    ],
)
def test_lines_are_cut_as_they_are_drawn(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    assert lines_of(tmp_path, data) == lines


PIECES = st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r", b"\r\n", STAMP, b"[20", b" "]), max_size=30)


@settings(max_examples=200, deadline=None)
@given(PIECES, st.lists(st.integers(1, 40), max_size=8))
def test_the_way_a_file_grows_makes_no_difference(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cuts: list[int]
) -> None:
    data, path = b"".join(pieces), tmp_path_factory.mktemp("grow") / "log"
    path.write_bytes(data)
    whole = read_all(LogFile(path))
    path.unlink()
    log, at = LogFile(path), 0
    for size in [*cuts, len(data)]:
        with path.open("ab") as file:
            file.write(data[at : at + size])
        at += size
        known = [log.line(index) for index in range(log.settled)]
        assert read_all(log)[: len(known)] == known
    assert read_all(log) == whole


@settings(max_examples=200, deadline=None)
@given(PIECES, st.lists(st.integers(0, 80), max_size=8))
def test_only_what_counts_is_read(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], limits: list[int]
) -> None:
    data, folder = b"".join(pieces), tmp_path_factory.mktemp("limit")
    (folder / "log").write_bytes(data)
    log = LogFile(folder / "log")
    for number, limit in enumerate([*limits, None]):
        log.limit = limit
        (folder / str(number)).write_bytes(data[:limit])
        part = LogFile(folder / str(number))
        assert read_all(log) == read_all(part)
        part.close()
    log.close()


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first\n" + b"x" * (3 * BLOCK) + b"\nlast\n")
    log = LogFile(path)
    first, long, last = read_all(log)
    assert (first, last) == ("first", "last")
    assert long == "x" * LINE_LIMIT + "… (the line goes on)"


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    assert read_all(log) == []
    (tmp_path / "log").write_bytes(b"one\n")
    assert read_all(log) == ["one"]


def test_a_truncated_file_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    log = LogFile(path)
    read_all(log)
    before = log.generation
    os.truncate(path, 0)
    assert read_all(log) == []
    with path.open("ab") as file:
        file.write(b"new\n")
    assert read_all(log) == ["new"]
    assert log.generation > before


def test_a_replaced_file_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    log = LogFile(path)
    read_all(log)
    (tmp_path / "other").write_bytes(b"another one\nand more\n")
    (tmp_path / "other").rename(path)
    assert read_all(log) == ["another one", "and more"]


def test_a_secret_is_taken_out_before_the_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (LINE_LIMIT - 3) + b"secret-of-mine and more\n")
    log = LogFile(path, lambda text: text.replace("secret-of-mine", "‹redacted›"))
    (line,) = read_all(log)
    assert "sec" not in line


def test_evidence_is_found_by_its_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n\nbar\rbar 2\rbar 3\nfour" + STAMP + b"glued\nfive\n")
    log = LogFile(path)
    lines = read_all(log)
    named = {number: log.index_of(number) for number in range(1, 8)}
    assert [lines[i] for n in (1, 2, 3, 4, 5) if (i := named[n]) is not None] == [
        "one",
        "bar 3",
        "bar 3",
        "four",
        "five",
    ]
    assert named[6] is None
    assert named[7] is None


def test_an_index_costs_eight_bytes_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a line of a log that is neither long nor short\n" * 200_000)
    log = LogFile(path)
    tracemalloc.start()
    while log.advance():
        pass
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(log) == 200_000
    assert used < 200_000 * 8 * 1.3 + 100_000


def selected(selection: Selection) -> list[int]:
    while selection.log.advance():
        pass
    while selection.advance():
        pass
    assert selection.complete
    return [selection[place] for place in range(len(selection))]


RANKS = [
    "[2026-11-29 23:26:21] main",
    "[2026-11-29 23:26:21 TP0] zero",
    "[2026-11-29 23:26:21 TP3] three: Traceback (most recent call last):",
    '  File "x.py", line 1, in y',
    "ValueError: no",
    "[2026-11-29 23:26:21 DP1 TP3 EP3] three again",
    "(Worker_TP3 pid=7) INFO 11-29 23:44:01 [core.py:33] three of vLLM",
    "[rank3]: three of torch",
    "[2026-11-29 23:26:21 TP30] thirty",
]


def test_a_rank_is_what_its_prefix_says_and_what_follows_without_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(RANKS))
    log = LogFile(path)
    assert selected(RankLines(log, 3)) == [2, 3, 4, 5, 6, 7]
    assert selected(RankLines(log, 0)) == [1]
    assert selected(RankLines(log, 30)) == [8]
    assert selected(RankLines(log, 5)) == []


def test_matches_ignore_the_case_and_what_was_drawn_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"An NCCL line\nnothing\nnccl bar\rbar\nnccl nccl\nNcCl")
    log = LogFile(path)
    assert selected(Matches(log, "nccl")) == [0, 3, 4]
    assert selected(Matches(log, "NCCL line")) == [0]
    assert selected(Matches(log, "absent")) == []


def test_matches_stay_within_a_filter(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(RANKS))
    log = LogFile(path)
    rank = RankLines(log, 3)
    matches = Matches(log, "t", rank)
    assert len(matches) == 0
    selected(rank)
    assert selected(matches) == [2, 5, 6, 7]
    assert 5 in matches
    assert 6 in rank
    assert 8 not in matches


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([*RANKS, "bar\rbar 2", "ab", "b"]), max_size=12), st.lists(st.integers(1, 90), max_size=8)
)
def test_selections_of_a_growing_file_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], cuts: list[int]
) -> None:
    data, path = "\n".join(lines).encode(), tmp_path_factory.mktemp("grow") / "log"
    log, at = LogFile(path), 0
    rank = RankLines(log, 3)
    selections = (rank, Matches(log, "b"), Matches(log, "t", rank))
    for size in [*cuts, len(data)]:
        with path.open("ab") as file:
            file.write(data[at : at + size])
        at += size
        grown = [selected(selection) for selection in selections]
    fresh = LogFile(path)
    whole = RankLines(fresh, 3)
    assert grown == [selected(s) for s in (whole, Matches(fresh, "b"), Matches(fresh, "t", whole))]
    texts = [fresh.line(index).lower() for index in range(len(fresh))]
    assert grown[1] == [index for index, text in enumerate(texts) if "b" in text]
    assert grown[2] == [index for index in grown[0] if "t" in texts[index]]


def test_a_selection_begins_again_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\nother\none\n")
    matches = Matches(LogFile(path), "one")
    assert selected(matches) == [0, 2]
    os.truncate(path, 0)
    with path.open("ab") as file:
        file.write(b"x\none\n")
    assert selected(matches) == [1]
