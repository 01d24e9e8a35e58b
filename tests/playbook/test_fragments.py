"""`use`: a fragment laid under an experiment, and what is said where that cannot be done."""

import re

import pytest

from agent.flags_located import check_by_source
from agent.fragments import shipped_fragments
from agent.paths import shipped_playbooks
from agent.playbook.load import load_playbook
from agent.playbook.model import Experiment, Playbook
from agent.playbook.write import yaml_text
from tests.playbook.kit import BASELINE, HEAD, bad, good, load

FRAGMENT = """\
with: {dir: null, size: 4}
let: {deep: "{{dir}}/a/b"}
experiment:
  prepare:
    - {run: [make, "{{deep}}"], creates: "{{deep}}"}
  server: {command: ["{{dir}}/bin/python3", -m, sglang.launch_server], env: {SIZE: "{{size}}", HOME_OF: "{{dir}}"}}
  args: {tp: "{{size}}"}
"""
MORE = HEAD + BASELINE  # an experiment added to it begins on line 14


def one(text: str) -> Experiment:
    """The experiment that a text adds, with FRAGMENT at hand as `own`."""
    found = load_playbook((MORE + text).encode(), "file.yaml", {}, fragments={"own": FRAGMENT})
    assert isinstance(found, Playbook), found
    return found.experiments[-1]


def wrong(text: str) -> list[str]:
    found = load_playbook((MORE + text).encode(), "file.yaml", {}, fragments={"own": FRAGMENT})
    assert isinstance(found, list)
    return [f"{p.line}:{p.column}: {p.message}" + (f"; {p.hint}" if p.hint else "") for p in found]


def test_a_fragment_is_what_it_would_be_written_out() -> None:
    used = one("  - {id: new, use: own, with: {dir: ~/x}}\n")
    step = "prepare: [{run: [make, ~/x/a/b], creates: ~/x/a/b}]"
    server = "server: {command: [~/x/bin/python3, -m, sglang.launch_server], env: {SIZE: 4, HOME_OF: ~/x}}"
    assert used == one(f"  - {{id: new, {step}, {server}, args: {{tp: 4}}}}\n")
    assert used.use is None and not used.parameters


def test_what_the_experiment_says_goes_before_and_its_lists_come_after() -> None:
    used = one(
        "  - {id: new, use: own, with: {dir: /x, size: 8}, prepare: [{run: [more]}], args: {tp: 2, ep-size: 2},"
        " server: {env: {SIZE: 1}}}\n"
    )
    assert [step.run[0] for step in used.prepare] == ["make", "more"]
    assert used.args == {"tp": "2", "ep-size": "2"}
    assert used.server and used.server.env == {"SIZE": "1", "HOME_OF": "/x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("use: onw", ["14:20: use: there is no fragment 'onw'; did you mean 'own'?"]),
        ("use: own", ["14:20: with: own needs to be told 'dir'"]),
        ("use: own, with: {dir: null}", ["14:20: with: own needs to be told 'dir'"]),
        (
            "use: own, with: {dir: /x, sice: 3}",
            ["14:41: with: own has no parameter 'sice'; did you mean 'size'?"],
        ),
        ("use: own, with: {dir: [/x]}", ["14:37: with: dir must be one word, without spaces, quotes and the like"]),
        (
            'use: own, with: {dir: "{{size}}"}',
            ["14:37: with: dir must be one word, without spaces, quotes and the like"],
        ),
        ("use: own, with: {dir: a b}", ["14:37: with: dir must be one word, without spaces, quotes and the like"]),
        ("with: {dir: /x}", ["14:15: with: there is no 'use' that it could be for"]),
        ("use: [own]", ["14:20: experiments[1].use: expected text, found a list"]),
        ("use: own, with: dir", ["14:31: experiments[1].with: expected a mapping, found 'dir'"]),
        # What is wrong in the experiment itself is told where it stands; what the fragment brings, where it is used.
        (
            "use: own, with: {dir: /x}, research: [{read: 1}]",
            ["14:60: experiments[1].research[0].read: expected a map"],
        ),
        (
            "use: own, with: {dir: /x, size: ''}",
            ["14:47: with: size must be one word, without spaces, quotes and the like"],
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(text: str, told: list[str]) -> None:
    found = wrong(f"  - {{id: new, {text}}}\n")
    assert len(found) == len(told)
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True)), found


def test_a_problem_of_what_a_fragment_brings_stands_where_it_is_used() -> None:
    text = MORE + "  - id: new\n    use: own\n    with: {dir: /x}\n    env: {FINE: 1}\n"
    fragment = FRAGMENT.replace("run: [make", "rum: [make")
    found = load_playbook(text.encode(), "file.yaml", {}, fragments={"own": fragment})
    assert isinstance(found, list)
    assert {(problem.line, problem.column) for problem in found} == {(15, 10)}
    assert any("unknown key 'rum' in experiments[1].prepare[0]" in problem.message for problem in found)


def test_a_fragment_that_cannot_be_read_is_a_problem_and_no_crash() -> None:
    text = (MORE + "  - {id: new, use: own}\n").encode()
    for broken in ("", "with: {", "experiment: 3", "- 1"):
        found = load_playbook(text, "file.yaml", {}, fragments={"own": broken})
        assert isinstance(found, list) and "the fragment 'own' cannot be read" in found[0].message


def test_without_fragments_at_hand_it_says_where_they_can_be_used() -> None:
    found = load_playbook((MORE + "  - {id: new, use: own}\n").encode(), "file.yaml", {})
    assert isinstance(found, list) and found[0].hint and "in the file of a playbook only" in found[0].hint


@pytest.mark.parametrize("name", shipped_fragments())
def test_a_shipped_fragment_leaves_no_name_open(name: str) -> None:
    book = good(MORE + f"  - {{id: new, use: {name}, with: {{present: ~/venv}}}}\n")
    whole = yaml_text(book)
    assert not re.search(r"\{\{", whole) and "use:" not in whole
    assert load(whole) == book, "written out it is the same playbook"
    for step in book.experiments[-1].prepare:
        assert all(word.isprintable() for word in step.run), "a person who approves it can read it as it is"


def test_a_shipped_fragment_must_be_told_what_it_never_touches() -> None:
    (problem,) = bad(MORE + "  - {id: new, use: cuda13-venv}\n")
    assert problem.message == "with: cuda13-venv needs to be told 'present'"


def test_flags_are_held_against_the_source_of_what_a_fragment_brings() -> None:
    file = shipped_playbooks() / "kimi-k2.5-8x-rtx-pro-6000.yaml"
    checked = check_by_source(file.read_bytes(), file.name, lambda path: pytest.fail(path), None)
    assert checked.found and not checked.problems
