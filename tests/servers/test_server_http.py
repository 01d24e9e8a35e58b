"""Readiness, effective flags and the cache, asked of a real HTTP server."""

import json
import socket
from typing import Any

import httpx
import pytest

from agent.core.model import FlagCheck, LaunchConfig
from agent.playbook.model import Args
from agent.servers import common, server_kind

from .conftest import Fake, completion

ASK = "POST /v1/completions"


def config(args: Args) -> LaunchConfig:
    return LaunchConfig(kind="x", command=("x",), args=args, env={}, source={}, version=None, load_timeout_s=60)


def statuses(checks: tuple[FlagCheck, ...]) -> dict[str, tuple[str, str | None]]:
    return {check.flag: (check.status, check.effective) for check in checks}


@pytest.mark.parametrize("name", ["sglang", "vllm"])
async def test_ready_is_one_generation(name: str, fake: Fake, http: httpx.AsyncClient) -> None:
    fake.answers = {ASK: (200, json.dumps(completion())), "GET /health": (200, "")}
    assert await server_kind(name, http).ready(fake.url)
    assert json.loads(fake.asked[0][1])["max_tokens"] == 1


@pytest.mark.parametrize("name", ["sglang", "vllm"])
@pytest.mark.parametrize(
    "answer",
    [
        (503, ""),
        (404, "{}"),
        (200, ""),
        (200, "[]"),
        (200, "\xff"),
        (200, '{"choices": []}'),
        (200, json.dumps(completion(usage={"completion_tokens": 0}))),
        (200, json.dumps(completion(choices=[{"text": "", "finish_reason": "abort"}]))),
        (200, '{"object": "error", "message": "engine dead"}'),
    ],
)
async def test_an_answer_without_a_generation_is_not_ready(
    name: str, answer: tuple[int, str], fake: Fake, http: httpx.AsyncClient
) -> None:
    fake.answers = {ASK: answer, "GET /health": (200, "")}
    assert not await server_kind(name, http).ready(fake.url)


async def test_sglang_is_not_ready_while_it_warms_up(fake: Fake, http: httpx.AsyncClient) -> None:
    fake.answers = {ASK: (200, json.dumps(completion())), "GET /health": (503, "")}
    assert not await server_kind("sglang", http).ready(fake.url)


async def test_health_which_generates_is_not_asked_before_a_generation_came(
    fake: Fake, http: httpx.AsyncClient
) -> None:
    fake.answers = {ASK: (503, "")}
    assert not await server_kind("sglang", http).ready(fake.url)
    assert [path for path, _ in fake.asked] == [ASK]


@pytest.mark.parametrize("name", ["sglang", "vllm"])
async def test_a_server_that_hangs_or_is_not_there_is_not_ready(
    name: str, fake: Fake, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "TRY_TIMEOUT_S", 0.05)
    fake.answers = {ASK: None, "POST /flush_cache": None, "GET /server_info": None}
    kind = server_kind(name, http)
    assert not await kind.ready(fake.url)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert not await kind.ready(url)
        assert not await kind.flush_cache(url)
        checks = await kind.effective_flags(url, config({"tp": "8"}), "")
    assert statuses(checks) == {"tp": ("not-reported", None)}


@pytest.mark.parametrize(("name", "path"), [("sglang", "POST /flush_cache"), ("vllm", "POST /reset_prefix_cache")])
async def test_flush_cache(name: str, path: str, fake: Fake, http: httpx.AsyncClient) -> None:
    kind = server_kind(name, http)
    assert not await kind.flush_cache(fake.url)
    fake.answers = {path: (400, "busy")}
    assert not await kind.flush_cache(fake.url)
    fake.answers = {path: (200, "ok")}
    assert await kind.flush_cache(fake.url)


INFO: dict[str, Any] = {
    "model_path": "/home/u/m", "tp_size": 8, "ep_size": 8, "mem_fraction_static": 0.9, "max_running_requests": 48,
    "moe_runner_backend": "triton", "enable_torch_symm_mem": False, "disable_custom_all_reduce": True,
    "disable_radix_cache": False, "cuda_graph_max_bs_decode": 128, "speculative_algorithm": "EAGLE", "page_size": 1,
    "attention_backend": "triton", "watchdog_timeout": 300, "api_key": "letmein", "enable_dp_attention": False,
    "_resolved_overrides": {"_data_parallelism_defaults": {"enable_dp_attention": False}},
}  # fmt: skip


@pytest.mark.parametrize("path", ["GET /server_info", "GET /get_server_info"])
async def test_sglang_flags_are_compared_with_its_resolved_arguments(
    path: str, fake: Fake, http: httpx.AsyncClient
) -> None:
    fake.answers = {path: (200, json.dumps(INFO))}
    args: Args = {
        "model-path": "~/m", "tp": "8", "ep-size": "1", "mem-fraction-static": "0.90", "max-running-requests": "64",
        "moe-runner-backend": "flashinfer_cutlass", "enable-torch-symm-mem": True, "disable-custom-all-reduce": True,
        "disable-radix-cache": False, "cuda-graph-max-bs": "128", "speculative-algorithm": "NEXTN",
        "attention-backend": "auto", "page-size": None, "load-plugin": "x", "api-key": "letmein",
        "enable-dp-attention": True,
    }  # fmt: skip
    checks = await server_kind("sglang", http).effective_flags(fake.url, config(args), "")
    assert statuses(checks) == {
        "model-path": ("equal", "/home/u/m"),
        "tp": ("equal", "8"),
        "ep-size": ("rewritten", "8"),
        "mem-fraction-static": ("equal", "0.9"),
        "max-running-requests": ("rewritten", "48"),
        "moe-runner-backend": ("contradicted", "triton"),
        "enable-torch-symm-mem": ("contradicted", "false"),
        "disable-custom-all-reduce": ("equal", "true"),
        "disable-radix-cache": ("equal", "false"),
        "cuda-graph-max-bs": ("equal", "128"),
        "speculative-algorithm": ("rewritten", "EAGLE"),
        "attention-backend": ("rewritten", "triton"),
        "load-plugin": ("not-reported", None),
        "api-key": ("equal", "‹redacted›"),
        "enable-dp-attention": ("rewritten", "false"),
    }
    assert "letmein" not in str(checks)


HEAD = """(APIServer pid=1) INFO 11-30 00:45:29 [u.py:286] non-default args: {'model_tag': '/home/u/m', 'port': 8103, \
'model': '/home/u/m', 'max_num_seqs': 1, 'enforce_eager': True, 'api_key': '***'%s}
(EngineCore pid=2) INFO 11-30 00:45:45 [c.py:1] Initializing a V1 LLM engine (v0.32.0) with config: model='/home/u/m', \
dtype=torch.bfloat16, max_seq_len=2048, tensor_parallel_size=1, enforce_eager=True, kv_cache_dtype=auto, \
observability_config=ObservabilityConfig(a=None, b=(1, {})), seed=0, enable_prefix_caching=True, pooler_config=None, \
compilation_config={'mode': <CompilationMode.NONE: 0>, 'seed': 7, 'x': []}, quantization=None
"""


@pytest.mark.parametrize("more", ["", ", 'kv_transfer': KVTransfer(a='b'), 'max_loras': 2"])
async def test_vllm_flags_are_compared_with_the_head_of_its_log(more: str, fake: Fake, http: httpx.AsyncClient) -> None:
    args: Args = {
        "model": "~/m", "tensor-parallel-size": "2", "max-num-seqs": "1", "max-model-len": "2048", "seed": "0",
        "enforce-eager": True, "no-enable-prefix-caching": True, "gpu-memory-utilization": "0.92", "api-key": "letmein",
        "dtype": "float16",
    }  # fmt: skip
    checks = await server_kind("vllm", http).effective_flags(fake.url, config(args), HEAD % more)
    assert statuses(checks) == {
        "model": ("equal", "/home/u/m"),
        "tensor-parallel-size": ("contradicted", "1"),
        "max-num-seqs": ("equal", "1"),
        "max-model-len": ("equal", "2048"),
        "seed": ("equal", "0"),
        "enforce-eager": ("equal", "true"),
        "no-enable-prefix-caching": ("contradicted", "true"),
        "gpu-memory-utilization": ("not-reported", None),
        "api-key": ("not-reported", None),
        "dtype": ("contradicted", "bfloat16"),
    }


async def test_vllm_in_developer_mode_tells_its_whole_configuration(fake: Fake, http: httpx.AsyncClient) -> None:
    info = {"vllm_config": {"cache_config": {"gpu_memory_utilization": 0.92}, "model_config": {"dtype": "torch.half"}}}
    fake.answers = {"GET /server_info?config_format=json": (200, json.dumps(info))}
    args: Args = {"gpu-memory-utilization": "0.920", "dtype": "half"}
    checks = await server_kind("vllm", http).effective_flags(fake.url, config(args), HEAD % "")
    assert statuses(checks) == {"gpu-memory-utilization": ("equal", "0.92"), "dtype": ("equal", "half")}


async def test_a_log_that_was_cut_off_says_what_it_can(fake: Fake, http: httpx.AsyncClient) -> None:
    head = "non-default args: {'port': 8103, 'max_num_seqs': 1, 'kv_tra… (900 more characters)"
    checks = await server_kind("vllm", http).effective_flags(fake.url, config({"max-num-seqs": "2"}), head)
    assert statuses(checks) == {"max-num-seqs": ("rewritten", "1")}
