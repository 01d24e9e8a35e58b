"""The flags of the shipped playbooks in the version that they name, as far as a simulated server's source has them."""

from functools import cache
from pathlib import Path

import pytest

from agent.core.plan import config_of
from agent.core.reduce import initial
from agent.flags.check import check_args
from agent.flags.model import FlagTable
from agent.playbook.model import Playbook
from agent.servers.known_flags import known_flags
from tests.core.conftest import started
from tests.flags.trees import simulated, table
from tests.playbook.kit import good

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
NOT_SIMULATED = {"enable-eplb", "ep-num-redundant-experts", "fp8-gemm-backend"}
"""Flags of the real 0.5.23 that its simulated tree leaves out; the list of known flags has them."""


@cache
def newest() -> FlagTable:
    return table(simulated("0.5.23"))


def shipped(name: str) -> Playbook:
    return good((PLAYBOOKS / f"{name}.yaml").read_text())


@pytest.mark.parametrize("name", ["dense-1gpu", "deepseek-8x-h200"])
def test_sglang_0_5_23_takes_every_flag_with_its_value(name: str) -> None:
    book = shipped(name)
    assert book.server.version == ">=0.5.23"
    state = initial(started(book))
    told = [p for e in book.experiments for p in check_args(newest(), config_of(state, e.id).args)]
    assert {p.flag for p in told} <= NOT_SIMULATED, [p.message for p in told if p.flag not in NOT_SIMULATED]
    assert {p.kind for p in told} == {"unknown"}
    assert set(NOT_SIMULATED) <= {spelling for flag in known_flags("sglang") for spelling in flag}


@pytest.mark.parametrize("name", ["dense-1gpu", "deepseek-8x-h200", "vllm-2gpu", "llamacpp-cpu"])
def test_every_experiment_says_why_and_changes_something(name: str) -> None:
    book = shipped(name)
    changed = [e for e in book.experiments if not e.baseline]
    assert all(e.why and (e.args or e.env) for e in changed)
    assert len({(e.based_on, repr(e.args), repr(e.env)) for e in changed}) == len(changed)
    assert book.guard is not None, "fewer bits and guessed tokens are fast, and may be wrong"
