"""What a real llama-server (0.7.0, build 11669, November 2026) logged and told; paths are shortened."""

# ruff: noqa: E501 - log lines are as long as servers write them

import json

import httpx
import pytest

from agent.core.model import LaunchConfig, Phase
from agent.playbook.model import Args
from agent.ports import Speculation
from agent.servers import server_kind
from agent.watch.watch import LoadWatch

from .conftest import Fake

LOAD = """\
0.00.027.320 I srv  llama_server: initializing ...
0.00.052.994 I cmn  common_param: system_info: n_threads = 2 (n_threads_batch = 4) / 2 | CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 |
0.00.053.250 W srv  llama_server: security: no API key is set and CORS allows all origins (see https://github.com/ggml-org/llama.cpp/pull/25655)
0.00.068.772 I srv    load_model: loading model '/m/model.gguf'
0.00.068.806 I cmn  common_init_: fitting params to device memory ...
0.00.217.292 I llama_model_loader: loaded meta data with 22 key-value pairs and 110 tensors from /m/model.gguf (version GGUF V3 (latest))
0.00.314.743 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.05.477.571 I llama_context: constructing llama_context
0.05.477.575 I llama_context: n_ctx                 = 8192
0.05.477.576 I llama_context: n_batch               = 4096
0.05.477.576 I llama_context: n_ubatch              = 512
0.05.477.577 I llama_context: flash_attn            = disabled
0.05.477.578 I llama_context: kv_unified            = false
0.09.491.668 I llama_kv_cache: size =   96.00 MiB (  1024 cells,  12 layers,  8/8 seqs), K (f16):   48.00 MiB, V (q8_0):   48.00 MiB
0.09.498.235 I cmn  common_init_: warming up the model with an empty run - please wait ... (--no-warmup to disable)
0.31.381.770 I srv    load_model: initializing, n_slots = 8, n_ctx_slot = 1024, kv_unified = 'false'
0.31.413.982 I srv  llama_server: model loaded
0.31.413.987 I srv  llama_server: listening on http://127.0.0.1:8391
"""
DEFAULT_VERBOSITY = """\
0.00.027.689 I srv  llama_server: initializing ...
0.00.085.089 I srv  init_listene: The UI is disabled
0.00.092.683 I srv    load_model: loading model '/m/model.gguf'
0.03.578.285 I cmn          init: llama threadpool init, n_threads = 1
0.04.707.993 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'false'
0.04.753.540 I srv  llama_server: model loaded
0.04.753.681 I srv  llama_server: listening on http://127.0.0.1:8391
"""
BEGUN = """\
0.00.027.320 I srv  llama_server: initializing ...
0.00.068.772 I srv    load_model: loading model '/m/model.gguf'
"""
NOT_LOADED = """\
0.00.137.217 E llama_model_load_from_file_impl: failed to load model
0.00.137.261 E common_fit_params: encountered an error while trying to fit params to free device memory: failed to load model
0.00.137.290 E cmn  common_init_: failed to load model '/m/model.gguf'
0.00.137.293 E srv    load_model: failed to load model, '/m/model.gguf'
0.00.151.701 I srv    operator(): operator(): cleaning up before exit...
0.00.151.727 E srv  llama_server: exiting due to model loading error
"""
FAILURES = {
    "flag": ("error: invalid argument: --no-such-flag\n", "cli-arguments", "error: invalid argument: --no-such-flag"),
    "value": (
        'error while handling argument "--cache-type-k": Unsupported cache type: q9_9\n\nusage:\n-ctk,  --cache-type-k TYPE              KV cache data type for K\n',
        "cli-arguments", "Unsupported cache type: q9_9",
    ),
    "missing": (
        BEGUN + "0.00.137.034 E gguf_init_from_file: failed to open GGUF file '/m/model.gguf' (No such file or directory)\n"
        "0.00.137.206 E llama_model_load: error loading model: llama_model_loader: failed to load model from /m/model.gguf\n" + NOT_LOADED,
        "hub-access", "failed to open GGUF file '/m/model.gguf' (No such file or directory)",
    ),
    "pointer": (
        BEGUN + "0.00.136.619 E gguf_init_from_reader: invalid magic characters: 'vers', expected 'GGUF'\n"
        "0.00.136.783 E llama_model_load: error loading model: llama_model_loader: failed to load model from /m/model.gguf\n" + NOT_LOADED,
        "checkpoint-corrupt", "invalid magic characters: 'vers', expected 'GGUF'",
    ),
    "cut": (
        BEGUN + "0.00.101.291 E llama_model_load: error loading model: tensor 'blk.2.ffn_up.weight' data is not within the file bounds, model is corrupted or incomplete\n" + NOT_LOADED,
        "checkpoint-corrupt", "tensor 'blk.2.ffn_up.weight' data is not within the file bounds",
    ),
    "draft": (
        LOAD[: LOAD.index("0.31")] + "2.02.758.541 E gguf_init_from_file: failed to open GGUF file '/m/draft.gguf' (No such file or directory)\n"
        "2.02.758.583 E common_speculative_init_result: failed to load draft model, '/m/draft.gguf'\n"
        "2.02.760.306 E srv    load_model: failed to load draft model, '/m/draft.gguf'\n"
        "2.02.764.248 E srv  llama_server: exiting due to model loading error\n",
        "hub-access", "failed to open GGUF file '/m/draft.gguf' (No such file or directory)",
    ),
    "port": (
        "0.00.006.120 I srv  llama_server: initializing ...\n"
        "0.00.059.663 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8397\n"
        "0.00.059.665 I srv    operator(): operator(): cleaning up before exit...\n"
        "0.00.069.280 E srv  llama_server: exiting due to HTTP server error\n",
        "port-in-use", "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8397",
    ),
}  # fmt: skip
METRICS = """\
# TYPE llamacpp:spec_decode_num_draft_tokens_total counter
llamacpp:spec_decode_num_draft_tokens_total 240
llamacpp:spec_decode_num_accepted_tokens_total 60
llamacpp:spec_decode_num_drafts_total 80
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 50
"""


def watched(log: str) -> tuple[LoadWatch, list[Phase]]:
    watch = LoadWatch(server_kind("llamacpp", httpx.AsyncClient()), None)
    return watch, [update.phase for update in watch.feed(log.encode(), 1.0) if update.begins]


def test_a_load_passes_its_phases() -> None:
    begun = [Phase.IMPORT, Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.WARMUP, Phase.READY]
    assert watched(LOAD)[1] == begun
    assert watched(LOAD)[0].doubt() == ""


def test_at_its_default_verbosity_a_load_tells_the_weights_and_the_end() -> None:
    assert watched(DEFAULT_VERBOSITY)[1] == [Phase.IMPORT, Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.READY]


@pytest.mark.parametrize(("log", "category", "words"), FAILURES.values(), ids=FAILURES)
def test_a_start_that_fails_names_its_root(log: str, category: str, words: str) -> None:
    failure = watched(log)[0].diagnose(1, stopped_by_us=False)
    assert failure.category == category
    assert words in failure.reason
    assert words in failure.evidence[0].text


async def test_flags_are_held_against_what_the_log_and_props_say(fake: Fake, http: httpx.AsyncClient) -> None:
    props = {"default_generation_settings": {"n_ctx": 1024}, "total_slots": 8, "endpoint_metrics": True}
    fake.answers["GET /props"] = (200, json.dumps(props | {"model_path": "/m/model.gguf", "ui": False}))
    args: Args = {
        "model": "/m/model.gguf", "threads": "2", "tb": "2", "np": "8", "ctx-size": "8192", "ub": "8192",
        "flash-attn": "off", "cache-type-k": "q8_0", "ctv": "q8_0", "kv-unified": True, "metrics": True, "poll": "0",
    }  # fmt: skip
    config = LaunchConfig(
        kind="llamacpp", command=("llama-server",), args=args, env={}, source={}, version=None, load_timeout_s=60.0
    )
    checks = await server_kind("llamacpp", http).effective_flags(fake.url, config, watched(LOAD)[0].log_head())
    assert {check.flag: check.status for check in checks} == {
        "model": "equal", "threads": "equal", "tb": "contradicted", "np": "equal", "ctx-size": "equal",
        "ub": "rewritten", "flash-attn": "equal", "cache-type-k": "contradicted", "ctv": "equal",
        "kv-unified": "contradicted", "metrics": "equal", "poll": "not-reported",
    }  # fmt: skip


async def test_metrics_tell_what_speculation_accepted(fake: Fake, http: httpx.AsyncClient) -> None:
    kind = server_kind("llamacpp", http)
    fake.answers["GET /metrics"] = (
        501,
        '{"error":{"code":501,"message":"This server does not support metrics endpoint."}}',
    )
    assert await kind.speculation(fake.url) is None
    fake.answers["GET /metrics"] = (200, METRICS)
    assert await kind.speculation(fake.url) == Speculation(kept=140.0, passes=80.0)
