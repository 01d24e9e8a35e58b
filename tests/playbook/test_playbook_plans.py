"""Terms and groups of a playbook: what they mean, and what is told where they cannot be so."""

import pytest

from agent.playbook.model import Playbook
from tests.playbook.kit import HEAD, bad, good

IDEAS = """\
experiments:
  - {id: base, baseline: true}
  - {id: a}
  - {id: b, based_on: a}
  - {id: c}
"""
PLAIN = HEAD + IDEAS  # what is put before the experiments begins on line 12


def with_top(text: str, ideas: str = IDEAS) -> str:
    return f"{HEAD}{text}\n{ideas}"


def said(text: str) -> list[str]:
    return [f"{p.line}:{p.column}: {p.message}" + (f"; {p.hint}" if p.hint else "") for p in bad(text)]


def with_term(text: str, removes: str = "") -> str:
    ideas = IDEAS.replace("{id: a}", f"{{id: a, removes: {{{removes}}}}}") if removes else IDEAS
    return with_top(f"terms: {{ar: {{{text}}}}}", ideas)


@pytest.mark.parametrize(("text", "seconds"), [("200us", 2e-4), ("1.5ms", 1.5e-3), ("0.001s", 1e-3)])
def test_the_time_of_a_call(text: str, seconds: float) -> None:
    term = good(with_term(f"count: 2, each: {text}")).terms["ar"]
    assert term.each == pytest.approx(seconds) and term.each_verify is None


def test_terms_and_groups_are_kept_by_a_journal_and_old_ones_have_none() -> None:
    text = with_term("count: 9, each: 1us, measured_by: nccl-allreduce, bytes: 64, run: [python3]", "ar: 3")
    made = good(
        text.replace("experiments:", "groups: [{id: g, members: [a], then: h}, {id: h, members: [c]}]\nexperiments:")
    )
    assert Playbook.model_validate(made.model_dump(mode="json", by_alias=True)) == made
    old = good(PLAIN).model_dump(mode="json", by_alias=True)
    for key in ("terms", "groups"):
        del old[key]
    for experiment in old["experiments"]:
        del experiment["removes"]
    assert Playbook.model_validate(old) == good(PLAIN)


@pytest.mark.parametrize(
    ("text", "removes", "says"),
    [
        ("count: 2, each: 200", "", "12:30: terms.ar.each: expected the time of one call, above zero and up to 60s, "
         "such as 200us or 1.5ms, found '200'; write the unit, such as 200us"),
        ("count: 2, each: 2m", "", "12:30: terms.ar.each: expected the time of one call"),
        ("count: 2, each: 2us, per_layer: 1", "", "per_layer has no effect without measured_by"),
        ("count: 0, each: 2us", "", "12:21: terms.ar.count: must be at least 1, found '0'"),
        ("count: 2", "", "missing key 'each' in terms.ar"),
        ("count: 2, each: 2us, meas: x", "", "unknown key 'meas' in terms.ar"),
        ("count: 2, each: 2us, bytes: 64", "", "12:35: bytes has no effect without measured_by; write 'measured_by: "
         "nccl-allreduce'"),
        ("count: 2, each: 2us, measured_by: nccl-allreduce", "", "12:48: measured_by needs to know the message of a "
         "call; write for example 'bytes: 14336', a row of 7168 values of two bytes"),
        ("count: 2, each: 2us, measured_by: nccl, bytes: 64", "",
         "terms.ar.measured_by: expected nccl-allreduce, found 'nccl'"),
        ("count: 2, each: 2us", "art: 1", "removes: there is no term 'art'; did you mean 'ar'?"),
        ("count: 2, each: 2us", "ar: 3", "removes: ar has 2 calls; 3 cannot go"),
        ("count: 2, each: 2us", "ar: 0", "experiments[1].removes.ar: must be at least 1, found '0'"),
        ("count: 2, each: 2us", "ar: x", "experiments[1].removes.ar: expected a whole number, found 'x'"),
    ],
)  # fmt: skip
def test_a_term_that_cannot_be_so(text: str, removes: str, says: str) -> None:
    (problem,) = said(with_term(text, removes))
    assert says in problem


def test_a_child_cannot_remove_what_its_parent_has_removed() -> None:
    ideas = IDEAS.replace("{id: a}", "{id: a, removes: {ar: 2}}").replace(
        "based_on: a", "based_on: a, removes: {ar: 2}"
    )
    (problem,) = said(with_top("terms: {ar: {count: 3, each: 1us}}", ideas))
    assert problem == "16:36: removes: ar has 3 calls, of which 2 are removed by what it is based on; 2 cannot go"


def test_the_baseline_removes_nothing() -> None:
    ideas = IDEAS.replace("baseline: true", "baseline: true, removes: {ar: 1}")
    (problem,) = said(with_top("terms: {ar: {count: 3, each: 1us}}", ideas))
    assert "the baseline removes nothing: steps are measured on it" in problem


def test_an_attached_server_holds_the_gpus() -> None:
    ideas = IDEAS.replace("baseline: true", "baseline: attach, args: {port: 30000}")
    (problem,) = said(with_top("terms: {ar: {count: 3, each: 1us, measured_by: nccl-allreduce, bytes: 64}}", ideas))
    assert "the server that is attached to holds the GPUs" in problem


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("[{id: g, members: [x]}]", "12:28: members: there is no experiment 'x'; known here: base, a, b, c"),
        ("[{id: g, members: [base]}]", "12:28: members: the baseline is what all strategies are compared with"),
        ("[{id: g, members: [a, a]}]", "12:31: members: 'a' is a member already, on line 12; an experiment belongs to "
         "one group"),
        ("[{id: g, members: [a]}, {id: h, members: [a]}]", "'a' is a member already"),
        ("[{id: g, members: [a]}, {id: g, members: [c]}]", "12:38: group 'g' is defined twice, first on line 12"),
        ("[{id: g, members: [a], then: hh}, {id: h, members: [c]}]", "12:38: then: there is no group 'hh'"),
        ("[{id: g, members: [a], then: g}]", "12:38: then goes in a circle: g -> g"),
        ("[{id: g, members: [a], then: h}, {id: h, members: [c], then: g}]",
         "12:38: then goes in a circle: g -> h -> g"),
        ("[{id: g, members: [a], then: i}, {id: h, members: [c], then: i}, {id: i, members: [b]}]",
         "12:70: then: 'i' comes after 'g' already; put both into one group, or chain them one after the other"),
        ("[{id: g, members: []}]", "groups[0].members: the list needs at least 1 element"),
        ("[{id: 'g h', members: [a]}]", "groups[0].id: the text 'g h' cannot be a name here"),
        ("[{id: g, members: [b], then: h}, {id: h, members: [a]}]",
         "these can never run: 'a' is tried after 'b', 'b' is based on 'a'"),
    ],
)  # fmt: skip
def test_a_group_that_cannot_be_so(groups: str, says: str) -> None:
    (problem,) = said(with_top(f"groups: {groups}"))
    assert says in problem


def test_a_member_that_waits_for_a_later_strategy_can_never_run() -> None:
    ideas = IDEAS.replace("{id: a}", "{id: a, when: {all: [c], are: [worse]}}")
    (problem,) = said(with_top("groups: [{id: g, members: [a], then: h}, {id: h, members: [c]}]", ideas))
    assert "these can never run:" in problem and "'c' is tried after 'a'" in problem


def test_chains_of_strategies_are_fine() -> None:
    chain = "{id: g, members: [a], then: h}, {id: h, name: the rest, members: [b], then: i}, {id: i, members: [c]}"
    assert [group.title for group in good(with_top(f"groups: [{chain}]")).groups] == ["g", "the rest", "i"]
