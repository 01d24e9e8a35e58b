"""What makes a load suspect: silence longer than usual, and what the host says about it."""

import pytest

from agent.core.model import Phase
from agent.ports import CommandResult, Process
from agent.servers import KINDS
from agent.watch.hang import HangWatch
from agent.watch.host import Activity, Look, activity
from agent.watch.watch import LoadWatch

from .samples import OOM, START, raised


def look(pid: int, name: str = "python3", title: str = "", state: str = "S", cpu_s: float = 1.0) -> Look:
    return Look(pid=pid, name=name, title=title or name, state=state, cpu_s=cpu_s)


def host(*looks: Look, gpu_mib: int | None = None) -> Activity:
    return Activity(processes=looks, gpu_mib=gpu_mib)


def test_silence_is_told_with_what_is_usual() -> None:
    hang = HangWatch({Phase.DIST_INIT: 12.0})
    hang.moved(100)
    assert hang.doubt(Phase.DIST_INIT, 130) == ""
    assert hang.doubt(Phase.DIST_INIT, 300) == "no progress for 3:20 in dist-init; usually 0:12"
    assert HangWatch(None).doubt(Phase.LOAD_WEIGHTS, 100) == ""


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (host(look(1)), host(look(1)), "; the processes wait (no CPU time)"),
        (host(look(1)), host(look(1, cpu_s=21.0)), "; the processes use 2.0 CPUs"),
        (host(look(1), gpu_mib=10), host(look(1), gpu_mib=20), "; GPU memory still moves"),
    ],
)
def test_evidence_beyond_silence(first: Activity, then: Activity, said: str) -> None:
    hang = HangWatch(None)
    hang.look(first, 90)
    hang.look(then, 100)
    assert hang.doubt(Phase.KV_CACHE, 100) == f"no progress for 1:40 in kv-cache{said}"


def test_compilers_are_slow_and_not_stuck() -> None:
    hang = HangWatch(None)
    hang.look(host(look(1), look(2, "ninja"), look(3, "cicc")), 60)
    assert hang.doubt(Phase.KV_CACHE, 60) == "slow: compiling in kv-cache for 1:00 (cicc, ninja)"
    hang.moved(61)
    assert hang.doubt(Phase.KV_CACHE, 70) == ""


def test_between_two_compilers_a_build_goes_on() -> None:
    hang = HangWatch(None)
    hang.look(host(look(1), look(2, "nvcc")), 60)
    hang.look(host(look(1)), 62)
    assert hang.doubt(Phase.KV_CACHE, 62) == "slow: compiling in kv-cache for 1:02 (nvcc)"
    hang.look(host(look(1)), 80)
    assert hang.doubt(Phase.KV_CACHE, 80).startswith("no progress for 1:20 in kv-cache")


def test_a_rank_that_stays_behind_is_named_and_that_it_is_stopped() -> None:
    watch = LoadWatch(KINDS["sglang"](None), None)  # type: ignore[arg-type]
    done = "".join(f"[2026-03-02 10:01:00 TP{rank}] Load weight end. elapsed=46 s\n" for rank in (0, 2, 3))
    watch.feed((START + done).encode(), 10.0)
    watch.feed(b"", 20.0)
    assert watch.doubt() == ""
    watch.feed(b"", 30.0)
    assert "TP1 has not passed" in watch.doubt()
    watch.look(host(look(9, title="sglang::scheduler_TP1", state="T")))
    assert watch.doubt().endswith("stopped (state T): rank 1")


def test_a_traceback_makes_a_load_suspect_before_its_death() -> None:
    watch = LoadWatch(KINDS["sglang"](None), None)  # type: ignore[arg-type]
    watch.feed((START + raised(2, OOM, "loader.py load_model")).encode(), 1.0)
    assert watch.doubt().startswith("suspect on rank 2: torch.OutOfMemoryError")
    assert watch.phase is Phase.LOAD_WEIGHTS


class Proc:
    """A target that only knows /proc."""

    async def run(self, argv: list[str], **_: object) -> CommandResult:
        text = (
            b"/proc/7/stat:7 (sglang::schedul (x) y) R 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 9 0 99 1 1\n"
            b"/proc/7/cmdline:sglang::scheduler_TP3\0\0\n"
            b"grep: /proc/8/stat: No such file or directory\n"
        )
        assert argv[-1] == "/proc/8/cmdline"
        return CommandResult(exit_code=2, output=text)


async def test_the_processes_of_a_launch_are_read_from_proc() -> None:
    seen = await activity(Proc(), [Process(pid=7, start_ticks=1), Process(pid=8, start_ticks=1)])  # type: ignore[arg-type]
    assert seen is not None
    (found,) = seen.processes
    assert (found.rank, found.state, found.cpu_s, found.name) == (3, "R", 3.0, "sglang::schedul (x) y")
    assert await activity(Proc(), []) is None  # type: ignore[arg-type]
