"""The file of earlier loads: medians, torn lines, and a disk that does not take it."""

from pathlib import Path

import pytest

from agent.core.model import LaunchNoise, Phase
from agent.history import LoadHistoryFile

WEIGHTS = Phase.LOAD_WEIGHTS


def test_the_median_of_the_latest_five(tmp_path: Path) -> None:
    history = LoadHistoryFile(tmp_path / "state" / "loads.jsonl")
    assert history.phases_s("gpu8", "sglang", "/m") is None
    for seconds in (9000.0, 400.0, 41.0, 40.0, 39.0, 60.0):
        assert history.add("gpu8", "sglang", "/m", {WEIGHTS: seconds, Phase.KV_CACHE: 1.0}) is None
    history.add("gpu8", "sglang", "/other", {WEIGHTS: 1.0})
    assert history.phases_s("gpu8", "sglang", "/m") == {WEIGHTS: 41.0, Phase.KV_CACHE: 1.0}
    assert history.phases_s("gpu9", "sglang", "/m") is None


def test_the_file_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "loads.jsonl"
    LoadHistoryFile(path).add("a", "b", "c", {})
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "junk",
    [
        b'{"load": ["a", "b", "c"], "phases_s": {"load-w',
        b'{"load": 1, "phases_s": []}\n[]\n1\n\xff\xfe\n' + b"[" * 100_000,
        b'{"load": ["a", "b", "c"], "phases_s": {"tomorrow": 1, "kv-cache": "x", "config": -1, "args": true}}',
    ],
)
def test_torn_and_foreign_lines_are_skipped(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "loads.jsonl"
    path.write_bytes(junk)
    history = LoadHistoryFile(path)
    assert not history.phases_s("a", "b", "c")
    history.add("a", "b", "c", {WEIGHTS: 2.0})
    assert history.phases_s("a", "b", "c") == {WEIGHTS: 2.0}


def test_a_disk_that_does_not_take_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = LoadHistoryFile(tmp_path / "file" / "loads.jsonl").add("a", "b", "c", {})
    assert problem is not None and "not saved" in problem


KEY = ["gpu8", "sglang", "output_throughput", "0123456789ab"]


def test_the_noise_of_earlier_sessions_is_pooled_by_key_and_counts_only_so_much(tmp_path: Path) -> None:
    history = LoadHistoryFile(tmp_path / "loads.jsonl")
    assert history.noise(KEY) is None
    assert history.add_noise(KEY, LaunchNoise(sd=0.01, degrees=2.0, launches=4)) is None
    history.add("gpu8", "sglang", "/m", {WEIGHTS: 40.0})
    assert history.add_noise(KEY, LaunchNoise(sd=0.02, degrees=6.0, launches=9)) is None
    found = history.noise(KEY)
    assert found is not None
    assert found.sd == pytest.approx(((2 * 0.01**2 + 6 * 0.02**2) / 8) ** 0.5)
    assert (found.degrees, found.launches) == (8.0, 13)
    history.add_noise(KEY, LaunchNoise(sd=0.02, degrees=30.0, launches=40))
    found = history.noise(KEY)
    assert found is not None and found.degrees == 20.0
    assert history.noise([*KEY[:3], "another contract"]) is None
    assert history.phases_s("gpu8", "sglang", "/m") == {WEIGHTS: 40.0}


@pytest.mark.parametrize("numbers", ['"sd": 0.01', '"sd": 1, "degrees": 0, "launches": 2', '"sd": true, "degrees": 2'])
def test_noise_that_nobody_can_read_is_skipped(tmp_path: Path, numbers: str) -> None:
    line = f'{{"noise": ["gpu8", "sglang", "output_throughput", "0123456789ab"], {numbers}}}'
    (tmp_path / "loads.jsonl").write_text(line)
    assert LoadHistoryFile(tmp_path / "loads.jsonl").noise(KEY) is None
