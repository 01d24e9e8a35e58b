"""Real loads of SGLang, replayed as they arrived: phases at the marks, never ready too early, causes found."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.model import Phase
from agent.history import LoadHistoryFile

from .conftest import RECORDED
from .replay import KIND, Case, Replayed, replay

MARKS = {
    "server_args": Phase.CONFIG,
    "init_dist_begin": Phase.DIST_INIT,
    "load_begin": Phase.LOAD_WEIGHTS,
    "capture_begin": Phase.GRAPH_CAPTURE,
    "uvicorn_started": Phase.HTTP_START,
    "uvicorn_running": Phase.WARMUP,
    "fired_up": Phase.READY,
}
CASES = [Case(path.parent) for path in sorted(RECORDED.glob("*/chunks.jsonl"))]
DONE: dict[str, Replayed] = {}


def replayed(case: Case) -> Replayed:
    """Each recording is fed once."""
    if case.name not in DONE:
        DONE[case.name] = replay(case, shards=8)
    return DONE[case.name]


def named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_phases_begin_at_their_marks(case: Case) -> None:
    marks, began = case.facts["marks"], replayed(case).began
    assert list(began) == [phase for phase in KIND.phases if phase in began]
    for mark, phase in MARKS.items():
        assert began.get(phase) == pytest.approx(marks.get(mark), abs=1.0) if mark in marks else phase not in began
    assert (Phase.READY in began) == case.expected["was_ready"]
    assert began.get(Phase.READY, 1e9) >= case.facts["marks"].get("fired_up", 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_diagnosis(case: Case) -> None:
    found, want = replayed(case).found, case.expected
    assert found is not None
    assert [found.outcome, found.category, found.phase] == [want["outcome"], want["category"], want["phase"]]
    assert want["rank"] == "any" or found.rank == want["rank"]
    assert found.was_ready == want["was_ready"]
    assert (found.root is None) if want["root_line"] is None else (found.root and want["root_line"] in found.root.text)


# Words of the cause that the reason has to have, since it is told in our own.
WORDS: dict[str, tuple[str, ...]] = {
    "a2a-deepep": ("DeepEP", "not installed"),
    "a2a-flashinfer": ("--enable-dp-attention",),
    "a2a-flashinfer-dp": ("flashinfer_cutlass",),
    "bad-choice": ("--moe-a2a-backend", "pplx"),
    "bad-config-json": ("config", "not a valid JSON"),
    "bad-heads": ("total_num_heads % attn_tp_size",),
    "gpu1-dirty": ("another process",),
    "kill9-rank1-load": ("rank 1", "killed from outside"),
    "kill9-rank1-ready": ("rank 1", "died without a word"),
    "mem-too-small": ("mem-fraction-static", "KV cache"),
    "nccl-tree": ("NCCL_ALGO",),
    "port-in-use": ("port is taken",),
    "sigterm-busy-tp2": ("stopped from outside",),
    "sigterm-load-tp2": ("stopped from outside",),
    "truncated-shard": ("weight file", "incomplete"),
    "unknown-flag": ("--moe-a2a-backnd",),
}


@pytest.mark.parametrize("case", [case for case in CASES if case.name in WORDS], ids=lambda case: case.name)
def test_the_reason_names_the_cause(case: Case) -> None:
    found = replayed(case).found
    assert found is not None and all(word in found.reason for word in WORDS[case.name]), found


def test_a_silent_compile_is_slow_and_not_dead() -> None:
    doubts = [text for at, text in replayed(named("ar-fusion")).doubts if at > 60]
    assert len(doubts) > 100
    assert all(text.startswith("slow: compiling in ") and "ninja" in text for text in doubts)


def test_a_frozen_rank_is_named_by_its_missing_milestone() -> None:
    doubts = [text for _, text in replayed(named("stop-rank1-load")).doubts]
    assert any("TP1" in text and "load-weights" in text for text in doubts), doubts


def test_healthy_loads_are_not_doubted() -> None:
    for case in CASES:
        if case.expected["outcome"] == "ready" and case.name not in ("stop-rank1-load", "tp1-first"):
            assert replayed(case).doubts == [], case.name


def test_a_bar_total_that_differs_from_the_index_is_told() -> None:
    (note,) = replayed(named("missing-shard")).notes
    assert "7 weight files" in note and "lists 8" in note
    assert replayed(named("tp2-baseline")).notes == []


def eta_errors(case: Case, out: Replayed) -> list[float]:
    """The error of each estimate from the first fifth of the load on, as a share of the whole load."""
    ready: float = case.facts["marks"]["fired_up"]
    told: list[tuple[float, Any]] = [(at, update.remaining_s) for at, update in out.updates if at >= ready / 5]
    return [abs(at + left - ready) / ready for at, left in told if at < ready and left is not None]


def test_the_eta_of_a_load_like_earlier_ones(tmp_path: Path) -> None:
    history = LoadHistoryFile(tmp_path / "loads.jsonl")
    for name in ("torch-symm-mem", "tp2-ep2"):
        history.add("host", "sglang", "/opt/m/qwen3moe", replayed(named(name)).durations)
    case = named("tp2-baseline-again")
    errors = eta_errors(case, replay(case, history.phases_s("host", "sglang", "/opt/m/qwen3moe")))
    assert len(errors) > 10
    assert max(errors) <= 0.15
