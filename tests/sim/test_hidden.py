"""What a host hides and tells: the all-reduce benchmark, and the ledger's account of where the time went."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.bench import allreduce
from agent.sim.host import SimHost
from agent.sim.ledger import read_ledger, spans
from tests.sim.conftest import Server

STEP: dict[str, Any] = {
    "compute_ms": 4,
    "allreduces": 50,
    "row_bytes": 1000,
    "kernels": {"nccl": {"1000": 40, "4000": 100}, "nccl-ll": {"1000": 38, "4000": 45}},
}


def asked(host: SimHost, *sizes: str, **env: str) -> dict[str, float]:
    """Seconds by size, as the benchmark's script tells them on this host."""
    script = Path(allreduce.__file__).read_text()
    words = ["python3", "-c", script, "--ranks", "2", *sizes]
    answer = subprocess.run(words, env={**host.full_env(), **env}, capture_output=True, text=True, check=True)
    told = json.loads(answer.stdout.splitlines()[-1])
    assert told["ranks"] == 2
    return {size: value["seconds"] for size, value in told["sizes"].items()}


def test_the_benchmark_is_answered_from_what_the_world_hides(make_host: Callable[..., SimHost]) -> None:
    host = make_host(step=STEP, laws=["sglang"], facts={"nccl_transport": "shm"})
    sys_ = {"NCCL_P2P_LEVEL": "SYS"}
    assert asked(host, "1000", "4000", **sys_) == {
        "1000": pytest.approx(40e-6, rel=0.1),
        "4000": pytest.approx(100e-6, rel=0.1),
    }
    assert asked(host, "4000", NCCL_PROTO="LL", **sys_)["4000"] == pytest.approx(45e-6, rel=0.1)
    assert asked(host, "1000")["1000"] == pytest.approx(40e-6 * 1.12, rel=0.1)
    assert [span.kind for span in spans(host.ledger)] == ["allreduce"] * 3


def test_a_host_without_steps_has_no_answer(host: SimHost) -> None:
    words = ["python3", "-c", Path(allreduce.__file__).read_text(), "--ranks", "2", "1000"]
    answer = subprocess.run(words, env=host.full_env(), capture_output=True, text=True)
    assert answer.returncode == 1 and "does not know" in answer.stderr


def test_the_ledger_tells_what_a_launch_is_made_of(make_host: Callable[..., SimHost], port: int) -> None:
    host = make_host(step=STEP, laws=["sglang"])
    Server(host, port, NCCL_PROTO="LL").ready()
    rate = next(record for record in read_ledger(host.ledger) if record["kind"] == "rate")
    assert (rate["kernel"], rate["allreduces"], rate["accept"]) == ("nccl-ll", 50, 1.0)
    assert rate["allreduce_s"] == pytest.approx(38e-6)
    assert rate["step_s"] == pytest.approx(4e-3 + 50 * 38e-6)
    assert rate["tok_s"] == pytest.approx(5 / rate["step_s"]), "its tokens are five times as fast"


def test_spans_account_for_the_life_of_a_server(host: SimHost, port: int) -> None:
    server = Server(host, port).ready()
    server.post("/v1/completions", {"prompt": "one two", "max_tokens": 8})
    assert server.stop() == -9
    found = spans(host.ledger)
    assert found == sorted(found, key=lambda span: span.start) and {span.launch for span in found} == {
        server.process.pid
    }
    load = [span.name for span in found if span.kind == "phase"]
    assert load == ["import", "args", "config", "dist-init", "load-weights", "repack", "kv-cache", "graph-capture",
                    "http-start", "warmup"]  # fmt: skip
    names = [(span.kind, span.name) for span in found if span.kind in ("request", "stop")]
    assert names == [("request", "The capital"), ("request", "one two"), ("stop", "SIGTERM")]
    assert all(span.start <= span.end for span in found)
    whole = next(span for span in found if span.kind == "launch")
    assert whole is found[0] and whole.name == "ready"
    assert sum(span.end - span.start for span in found if span.kind == "phase") <= whole.end - whole.start


def test_a_load_that_fails_took_time_too(host: SimHost, port: int) -> None:
    Server(host, port, SIM_FAIL="key").process.wait(20)
    whole = next(span for span in spans(host.ledger) if span.kind == "launch")
    assert whole.name == "failed" and whole.end - whole.start > 20 / 800


def test_prepare_steps_are_accounted_for(host: SimHost) -> None:
    for words in (["python3", "-m", "venv", "v"], ["v/bin/pip", "install", "sglang==0.5.23"]):
        subprocess.run(words, env=host.full_env(), cwd=host.home, check=True, capture_output=True)
    found = spans(host.ledger)
    assert [(span.kind, span.name) for span in found] == [("prepare", f"{host.home}/v"), ("prepare", "sglang==0.5.23")]
    assert all(span.end > span.start for span in found)
