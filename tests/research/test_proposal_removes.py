"""What a proposed experiment says that it takes off a step: only of terms that there are, and no more than there is."""

from typing import Any

import pytest

from agent.research.facts import SessionFacts
from agent.research.proposals import Unfit, check_known_flags, proposed

from .conftest import Bench

FORM: dict[str, Any] = {"id": "ep", "based_on": "base", "why": "fewer", "args": [{"name": "ep-size", "value": 8}]}


async def removed(bench: Bench, *removes: dict[str, Any]) -> dict[str, int]:
    facts = SessionFacts(terms={"allreduce": 122}, config_of=lambda name: bench.config if name == "base" else None)
    made = await proposed({**FORM, "removes": list(removes)}, facts, bench.sources, check_known_flags)
    return dict(made.removes)


async def test_calls_of_a_term(bench: Bench) -> None:
    assert await removed(bench, {"term": "allreduce", "calls": 61}) == {"allreduce": 61}
    assert await removed(bench) == {}


@pytest.mark.parametrize(
    ("removes", "reason"),
    [
        ([{"term": "alltoall", "calls": 1}], "there is no term 'alltoall'"),
        ([{"term": "allreduce", "calls": 123}], "123 of the 122 calls of allreduce cannot go"),
        ([{"term": "allreduce", "calls": 0}], "0 of the 122 calls"),
        ([{"term": "allreduce", "calls": 1}] * 2, "or it is given twice"),
        ([{"term": "allreduce"}], "removes.0.calls: Field required"),
    ],
)
async def test_what_cannot_be_so_is_dropped(bench: Bench, removes: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(Unfit) as unfit:
        await removed(bench, *removes)
    assert reason in str(unfit.value)
