"""What an LLM recommends and proposes: kept where a playbook could have it, else dropped with the reason."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.model import Spent, Task
from agent.core.reduce import initial
from agent.core.state import Launch, LaunchStage, TaskState
from agent.playbook.model import AskEntry, Experiment
from agent.research.answer_form import FlagForm
from agent.research.budget import Amount
from agent.research.facts import LaunchFacts, SessionFacts, facts_of
from agent.research.proposals import Unfit, check_known_flags, proposed, recommended

from ..core.conftest import playbook, started
from .conftest import Bench, asker
from .fake_llm import answers, serve

GOOD: dict[str, Any] = {
    "id": "ep-plain",
    "based_on": "base",
    "why": "a2a \x1b[2Jmay help",
    "args": [{"name": "--ep-size", "value": 8}, {"name": "moe-a2a-backend", "value": None}],
    "env": [{"name": "NCCL_ALGO", "value": "Ring"}],
}


def flag(name: str, value: Any) -> dict[str, Any]:
    return {**GOOD, "args": [{"name": name, "value": value}], "env": []}


async def proposal(bench: Bench, form: dict[str, Any]) -> Experiment:
    facts = SessionFacts(config_of=lambda each: bench.config if each == "base" else None)
    return await proposed(form, facts, bench.sources, check_known_flags)


async def test_a_good_one(bench: Bench) -> None:
    assert await proposal(bench, GOOD) == Experiment(
        id="ep-plain",
        based_on="base",
        why="a2a may help",
        args={"ep-size": "8", "moe-a2a-backend": None},
        env={"NCCL_ALGO": "Ring"},
    )


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({}, "id: Field required"),
        ({**GOOD, "prepare": []}, "prepare: Extra inputs"),
        ({**GOOD, "server": {"command": ["sh"]}}, "server: Extra inputs"),
        ({**GOOD, "research": [{"probe": {"run": ["id"]}}]}, "research: Extra inputs"),
        ({**GOOD, "preflight": []}, "preflight: Extra inputs"),
        ({**GOOD, "id": "../x"}, "'../x' cannot be the id"),
        ({**GOOD, "id": "a@b"}, "cannot be the id"),
        ({**GOOD, "id": "x" * 65}, "cannot be the id"),
        ({**GOOD, "based_on": "nobody"}, "there is no experiment 'nobody'"),
        (flag("ep-sise", "8"), "sglang has no flag 'ep-sise'; did it mean 'ep-size'?"),
        (flag("tensor-parallel-size", "4"), "'tensor-parallel-size' is another spelling of 'tp'"),
        (flag("tp", "8"), "nothing is different from base"),
        (flag("ep size", "8"), "'ep size' is no flag"),
        (flag("-x", "8"), "'-x' is no flag"),
        (flag("chat-template", "a\nb"), "characters that cannot be seen"),
        (flag("chat-template", "a\u202eb"), "characters that cannot be seen"),
        (flag("chat-template", "x" * 3000), "too long"),
        (flag("chat-template", "hf_abcdefghijklmnopqrstuvwxyz"), "looks like a secret"),
        (flag("api-key", "hunter2-and-more"), "looks like a secret"),
        ({**GOOD, "args": GOOD["args"] * 2}, "given twice"),
        ({**GOOD, "env": [{"name": "A B", "value": "1"}]}, "'A B' is no environment variable"),
        ({**GOOD, "args": [], "env": []}, "nothing is different"),
        ({**GOOD, "env": [{"name": f"V{n}", "value": "1"} for n in range(99)]}, "too much at once"),
    ],
)
async def test_a_bad_one_is_dropped_with_its_reason(bench: Bench, form: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unfit) as unfit:
        await proposal(bench, form)
    assert reason in str(unfit.value)


async def test_recommended_flags(bench: Bench) -> None:
    forms = [
        FlagForm(name="ep-size", value="8"),
        FlagForm(name="no-such-flag-x", value=True),
        FlagForm(name="tp", value="8"),
    ]
    kept, dropped = await recommended(forms, bench.config, bench.sources, check_known_flags)
    assert kept == {"ep-size": "8"}
    assert len(dropped) == 1 and dropped[0].startswith("sglang has no flag 'no-such-flag-x'")


async def test_a_dropped_proposal_is_told_and_the_answer_stays(bench: Bench) -> None:
    bench.facts = SessionFacts(config_of=lambda each: bench.config if each == "base" else None)
    async with serve(answers("Yes.", experiment=flag("ep-sise", "8")), answers("Yes.", experiment=GOOD)) as llm:
        bench.asker = asker(llm.url)
        status, bad = await bench.run({"ask": "What next?"})
        _, good = await bench.run({"ask": "What next?"})
    assert (status, bad.proposal) == ("done", None) and bad.answer is not None
    assert bad.summary.startswith("Yes. (dropped: its proposal: sglang has no flag 'ep-sise'")
    assert good.proposal is not None and good.proposal.id == "ep-plain"
    assert good.summary == "Yes."


async def test_the_flags_of_the_source_itself_decide_where_it_can_be_read(bench: Bench) -> None:
    """A flag that no known version has, and one that the installed one lacks."""
    bench.facts = SessionFacts(config_of=lambda each: bench.config if each == "base" else None)
    (bench.tree / "srt" / "server_args.py").write_text(
        "import argparse\nimport dataclasses\n\n\n@dataclasses.dataclass\nclass ServerArgs:\n"
        "    brand_new: int = 1\n    tp_size: int = 1\n\n    @staticmethod\n    def add_cli_args(parser):\n"
        "        parser.add_argument('--brand-new', type=int, default=ServerArgs.brand_new)\n"
        "        parser.add_argument('--tensor-parallel-size', '--tp-size', type=int, default=ServerArgs.tp_size)\n"
    )
    forms = [flag("brand-new", "2"), flag("ep-size", "8"), flag("brand-new", "two")]
    async with serve(*(answers("Yes.", experiment=form) for form in forms)) as llm:
        bench.asker = asker(llm.url)
        new, old, wrong = [(await bench.run({"ask": "What next?"}))[1] for _ in forms]
    assert new.proposal is not None and new.proposal.args == {"brand-new": "2"}
    assert old.proposal is None and "has no flag 'ep-size'" in old.summary
    assert wrong.proposal is None and "takes a whole number" in wrong.summary


def test_the_facts_of_a_state() -> None:
    state = initial(started(playbook({"id": "base"}, {"id": "ep", "args": {"ep-size": "8"}})))
    config = facts_of(state, Path).config_of("ep")
    assert config is not None and config.args == {"tp": "8", "ep-size": "8"}
    assert facts_of(state, Path).config_of("nobody") is None

    def launch(name: str, **more: Any) -> Launch:
        return Launch(id=name, requested_at=0.0, config=config, **{"experiment": "ep", "purpose": "measure", **more})

    ready = {"stage": LaunchStage.READY, "port": 30000}
    launches = [
        launch("l1", void=True),
        launch("l2", stage=LaunchStage.LOADING, port=30000),
        launch("l3", **ready),
        launch("l4", purpose="attach", **ready),
        launch("l5", stage=LaunchStage.STOPPED, port=30000),
    ]
    entry = AskEntry(ask="What next?")
    task = Task(id="t", experiment="ep", kind="ask", title="", entry=entry, config=config, needed=False)
    spent = Spent(calls=2, read_bytes=30, input_tokens=4, output_tokens=5, cost_usd=None)
    state = replace(
        state,
        now=150.0,
        launches={each.id: each for each in launches},
        tasks={"t": TaskState(task=task, started_at=140.0, spent=spent), "u": TaskState(task=task, started_at=1.0)},
    )
    facts = facts_of(state, lambda name: Path(f"{name}.log"))
    assert [(each.launch, each.port, each.is_up) for each in facts.launches] == [
        ("l2", None, True),
        ("l3", 30000, True),
        ("l4", None, True),
        ("l5", None, False),
    ]
    assert facts.launches[0] == LaunchFacts(
        launch="l2", experiment="ep", stage="loading", is_up=True, port=None, log=Path("l2.log")
    )
    assert facts.asked == {"t": Amount(calls=2, read_bytes=30, tokens=9, usd=0.0, seconds=10.0)}
    assert not facts.measuring
