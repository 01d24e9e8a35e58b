"""The long proofs with small numbers. Each is a module of its own, to be run with large ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets import ports_200, races, recycled
from tests.targets.kit import Placed

ROOT = Path(__file__).parents[2]


def harness(name: str, size: int) -> int:
    """Run a proof in a process of its own; its exit code."""
    return subprocess.run([sys.executable, "-m", f"tests.targets.{name}", str(size)], cwd=ROOT, timeout=120).returncode


async def test_an_old_server_on_the_port_is_never_taken_for_ours(target: Placed) -> None:
    figures = await ports_200.count(target, 6, target.place.home)
    assert figures.answered_before == 2
    assert figures.right(6)


async def test_of_two_who_want_the_gpus_one_gets_them(target: Placed) -> None:
    figures = await races.count(target, 6, target.place.home / "ledger")
    assert figures.right(6) and figures.shared == 2


def test_a_big_log_arrives_whole_and_takes_little_memory() -> None:
    assert harness("big_log", 24) == 0


def test_a_recycled_pid_is_never_taken_for_ours() -> None:
    code = harness("recycled", 3)
    if code == recycled.NOT_PERMITTED:
        pytest.skip("unshare is not permitted")
    assert code == 0
