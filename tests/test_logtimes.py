"""What of a log was printed by a moment: by the time stamps that servers write, in any time zone."""

import calendar
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.logtimes import LogTimes

START = float(calendar.timegm((2026, 11, 30, 23, 8, 40)))
HOUR = 3600


def sglang(at: float) -> str:
    return time.strftime("[%Y-%m-%d %H:%M:%S TP0] Load weight begin.", time.gmtime(at))


def vllm(at: float) -> str:
    return time.strftime("(EngineCore pid=12) INFO %m-%d %H:%M:%S [core.py:58] Loading", time.gmtime(at))


def iso(at: float) -> str:
    return time.strftime('{"time": "%Y-%m-%dT%H:%M:%S.120Z", "message": "loading"}', time.gmtime(at))


@pytest.mark.parametrize("zone_s", [0, 2 * HOUR, -11 * HOUR, 20_700])
@pytest.mark.parametrize("line", [sglang, vllm, iso])
def test_up_to_the_second(tmp_path: Path, line: object, zone_s: int) -> None:
    assert callable(line)
    seconds = (9, 9, 10, 31)
    lines = [f"{line(START + zone_s + second)}\n" for second in seconds]
    (tmp_path / "log").write_text("".join(lines))
    times = LogTimes(tmp_path / "log", START)
    for moment, count in ((0.0, 0), (8.9, 0), (9.0, 2), (10.5, 3), (30.9, 3), (31.0, 4), (9999.0, 4)):
        assert times.until(START + moment) == sum(map(len, lines[:count]))


def test_lines_without_a_time_come_evenly_between_those_that_have_one(tmp_path: Path) -> None:
    bars = [f"Loading shards: {n:2}/64\r" for n in range(1, 65)]
    first, last = f"NCCL version 2.27\n{sglang(START)}\n", f"{sglang(START + 64)}\nTraceback\n"
    (tmp_path / "log").write_text(first + "".join(bars) + last)
    times = LogTimes(tmp_path / "log", START)
    shown = [times.until(START + second) for second in range(65)]
    lines = [len(first) + len("".join(bars[:n])) for n in range(65)]
    for second in range(64):
        assert shown[second] in lines[max(0, second - 1) : second + 3], second
    assert shown[64] == len(first + "".join(bars) + last)


def test_a_stamp_that_is_glued_to_a_bar(tmp_path: Path) -> None:
    bar = "Loading shards:  36% Completed | 23/64 " * 4
    (tmp_path / "log").write_text(f"{sglang(START)}\n{bar}{sglang(START + 3)}\n")
    assert LogTimes(tmp_path / "log", START).until(START + 2) == len(f"{sglang(START)}\n{bar}")


def test_the_year_turns_while_it_loads(tmp_path: Path) -> None:
    start = float(calendar.timegm((2026, 12, 31, 23, 59, 50)))
    (tmp_path / "log").write_text(f"{vllm(start + 5)}\n{vllm(start + 15)}\n")
    times = LogTimes(tmp_path / "log", start)
    assert times.until(start + 9) == len(vllm(start)) + 1
    assert times.until(start + 15) == 2 * (len(vllm(start)) + 1)


@pytest.mark.parametrize("text", ["", "main: loading\nsrv: listening\n", "[23:26:21 TP0] no date\n", sglang(86400.0)])
def test_a_log_without_dates_cannot_be_cut(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    assert LogTimes(tmp_path / "log", START).until(START + 5) is None
    assert LogTimes(tmp_path / "missing", START).until(START + 5) is None


LINES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40_000)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(0, 30))
def test_a_search_finds_what_reading_all_would(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[int, int]], moment: int
) -> None:
    """Each line comes some seconds after the one before; undated lines of some length stand between."""
    at, texts, least, most = START, "", 0, 0
    for later, undated in lines:
        at += later
        dated = f"{sglang(at)}\n"
        if at <= START + moment:
            least, most = len(texts + dated), len(texts + dated) + undated + 1
        texts += dated + "x" * undated + "\n"
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_text(texts)
    until = LogTimes(path, START).until(START + moment)
    assert until is None if not lines else until is not None and least <= until <= most
    assert not until or texts[until - 1] == "\n"
