"""The watch of a load: phases in order, the second weight load, progress, the ETA."""

import pytest

from agent.core.model import Phase
from agent.ports import WatchUpdate
from agent.servers.sglang import SGLang
from agent.servers.vllm import VLLM
from agent.watch.eta import Bar, remaining_s
from agent.watch.watch import LoadWatch

HTTP = None  # the watch makes no calls


def sglang(usual: dict[Phase, float] | None = None) -> LoadWatch:
    return LoadWatch(SGLang(HTTP), usual)  # type: ignore[arg-type]


def at(message: str, prefix: str = "") -> bytes:
    return f"[2026-03-02 10:00:00{prefix}] {message}\n".encode()


def phases(updates: list[WatchUpdate]) -> list[Phase]:
    return [update.phase for update in updates if update.begins]


START = [
    (10.0, b"launch_server.py:56: UserWarning: 'python -m sglang.launch_server' is still supported\n"),
    (12.0, at("server_args=ServerArgs(model_path='/m')")),
    (20.0, at("Init torch distributed begin.", " TP0")),
    (25.0, at("Load weight begin. avail mem=94.1 GB", " TP0")),
    (65.0, at("Load weight end. elapsed=40.00 s, mem usage=74 GB.", " TP0")),
    (66.0, at("KV Cache is allocated. #tokens: 9, KV size: 3 GB", " TP0")),
    (67.0, at("Capture cuda graph begin. This can take up to several minutes.", " TP0")),
    (97.0, at("Capture cuda graph end. Time elapsed: 30 s.", " TP0")),
    (98.0, at("INFO:     Started server process [7]")),
    (99.0, at("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)")),
    (100.0, at("The server is fired up and ready to roll!")),
]
USUAL = {
    Phase.LAUNCH: 10.0, Phase.IMPORT: 0.0, Phase.ARGS: 2.0, Phase.CONFIG: 8.0, Phase.DIST_INIT: 5.0,
    Phase.LOAD_WEIGHTS: 40.0, Phase.KV_CACHE: 2.0, Phase.GRAPH_CAPTURE: 31.0, Phase.HTTP_START: 1.0, Phase.WARMUP: 1.0,
}  # fmt: skip


def test_a_healthy_start_passes_its_phases_and_their_durations_are_kept() -> None:
    watch = sglang()
    seen = [phase for now, data in START for phase in phases(watch.feed(data, now))]
    assert seen == list(SGLang.phases[1:-1])
    assert watch.is_up
    assert watch.durations_s() == USUAL


def test_the_eta_counts_down_and_the_fraction_never_goes_back() -> None:
    watch = sglang(USUAL)
    fraction = 0.0
    script = dict(START)
    for second in range(1, 100):
        for update in watch.feed(script.get(float(second), b""), float(second)):
            assert update.remaining_s == pytest.approx(100 - second)
            assert update.fraction is not None and fraction <= update.fraction < 1
            fraction = update.fraction
    (update,) = watch.feed(START[-1][1], 100.0)
    assert (update.phase, update.fraction, update.remaining_s) == (Phase.READY, 1.0, 0.0)


def test_without_history_there_is_no_eta_and_silence_says_nothing() -> None:
    watch = sglang()
    updates = [update for now, data in START[:5] for update in watch.feed(data, now)]
    assert {update.remaining_s for update in updates} == {None}
    assert watch.feed(b"", 66.0) == []


def test_progress_is_told_at_most_once_a_second_and_from_the_unfinished_bar() -> None:
    watch = sglang()
    watch.feed(START[3][1], 1.0)
    told = []
    for step in range(100):
        bar = f"\rMulti-thread loading shards: {step:3d}% Completed | {step}/100 [00:01<00:10, 9.1it/s]"
        told += watch.feed(bar.encode(), 1.0 + step / 10)
    assert [update.begins for update in told] == [False] * len(told)
    assert [update.done for update in told] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert {update.total for update in told} == {100}


def test_the_second_weight_load_under_speculation_enters_the_phase_again() -> None:
    watch = sglang()
    for now, data in START[:8]:
        watch.feed(data, now)
    draft = [
        at("Init torch distributed begin.", " TP0"),
        at("Load weight begin. avail mem=9 GB", " TP0"),
        at("Load weight begin. avail mem=9 GB", " TP1"),
        at("Load weight end. elapsed=1 s", " TP0"),
        at("Load weight end. elapsed=1 s", " TP1"),
        at("Capture draft cuda graph begin. avail mem=5 GB", " TP0"),
        at("Capture draft extend cuda graph begin. avail mem=5 GB", " TP0"),
    ]
    updates = [update for step, data in enumerate(draft) for update in watch.feed(data, 98.0 + step)]
    assert phases(updates) == [Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.GRAPH_CAPTURE]


def test_weights_are_loaded_when_the_last_rank_has_them() -> None:
    watch = sglang()
    for rank in (0, 1):
        watch.feed(at("Load weight begin.", f" TP{rank}"), 1.0)
    assert watch.feed(at("Load weight end.", " TP0"), 5.0) == []
    assert phases(watch.feed(at("Load weight end.", " TP1"), 45.0)) == [Phase.KV_CACHE]


def test_late_lines_of_other_ranks_do_not_turn_the_load_back() -> None:
    watch = sglang()
    for now, data in START[:7]:
        watch.feed(data, now)
    assert (
        watch.feed(at("KV Cache is allocated. #tokens: 9", " TP5") + at("Init torch distributed ends.", " TP5"), 67.5)
        == []
    )
    assert watch.phase is Phase.GRAPH_CAPTURE


def test_vllm_compiles_before_its_cache_is_sized() -> None:
    watch = LoadWatch(VLLM(HTTP), None)  # type: ignore[arg-type]
    log = b"""Triton is installed.
(APIServer pid=1) INFO 11-30 00:45:29 [api_utils.py:347]   version 0.32.0
(APIServer pid=1) INFO 11-30 00:45:29 [api_utils.py:286] non-default args: {'model': '/m'}
(EngineCore pid=2) INFO 11-30 00:45:45 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/m'
(Worker pid=3) INFO 11-30 00:45:52 [gpu_model_runner.py:68] Starting to load model /m...

Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00, 50.15it/s]
(Worker pid=3) INFO 11-30 00:45:52 [gpu_model_runner.py:50] Model loading took 56.9 GiB memory and 18.1 seconds
(Worker pid=3) INFO 11-30 00:45:53 [backends.py:1155] Dynamo bytecode transform time: 9.54 s
(Worker pid=3) INFO 11-30 00:45:53 [gpu_worker.py:563] Available KV cache memory: 13.84 GiB
(EngineCore pid=2) INFO 11-30 00:45:53 [kv_cache_utils.py:2235] GPU KV cache size: 151,216 tokens
(Worker pid=3) Capturing CUDA graphs (decode, FULL):  40%|####      | 2/5 [00:00<00:00, 12.60it/s]
(APIServer pid=1) INFO 11-30 00:45:55 [entry.py:140] Starting vLLM server on http://127.0.0.1:8103
INFO:     Started server process [1]
INFO:     Application startup complete.
"""
    assert phases(watch.feed(log, 1.0)) == list(VLLM.phases[1:-1])


def test_a_failed_bind_is_fatal_and_its_cause() -> None:
    watch = sglang()
    for now, data in START[:9]:
        watch.feed(data, now)
    line = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30028): address already in use"
    watch.feed(at(line), 99.0)
    assert watch.fatal == "the port is in use"
    failure = watch.diagnose(None, stopped_by_us=False)
    assert (failure.category, failure.phase, failure.evidence[0].line) == ("port-in-use", Phase.HTTP_START, 10)


def test_the_head_of_the_log_is_kept_without_bars_and_bounded() -> None:
    watch = sglang()
    watch.feed(b"\x1b[1mfirst\x1b[0m\n\rbar 1/2 [\rbar 2/2 [\n" + b"z" * 1000 + b"\n", 1.0)
    assert watch.log_head() == "first\nbar 2/2 [\n" + "z" * 1000
    for _ in range(500):
        watch.feed(b"z" * 1000 + b"\n", 2.0)
    assert len(watch.log_head()) <= 256 * 1024


def test_a_slow_bar_counts_more_than_history_and_the_first_of_several_bars_is_not_the_end() -> None:
    def left(usual: dict[Phase, float] | None, spent: dict[Phase, float], phase: Phase, bar: Bar) -> float | None:
        return remaining_s(SGLang.phases, usual, spent, phase, bar)

    slow, drawn = Bar(done=5, total=10, seconds=100), Bar(done=5, total=5, seconds=10)
    weights, graphs = Phase.LOAD_WEIGHTS, Phase.GRAPH_CAPTURE
    assert left({weights: 40.0}, {weights: 100.0}, weights, slow) == 100
    assert left({graphs: 30.0}, {graphs: 10.0}, graphs, drawn) == 20
    assert left(None, {}, weights, slow) is None
