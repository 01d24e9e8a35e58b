"""The laws of SGLang's flags: what each is worth on the story's host and on one with NVLink, and how it fails there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.sim.facts import facts_of, fits
from agent.sim.failures import CHAINS, HEAD, line_of
from agent.sim.host import WORLDS, world_file
from agent.sim.rules import Outcome, outcome_of
from agent.sim.venvs import TREES
from agent.sim.world import World, parse_world, read_world

ARGS: dict[str, Any] = {
    "disable_custom_all_reduce": True,
    "ep_size": 1,
    "moe_a2a_backend": "none",
    "tp_size": 8,
    "pp_size": 1,
    "attention_backend": "triton",
    "kv_cache_dtype": "auto",
    "load_format": "auto",
    "model_loader_extra_config": "{}",
}
EAGLE = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_num_draft_tokens": 4}
TWO = {**EAGLE, "speculative_num_steps": 1, "speculative_num_draft_tokens": 2}
MLA = {**EAGLE, "speculative_draft_model_path": "/home/models/kimi-k2.5-eagle3-mla"}
NGRAM = {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 12}
CUSTOM = {"disable_custom_all_reduce": False}
SYMM = {"enable_torch_symm_mem": True}
OLD_FUSION = {"enable_flashinfer_allreduce_fusion": True}
FUSION = {"flashinfer_allreduce_fusion_backend": "auto"}
DEEPEP = {"moe_a2a_backend": "deepep", "ep_size": 8}
FORCED = {"SGLANG_FORCE_PCIE_CUSTOM_ALL_REDUCE": "1"}
IPC = {"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"}
V2 = {"SGLANG_ENABLE_SPEC_V2": "1"}
DUMMY = {"load_format": "dummy"}


def world(name: str = "story", **changes: Any) -> World:
    data = read_world(world_file(name))
    return parse_world({**data, **changes})


def outcome(
    where: World, flags: Mapping[str, Any], env: Mapping[str, str] | None = None, environment: str = "default"
) -> Outcome:
    return outcome_of(where, {**ARGS, **flags}, {"NCCL_P2P_LEVEL": "SYS", **(env or {})}, environment)


@pytest.mark.parametrize(
    ("flags", "env", "environment", "tok_s"),
    [
        ({}, {}, "default", 89.5),
        (EAGLE, {}, "default", 54.1),
        (CUSTOM, {}, "default", 89.5),
        (CUSTOM, FORCED, "default", 38.0),
        ({}, {"NCCL_ALGO": "allreduce:tree"}, "default", 82.0),
        ({"ep_size": 8}, {}, "default", 101.2),
        ({}, IPC, "default", 89.5),
        ({}, {"NCCL_PROTO": "LL"}, "default", 90.0),
        (EAGLE, {"NCCL_PROTO": "LL"}, "default", 89.2),
        (EAGLE, {"NCCL_PROTO": "LL,LL128,Simple"}, "default", 88.1),
        (EAGLE, V2, "default", 61.1),
        (TWO, {}, "default", 80.7),
        (NGRAM, {}, "default", 48.8),
        ({"attention_backend": "flashinfer"}, {}, "default", 103.1),
        ({"attention_backend": "flashinfer", "kv_cache_dtype": "fp8_e4m3"}, {}, "default", 16.03),
        ({"attention_backend": "triton", "kv_cache_dtype": "fp8_e4m3"}, {}, "default", 90.4),
        ({"enable_torch_compile": True}, {}, "default", 91.4),
        ({"pp_size": 2, "tp_size": 4}, {}, "default", 62.3),
        ({"context_length": 131072}, {}, "default", 89.5),
        ({"stream_interval": 4}, {"NCCL_NTHREADS": "256"}, "default", 89.5),
        ({}, {"NCCL_P2P_LEVEL": "PIX"}, "default", 89.5),
        ({}, {"NCCL_P2P_DISABLE": "1"}, "default", 71.9),
        ({}, {"NCCL_GRAPH_FILE": "graph.xml"}, "default", 104.1),
        ({}, {}, "cuda13", 94.0),
        (SYMM, {}, "cuda13", 108.0),
        (FUSION, {}, "cuda13", 112.0),
        ({}, IPC, "cuda13", 126.0),
        (EAGLE, IPC, "cuda13", 137.9),
        (MLA, {}, "cuda13", 66.0),
        ({"dcp_size": 4, "attention_backend": "flashinfer"}, {}, "cuda13", 88.7),
    ],
)
def test_speed_in_the_story(flags: dict[str, Any], env: dict[str, str], environment: str, tok_s: float) -> None:
    found = outcome(world(), flags, env, environment)
    assert found.tok_s == pytest.approx(tok_s, rel=2e-3) and found.fail is None


def test_without_peer_access_between_sockets_the_baseline_is_slower() -> None:
    assert outcome_of(world(), ARGS, {}, "default").tok_s == pytest.approx(86.3, rel=2e-3)


@pytest.mark.parametrize(
    ("flags", "env", "environment", "exception", "phase"),
    [
        (SYMM, {}, "default", "KeyError", "dist-init"),
        (OLD_FUSION, {}, "default", "RuntimeError", "graph-capture"),
        ({}, {"NCCL_ALGO": "Tree"}, "default", "RuntimeError", "graph-capture"),
        ({}, {"NCCL_ALGO": "tree"}, "cuda13", "RuntimeError", "graph-capture"),
        ({**SYMM, **OLD_FUSION}, {"NCCL_ALGO": "Tree"}, "default", "KeyError", "dist-init"),
        (DEEPEP, {}, "default", "ImportError", "load-weights"),
        ({"moe_a2a_backend": "flashinfer"}, {}, "default", "torch.OutOfMemoryError", "graph-capture"),
        ({"attention_backend": "trtllm_mla"}, {}, "cuda13", "RuntimeError", "graph-capture"),
        (MLA, {}, "default", "ValueError", "draft-load"),
        (
            {**DUMMY, "model_loader_extra_config": '{"enable_multithread_load": true}'},
            {},
            "default",
            "ValueError",
            "load-weights",
        ),
        ({}, {**IPC, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "cuda13", "RuntimeError", "dist-init"),
    ],
)
def test_failures_in_the_story(
    flags: dict[str, Any], env: dict[str, str], environment: str, exception: str, phase: str
) -> None:
    fail = outcome(world(), flags, env, environment).fail
    assert fail is not None and (fail.exception, fail.phase) == (exception, phase)


@pytest.mark.parametrize(
    ("flags", "env", "environment", "gain"),
    [
        (CUSTOM, {}, "default", 0.217),
        (SYMM, {}, "default", 0.260),
        (OLD_FUSION, {}, "default", 0.178),
        ({**OLD_FUSION, **CUSTOM}, {}, "default", 0.317),
        (DEEPEP, {}, "default", 0.060),
        ({}, IPC, "cuda13", 0.0),
        (FUSION, {}, "cuda13", 0.178),
        ({**EAGLE, **CUSTOM}, {}, "cuda13", 0.744),
    ],
)
def test_what_fails_over_pcie_wins_over_nvlink(
    flags: dict[str, Any], env: dict[str, str], environment: str, gain: float
) -> None:
    there = world("nvlink")
    found = outcome(there, flags, env, environment)
    assert found.fail is None
    assert found.tok_s / outcome(there, {}).tok_s - 1 == pytest.approx(gain, abs=0.002)


def test_forced_peer_access_of_the_driver_makes_the_custom_kernel_good() -> None:
    gpu = {**read_world(world_file("story"))["gpu"], "driver_options": {"RegistryDwords": '"ForceP2P=0x11"'}}
    found = outcome(world(gpu=gpu), CUSTOM, FORCED)
    assert found.kernel == "custom-p2p" and found.tok_s == pytest.approx(108.5, rel=2e-3)


def test_without_a_fiction_symmetric_memory_and_fusion_change_nothing_or_fail_on_cuda_13() -> None:
    real = world(facts={"nccl_transport": "shm"})
    symm = outcome(real, SYMM, environment="cuda13")
    assert symm.kernel == "nccl" and "Device capability 12 not supported." in symm.logs[0].line
    fail = outcome(real, FUSION, environment="cuda13").fail
    assert fail and fail.message == "FlashInfer allreduce fusion requires SM90 or SM10X NVIDIA GPUs."
    quiet = outcome(real, OLD_FUSION)
    assert quiet.fail is None and quiet.pace == outcome(real, {}).pace


@pytest.mark.parametrize(
    ("nccl", "algorithm", "fails"),
    [
        ("2.31.1", "allreduce:tree", True),
        ("2.31.1", "ring,tree;allreduce:tree", False),
        ("2.28.9", "allreduce:tree", False),
    ],
)
def test_the_form_of_tree_by_version_of_nccl(nccl: str, algorithm: str, fails: bool) -> None:
    there = world(environments={"default": {"nccl": nccl}})
    found = outcome(there, {}, {"NCCL_ALGO": algorithm, "NCCL_PROTO": "Simple"})
    assert found.kernel == "nccl-tree" and (found.fail is not None) == fails


def test_random_weights_load_at_once_and_draft_nothing() -> None:
    found = outcome(world(), {**EAGLE, **DUMMY})
    assert found.garble and found.spec_accept == 1.0 and found.load["load-weights"] * 420 < 5
    assert outcome(world(), {"model_loader_extra_config": '{"enable_multithread_load": true}'}).load == {
        "load-weights": 0.53
    }


def test_a_cache_of_small_numbers_holds_more() -> None:
    assert outcome(world(), {"kv_cache_dtype": "fp8_e4m3"}).kv == 2.4
    assert outcome(world(), {"dcp_size": 4}, environment="cuda13").kv == 4


@pytest.mark.parametrize("name", sorted(path.stem for path in WORLDS.glob("*.yaml")))
def test_frames_of_failures_are_in_the_trees_of_their_environments(name: str) -> None:
    there = world(name)
    for environment in there.environments.values():
        facts = facts_of(there, environment)
        frames = {*HEAD, *(frame for chain in CHAINS.values() for frame in chain)}
        for rule in there.rules:
            if rule.then.fail and all(fits(facts.get(key), wanted) for key, wanted in rule.when.facts.items()):
                frames |= set(rule.then.fail.frames)
        roots = [TREES / f"sglang-{environment.generation}", TREES / "common"]
        lost = [frame for frame in frames if not any(line_of(_source(root, frame[0]), frame[2]) for root in roots)]
        assert lost == []


def _source(root: Path, file: str) -> Path:
    return root / f"{file}.txt"


@pytest.mark.parametrize(
    ("value", "wanted", "answer"),
    [
        ("2.31.0", ">=2.31", True),
        ("2.28.9", ">=2.31", False),
        ("0.5.10.post1", "<0.5.11", True),
        (None, "<0.5.11", False),
        (None, None, True),
        ("x", None, False),
        (True, "*", True),
        (False, "*", False),
        ("LL,LL128", "ll,*", True),
        ("Ring", "ll,*", False),
        ("tree", ["Tree", "Ring"], True),
        (8, 8, True),
    ],
)
def test_what_fits(value: object, wanted: object, answer: bool) -> None:
    assert fits(value, wanted) is answer
