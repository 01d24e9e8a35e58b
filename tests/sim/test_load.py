"""A load that succeeds: its log, its port, its processes, its end."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from agent.sim.host import SimHost
from agent.sim.ledger import alive_pids, launches, read_ledger
from tests.sim.conftest import Server, wait_for

ORDER = [
    "SIMULATED server",
    "server_args=ServerArgs(",
    " TP0] Init torch distributed begin.",
    " TP1] Init torch distributed ends. elapsed=",
    " TP0] Load weight begin. avail mem=",
    "\rLoading safetensors checkpoint shards:   0% Completed | 0/8 [",
    "\rLoading safetensors checkpoint shards:  12% Completed | 1/8 [",
    " TP0] Load weight end. elapsed=",
    " TP0] KV Cache is allocated. #tokens: 100000",
    " TP0] Memory pool end. avail mem=",
    " TP0] Capture cuda graph begin.",
    "\rCapturing batches (bs=16 avail_mem=",
    " TP0] Capture cuda graph end. Time elapsed: ",
    " TP0] max_total_num_tokens=100000",
    "] INFO:     Started server process [",
    "] INFO:     Application startup complete.",
    "] INFO:     Uvicorn running on http://127.0.0.1:",
    '"GET /model_info HTTP/1.1" 200 OK',
    '"POST /generate HTTP/1.1" 200 OK',
    "] The server is fired up and ready to roll!",
]


def test_log_order_and_bytes(host: SimHost, port: int) -> None:
    log = Server(host, port, "--cuda-graph-max-bs", "16").ready().log
    places = [log.find(text) for text in ORDER]
    assert -1 not in places, ORDER[places.index(-1)]
    assert places == sorted(places)
    assert log.count("100% Completed | 8/8") == 2
    assert "it/s]\n\rLoading safetensors checkpoint shards:" in log, "this version ends each redrawn bar"
    assert re.search(r"it/s\]\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d TP1\] Capture cuda graph begin", log), "glued lines"
    assert log.startswith("[20") and "SIMULATED" in log.splitlines()[0]


def test_speculative_load_has_two_weight_loads_and_three_captures(host: SimHost, port: int) -> None:
    flags = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft"]
    server = Server(host, port, *flags, "--cuda-graph-max-bs", "8").ready()
    assert server.log.count("TP0] Load weight begin") == 2
    assert len(re.findall(r"TP0\] Capture .*cuda graph end", server.log)) == 3
    assert server.log.count("  0%|          | 0/8 [") == 6, "each bar is first drawn without and with its name"
    info = server.get("/server_info")
    assert info["max_running_requests"] == 48
    assert info["internal_states"][0]["avg_spec_accept_length"] == 2.6


def test_port_opens_late_and_health_is_503_first(host: SimHost, port: int) -> None:
    server = Server(host, port)
    seen: list[tuple[int, int]] = []

    def ready() -> bool:
        uvicorn = "Uvicorn running" in server.log
        seen.append((server.status("/health"), server.status("/model_info")))
        assert seen[-1] == (0, 0) or uvicorn or "Uvicorn running" in server.log
        return seen[-1][0] == 200

    wait_for(ready)
    kinds = list(dict.fromkeys(seen))
    assert kinds[0] == (0, 0) and (503, 200) in kinds and kinds[-1] == (200, 200)
    assert server.get("/server_info")["simulated"] is True


def test_processes_look_like_the_real_ones(host: SimHost, port: int) -> None:
    server = Server(host, port).ready()
    ranks = [r for r in read_ledger(host.ledger) if r["kind"] == "rank_start"]
    titles = {Path(f"/proc/{r['pid']}/cmdline").read_bytes().rstrip(b"\0").decode() for r in ranks}
    assert titles == {"sglang::scheduler_TP0", "sglang::scheduler_TP1", "sglang::detokenizer"}
    assert {Path(f"/proc/{r['pid']}/comm").read_text() for r in ranks} == {"sglang::schedul\n", "sglang::detoken\n"}
    for record in ranks:
        assert os.getpgid(record["pid"]) == server.process.pid
        status = Path(f"/proc/{record['pid']}/status").read_text()
        assert int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) < 20_000
        ticks = sum(map(int, Path(f"/proc/{record['pid']}/stat").read_text().rpartition(") ")[2].split()[11:13]))
        assert ticks <= 12, "a rank is cheap"


def test_sigterm_when_ready_ends_by_sigkill(host: SimHost, port: int) -> None:
    server = Server(host, port).ready()
    assert server.stop() == -signal.SIGKILL
    assert "SIGTERM received." in server.log
    assert server.log.splitlines()[-1].endswith(f"include_parent=True, pid={server.process.pid}")
    wait_for(lambda: not alive_pids(host.ledger))
    assert launches(host.ledger)[0]["exit"] == -9


def test_sigint_when_ready_exits_zero(host: SimHost, port: int) -> None:
    assert Server(host, port).ready().stop(signal.SIGINT) == 0


def test_sigterm_while_loading_dies_at_once(host: SimHost, port: int) -> None:
    server = Server(host, port)
    wait_for(lambda: "Load weight begin" in server.log)
    began = time.monotonic()
    assert server.stop() == -signal.SIGTERM
    assert time.monotonic() - began < 0.5
    wait_for(lambda: not alive_pids(host.ledger))


def test_ranks_can_outlive_a_killed_leader(make_host: Callable[..., SimHost], port: int) -> None:
    host = make_host(pdeathsig=False, orphan_limit_s=1.0)
    server = Server(host, port).ready()
    server.stop(signal.SIGKILL)
    assert len(alive_pids(host.ledger)) == 3
    wait_for(lambda: not alive_pids(host.ledger))


def test_ranks_die_with_a_killed_leader(host: SimHost, port: int) -> None:
    server = Server(host, port)
    wait_for(lambda: "Load weight begin" in server.log)
    server.stop(signal.SIGKILL)
    wait_for(lambda: not alive_pids(host.ledger), 2)


def test_stopped_rank_holds_the_others(host: SimHost, port: int) -> None:
    server = Server(host, port)
    wait_for(lambda: "TP1] Load weight begin" in server.log)
    rank = next(r["pid"] for r in read_ledger(host.ledger) if r.get("title") == "sglang::scheduler_TP1")
    os.kill(rank, signal.SIGSTOP)
    wait_for(lambda: "100% Completed" in server.log)
    time.sleep(0.5)
    assert "Load weight end" not in server.log
    os.kill(rank, signal.SIGCONT)
    server.ready()


def test_ledger_tells_the_truth(host: SimHost, port: int) -> None:
    before = time.time()
    server = Server(host, port, TUNEBOT_LAUNCH_ID="L1", NCCL_ALGO="Ring").ready()
    launch = launches(host.ledger)[0]
    assert launch["pid"] == server.process.pid and launch["launch_id"] == "L1" and launch["environment"] == "default"
    assert launch["env"]["NCCL_ALGO"] == "Ring" and launch["argv"][-1] == str(port)
    assert launch["tok_s"] == 500 and before < launch["ready"] < time.time()
    phases = [r["phase"] for r in read_ledger(host.ledger) if r["kind"] == "phase"]
    ranks = ["dist-init", "load-weights", "repack", "kv-cache", "graph-capture"]
    assert phases == ["import", "args", "config", *ranks, "http-start", "warmup"]


def test_noise_is_of_the_launch_and_repeatable(make_host: Callable[..., SimHost], port: int) -> None:
    noise = {"launch_sd": 0.01, "round_sd": 0}
    rates = []
    for host in (make_host(noise=noise), make_host(noise=noise)):
        for _ in range(2):
            Server(host, port).ready().stop(signal.SIGKILL)
        rates.append([launch["tok_s"] for launch in launches(host.ledger)])
    assert rates[0] == rates[1]
    assert rates[0][0] != rates[0][1]
