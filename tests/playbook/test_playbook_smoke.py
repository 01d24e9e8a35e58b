"""`smoke` of a playbook: what it means, and what is told where nothing could be launched."""

import pytest

from agent.core.parse_yaml import edited_yaml
from agent.playbook.model import Playbook
from tests.playbook.kit import HEAD, bad, good

IDEAS = """\
experiments:
  - {id: base, baseline: true}
  - {id: idea}
"""
LLAMACPP = HEAD.replace("kind: sglang", "kind: llamacpp").replace("model-path: /m", "model: /m.gguf")
ATTACHED = IDEAS.replace("true", "attach, args: {port: 30000}")
PLAIN = HEAD + IDEAS


def said(text: str) -> list[str]:
    return [f"{p.line}:{p.column}: {p.message}" + (f"; {p.hint}" if p.hint else "") for p in bad(text)]


def test_it_is_off_unless_a_playbook_says_so_and_old_journals_have_none() -> None:
    plain = good(PLAIN)
    assert plain.smoke is False and all(experiment.smoke is None for experiment in plain.experiments)
    old = plain.model_dump(mode="json", by_alias=True)
    del old["smoke"]
    for experiment in old["experiments"]:
        del experiment["smoke"]
    assert Playbook.model_validate(old) == plain


def test_an_experiment_says_otherwise_in_both_directions() -> None:
    made = good(f"{HEAD}smoke: dummy\n{IDEAS.replace('idea}', 'idea, smoke: false}')}")
    assert made.smoke == "dummy" and made.experiments[1].smoke is False
    assert good(PLAIN.replace("idea}", "idea, smoke: dummy}")).experiments[1].smoke == "dummy"
    assert Playbook.model_validate(made.model_dump(mode="json", by_alias=True)) == made
    assert "smoke: false" in edited_yaml(made.experiments[1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HEAD}smoke: dumy\n{IDEAS}",
         "12:8: smoke: expected one of dummy, false, found 'dumy'; did you mean 'dummy'?"),
        (f"{HEAD}smoke: true\n{IDEAS}", "12:8: smoke: expected one of dummy, false, found 'true'"),
        (f"{LLAMACPP}smoke: dummy\n{IDEAS}",
         "12:8: smoke: llamacpp cannot load dummy weights, as sglang and vllm can; leave it out"),
        (LLAMACPP + IDEAS.replace("idea}", "idea, smoke: dummy}"), "14:23: smoke: llamacpp cannot load dummy weights"),
        (HEAD + ATTACHED.replace("attach,", "attach, smoke: dummy,"), "a server that runs already is not loaded"),
    ],
)  # fmt: skip
def test_what_is_told(text: str, says: str) -> None:
    problems = said(text)
    assert len(problems) == 1 and says in problems[0]


@pytest.mark.parametrize("text", [f"{LLAMACPP}smoke: false\n{IDEAS}", f"{HEAD}smoke: dummy\n{ATTACHED}"])
def test_where_there_is_nothing_to_tell(text: str) -> None:
    assert isinstance(good(text), Playbook)
