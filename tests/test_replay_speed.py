"""A long recording opens and seeks quickly, held against what this machine takes for plainer work on the same lines."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from agent.journal.journal import FILE, read_journal
from agent.replay import SNAPSHOT_EVERY, Recording
from tests.bench_replay import write_long_journal
from tests.test_replay import folded

EVENTS = 8_000


def cpu_s(work: Callable[[], object]) -> float:
    """The least CPU time of two."""
    times = []
    for _ in range(2):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def test_it_opens_in_the_time_of_a_few_json_parsers_and_seeks_in_a_part_of_that(tmp_path: Path) -> None:
    write_long_journal(tmp_path, EVENTS, experiments=12)
    lines = (tmp_path / FILE).read_bytes().splitlines()
    plain = cpu_s(lambda: [json.loads(line) for line in lines])

    def opened() -> Recording:
        recording = Recording(read_journal(tmp_path))
        recording.state_at(recording.last)
        return recording

    assert cpu_s(opened) < 6 * plain
    recording = opened()
    assert len(recording.events) == EVENTS
    chance = random.Random(3)
    places = [chance.randrange(EVENTS) for _ in range(20)]
    # A whole fold of everything would be EVENTS / SNAPSHOT_EVERY times as much.
    assert (
        cpu_s(lambda: [recording.state_at(index) for index in places]) / len(places)
        < plain * SNAPSHOT_EVERY / EVENTS * 6
    )
    wanted = folded(recording.events, places)
    for index in places:
        assert recording.state_at(index) == wanted[index]
