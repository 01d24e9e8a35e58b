"""Loads that fail: what the log says, and the exit code."""

import os
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.sim.host import SimHost
from agent.sim.ledger import alive_pids, launches, read_ledger
from tests.sim.conftest import LIMIT_S, Server, wait_for


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--moe-a2a-backnd", "deepep"], "sglang serve: error: unrecognized arguments: --moe-a2a-backnd deepep"),
        (["--moe-a2a-backend", "pplx"], "sglang serve: error: argument --moe-a2a-backend: invalid choice: 'pplx'"),
        (["--tp", "two"], "argument --tp-size/--tensor-parallel-size/--tp: invalid int value: 'two'"),
        (["--cuda-graph", "1"], "error: ambiguous option: --cuda-graph could match --cuda-graph-max-bs, "),
    ],
)
def test_bad_flags_exit_2(host: SimHost, port: int, flags: list[str], text: str) -> None:
    server = Server(host, port, *flags)
    assert server.process.wait(LIMIT_S) == 2
    assert "usage: sglang serve [-h]" in server.log and text in server.log.splitlines()[-1]
    assert launches(host.ledger)[0]["exit"] == 2


def test_demand_of_the_source_is_an_assertion_with_its_true_place(host: SimHost, port: int) -> None:
    server = Server(host, port, "--moe-a2a-backend", "flashinfer")
    assert server.process.wait(LIMIT_S) == 1
    last = server.log.splitlines()[-1]
    text = "Flashinfer MoE A2A is only supported with flashinfer_cutlass moe runner backend"
    assert last == f"AssertionError: {text}"
    file, number = re.findall(r'File "([^"]*server_args.py)", line (\d+), in _handle_a2a_moe', server.log)[-1]
    line = Path(file).read_text().splitlines()[int(number) - 1]
    assert line.strip().startswith("assert self.moe_runner_backend in")


def test_failure_in_the_launcher_by_rule(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="args")
    assert server.process.wait(LIMIT_S) == 1
    assert server.log.endswith("ValueError: bad value\n")


def test_one_rank_fails_in_capture(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="oom")
    assert server.process.wait(LIMIT_S) == -signal.SIGKILL
    log = server.log
    assert " TP1] Scheduler hit an exception: Traceback (most recent call last):" in log
    assert " TP0] Scheduler hit" not in log
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB." in log
    assert (
        "\nException: Capture cuda graph failed: CUDA out of memory." in log and "1. set --mem-fraction-static" in log
    )
    assert (
        log.index("Scheduler hit")
        < log.index("Received sigquit from a child process.")
        < log.index("kill_process_tree")
    )
    assert ", line 0, in" not in log
    wait_for(lambda: not alive_pids(host.ledger))
    assert launches(host.ledger)[0]["exit"] == -9


def test_all_ranks_fail_in_group_init(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="key")
    assert server.process.wait(LIMIT_S) == -signal.SIGKILL
    assert server.log.count("\nKeyError: 12\n") == 2 and "Load weight begin" not in server.log


def test_rank_killed_while_loading(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="killed")
    assert server.process.wait(LIMIT_S) == 1
    assert server.log.splitlines()[-1].startswith(
        "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL)"
    )
    wait_for(lambda: not alive_pids(host.ledger))


def test_rank_killed_when_ready_shows_only_a_follow_on(host: SimHost, port: int) -> None:
    server = Server(host, port).ready()
    rank = next(r["pid"] for r in read_ledger(host.ledger) if r.get("title") == "sglang::scheduler_TP1")
    os.kill(rank, signal.SIGKILL)
    assert server.process.wait(LIMIT_S) == -signal.SIGKILL
    assert " TP0] Scheduler hit an exception: " in server.log and "Connection closed by peer" in server.log
    assert "SIGQUIT received. signum=None" in server.log


def test_hang_says_nothing(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="hang")
    wait_for(lambda: "100% Completed" in server.log)
    size = len(server.log)
    with pytest.raises(AssertionError):
        wait_for(lambda: len(server.log) > size or server.process.poll() is not None, 1)


def test_silent_compiler_outlives_its_server(host: SimHost, port: int) -> None:
    server = Server(host, port, SIM_FAIL="jit")
    wait_for(lambda: "Capture cuda graph begin" in server.log)

    def compilers() -> list[str]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                session = int((folder / "stat").read_text().rpartition(") ")[2].split()[3])
                title = (folder / "cmdline").read_text()
            except OSError:
                continue
            if session == server.process.pid and title.startswith("ninja"):
                found.append(folder.name)
        return found

    wait_for(lambda: len(compilers()) == 2)
    server.stop()
    assert len(compilers()) == 2
    os.killpg(server.process.pid, signal.SIGKILL)
    wait_for(lambda: not compilers())


def test_port_in_use_hangs_after_the_load(host: SimHost, port: int) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        server = Server(host, port)
        wait_for(lambda: "Waiting for application shutdown." in server.log)
    assert "[Errno 98] error while attempting to bind on address" in server.log
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(AssertionError):
        wait_for(lambda: server.process.poll() is not None, 0.5)
    assert len(alive_pids(host.ledger)) == 4
    assert server.stop(signal.SIGKILL) == -signal.SIGKILL


def test_leftovers_of_another_server_fail_the_next(make_host: Callable[..., SimHost], port: int) -> None:
    host = make_host(pdeathsig=False)
    first = Server(host, port).ready()
    second = Server(host, port + 1)
    assert second.process.wait(LIMIT_S) == -signal.SIGKILL
    assert "torch.OutOfMemoryError: CUDA out of memory." in second.log
    rank = next(r["pid"] for r in read_ledger(host.ledger) if r.get("title") == "sglang::scheduler_TP1")
    first.stop(signal.SIGKILL)
    os.kill(rank, signal.SIGKILL)
    wait_for(lambda: rank not in alive_pids(host.ledger))
    third = Server(host, port)
    assert third.process.wait(LIMIT_S) == -signal.SIGKILL
    assert "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied" in third.log
