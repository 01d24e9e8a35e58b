"""Shuffled worlds: names, effects and failures are drawn by seed; the verdicts must follow the simulator's ledger.

`pytest tests/session/test_worlds.py --worlds 50` plays fifty.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from agent.core.state import ExperimentState
from tests.session.kit import Session, run, small_playbook

TABLE = "sglang:srt/distributed/device_communicators/all_reduce_utils.py"
# Far from every effect below: a busy machine makes rounds differ by several per cent.
MIN_GAIN = 0.15
# Flags of the simulated tree that no rule of its own gives a meaning.
FLAGS = ["enable-mscclpp", "enable-nccl-nvls", "enable-symm-mem", "enable-mixed-chunk", "enable-torch-compile"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--worlds")))


def world_of(draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A world and a playbook for it."""
    major = draw.choice([9, 12])
    names = [f"{draw.choice('abcdefgh')}{draw.randrange(10_000)}" for _ in range(8)]
    base, *ids = dict.fromkeys(names)
    rules: list[dict[str, Any]] = []
    experiments: list[dict[str, Any]] = [{"id": base, "args": {"disable-custom-all-reduce": True}}]
    for name, flag in zip(ids, FLAGS, strict=False):
        effect = draw.choice([1.4, 1.3, 1.0, 0.7, 0.6, "dies", "refused"])
        rules.append({"when": {"flags": {flag.replace("-", "_"): True}}, "then": _effect(effect)})
        experiments.append(
            {"id": name, "based_on": draw.choice([base, base, experiments[-1]["id"]]), "args": {flag: True}}
        )
    symm = {"table-has-key": {"in": TABLE, "table": "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES", "key": "{gpu.sm_major}"}}
    experiments.append({"id": "symm", "args": {"enable-torch-symm-mem": True}, "preflight": [symm]})
    rules.append({"when": {"flags": {"enable_torch_symm_mem": True}}, "then": {"factor": 1.35}})
    watched = draw.sample(ids[: len(FLAGS)], 2)
    experiments.append(
        {
            "id": "ep",
            "args": {"ep-size": 2},
            "when": {draw.choice(["all", "any"]): watched, "are": ["worse", "failed", "no-gain", "not-reached"]},
        }
    )
    rules.append({"when": {"flags": {"ep_size": 2}}, "then": {"factor": draw.choice([1.4, 0.7])}})
    if draw.random() < 0.15:
        rules.append({"when": {"flags": {"disable_custom_all_reduce": True}}, "then": _effect("refused")})
    tail = experiments[1:]
    draw.shuffle(tail)
    world = {
        "name": "shuffled",
        "speed": 800,
        "seed": draw.randrange(1000),
        "gpu": {"count": 2, "compute_cap": f"{major}.0"},
        "phases": {"import": 40, "load-weights": 80, "dist-init": 20, "graph-capture": 60, "drain-poll": 20},
        "rates": {"tok_s": 100, "token_speed": 8, "ttft": 0.004, "prefill_tok_s": 100_000},
        "noise": {"launch_sd": 0.005, "round_sd": 0.005},
        "shards": 8,
        "rules": rules,
    }
    changes = {"min_gain": f"{MIN_GAIN:.0%}", "workload": "w"}
    workload = {"name": "w", "input_len": 32, "output_len": 64, "requests": 2, "rounds": 5}
    return world, small_playbook(experiments[0], *tail, objective=changes, workloads=[workload])


def _effect(effect: float | str) -> dict[str, Any]:
    if effect == "dies":
        return {"fail": {"phase": "graph-capture", "ranks": [1], "exception": "RuntimeError", "message": "it broke"}}
    if effect == "refused":
        return {"fail": {"phase": "args", "exception": "ValueError", "message": "refused", "exit": 1}}
    return {"factor": effect}


@pytest.mark.long
async def test_the_verdicts_follow_the_ledger(seed: int, tmp_path: Path) -> None:
    world, book = world_of(random.Random(seed))
    session = await run(book, tmp_path, world)
    assert session.state.ending == "completed"
    assert session.nothing_left()
    real = session.real_launches()
    for name, experiment in session.state.experiments.items():
        word = session.words[name]
        if word in ("ruled-out", "not-reached"):
            assert name not in real, "its load was not paid"
        else:
            parent = experiment.spec.based_on or name
            expected = _expected(real[name], real[parent])
            assert word == expected or _stalled(experiment), f"{name} against {parent}: {experiment.verdict}"
    _check_preflight(session, world)
    _check_when(session)
    _check_incumbent(session, real)


def _stalled(experiment: ExperimentState) -> bool:
    """Whether the machine made rounds differ so much that "inconclusive" is the right word, whatever the truth is."""
    verdict = experiment.verdict
    if verdict is None or verdict.word != "inconclusive" or verdict.low is None or verdict.high is None:
        return False
    return verdict.high - verdict.low > MIN_GAIN


def _expected(launch: dict[str, Any], parent: dict[str, Any]) -> str:
    """The verdict that follows from the true speeds; effects are far from `min_gain`."""
    if launch["ready"] is None:
        return "failed"
    if launch is parent:
        return "keep"
    gain = launch["tok_s"] / parent["tok_s"] - 1
    return "keep" if gain > MIN_GAIN else "worse" if gain < -MIN_GAIN else "no-gain"


def _check_preflight(session: Session, world: dict[str, Any]) -> None:
    word = session.words["symm"]
    if world["gpu"]["compute_cap"] == "12.0":
        assert word == "ruled-out"
    else:
        assert word in ("keep", "not-reached")


def _check_when(session: Session) -> None:
    ep = session.state.experiments["ep"]
    assert ep.spec.when
    fits = [session.words[name] in ep.spec.when.are for name in (*ep.spec.when.all_of, *ep.spec.when.any_of)]
    holds = all(fits) if ep.spec.when.all_of else any(fits)
    baseline = next(e for e in session.state.experiments.values() if e.spec.baseline)
    runs = holds and session.words[baseline.id] != "failed"
    assert (session.words["ep"] != "not-reached") == runs


def _check_incumbent(session: Session, real: dict[str, dict[str, Any]]) -> None:
    ready = {name: launch["tok_s"] for name, launch in real.items() if launch["ready"]}
    if not ready:
        assert session.state.incumbent is None
    else:
        assert session.state.incumbent
        assert ready[session.state.incumbent] >= max(ready.values()) / (1 + MIN_GAIN) ** 2
