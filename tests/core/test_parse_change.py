"""An experiment as text and back: in the words of the form, as YAML in the editor, with help for its flags."""

import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.parse_change import change_text, has_secret, parse_change
from agent.core.parse_new import read_change
from agent.core.parse_yaml import edited_yaml, read_yaml
from agent.core.reduce import initial
from agent.core.state import State
from agent.core.views.flag_help import FlagFacts, flag_at, flag_help
from agent.flags.cache import store_table, table_file, tables_folder
from agent.flags_help import FlagHelp
from agent.playbook.load import load_playbook
from agent.playbook.model import Experiment, Playbook
from tests.core.conftest import started
from tests.core.test_edits import plan
from tests.flags.trees import monolith, table
from tests.tui.states import begun

STATE = begun()
FLAGS = (("tp", "tensor-parallel-size"), ("cuda-graph-max-bs",), ("moe-a2a-backend",), ("moe-runner-backend",))


def spec(**fields: Any) -> Experiment:
    return Experiment(id="idea", based_on="base", **fields)


@pytest.mark.parametrize(
    ("args", "env", "text"),
    [
        ({"tp": "4", "x": True, "y": None, "z": False}, {}, "tp=4 x -y z=false"),
        ({"x": ("1", "2")}, {"A": "b c", "B": None}, "x=1 x=2 'ENV:A=b c' -ENV:B"),
        ({"x": '{"a": 1}'}, {}, "'x={\"a\": 1}'"),
        ({"x": "true"}, {}, None),
        ({"x": ("1",)}, {}, None),
        ({"x": "two\nlines"}, {}, None),
        ({"x": "\u202e"}, {}, None),
    ],
)
def test_an_experiment_as_one_types_it(args: Any, env: Any, text: str | None) -> None:
    assert change_text(spec(args=args, env=env)) == text


NAMES = st.from_regex(r"-?(ENV:)?[a-z][a-z0-9_]{0,8}", fullmatch=True)
WORDS = st.tuples(NAMES, st.none() | st.sampled_from(["true", "false", "null", ""]) | st.text(max_size=8))


@given(st.lists(WORDS, max_size=5))
def test_whatever_can_be_typed_is_shown_again_as_what_it_means(words: list[tuple[str, str | None]]) -> None:
    change = read_change(shlex.join(name if value is None else f"{name}={value}" for name, value in words))
    if change.problems:
        return
    text = change_text(spec(args=change.args, env=change.env))
    assert text is not None
    again = read_change(text)
    assert (again.args, again.env, again.problems) == (change.args, change.env, [])


def test_the_form_tells_all_problems() -> None:
    assert parse_change(STATE, "idea", "tpp=4 tp=8", FLAGS) == [
        "sglang has no flag 'tpp'; did you mean 'tp'?",
        "'tp' is like this in base already",
    ]
    text = change_text(STATE.experiments["idea"].spec)
    assert text and parse_change(STATE, "idea", text, FLAGS, "plain words") == ["nothing is changed yet"]
    assert parse_change(STATE.with_experiment("idea", prepared=1), "idea", "tp=2") == [
        "idea has begun: n makes another one"
    ]


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"args": {"tp": "4"}}, False),
        ({"args": {"api-key": "x"}}, True),
        ({"env": {"HF_TOKEN": "x"}}, True),
        ({"env": {"HF_TOKEN": None}}, False),
        ({"env": {"NOTE": "‹redacted:X:12345678›"}}, True),
    ],
)
def test_what_is_secret(fields: Any, secret: bool) -> None:
    assert has_secret(spec(**fields)) is secret


# --- YAML


def edited(state: State, name: str, old: str, new: str) -> list[str] | Experiment:
    """What comes of an edit, in lines without the excerpt."""
    wanted = state.experiments[name].spec
    text = edited_yaml(wanted)
    assert old in text
    found = read_yaml(state, wanted, text.replace(old, new), FLAGS, new=False)
    return found if isinstance(found, Experiment) else [str(problem).split("\n")[0] for problem in found]


@pytest.mark.parametrize("name", ["idea", "build", "later"])
def test_what_is_left_as_it_is_is_read_as_it_is(name: str) -> None:
    wanted = STATE.experiments[name].spec
    assert read_yaml(STATE, wanted, edited_yaml(wanted), FLAGS, new=False) == wanted


def test_flags_variables_and_the_reason_can_be_edited() -> None:
    found = edited(STATE, "idea", "tp: '4'", "tp: 2\n    moe-runner-backend: [a, b]")
    assert isinstance(found, Experiment)
    assert found.args["tp"] == "2" and found.args["moe-runner-backend"] == ("a", "b")
    found = edited(STATE, "idea", "why: plain words", "why: because")
    assert isinstance(found, Experiment) and found.why == "because"
    assert isinstance(found := edited(STATE, "idea", "env: {}", "env: {A: 1}"), Experiment) and found.env == {"A": "1"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("tp:", "tpp:", "idea:9:5: sglang has no flag 'tpp'; did you mean 'tp'?"),
        ("tp:", "tensor-parallel-size:", "another spelling of 'tp'"),
        ("args:", "argz:", "idea:6:3: unknown key 'argz' in it; did you mean 'args'?"),
        ("why: plain words", "why: [a", "idea:"),
        ("id: idea", "id: other", "idea:3:3: 'id' cannot be changed here; while a session runs, args, env, why can"),
        ("based_on: base", "based_on: later", "idea:5:3: 'based_on' cannot be changed here"),
        ("env: {}", "prepare: [{run: [sh]}]", "idea:10:3: 'prepare' cannot be changed here"),
        ("- id: idea", "- {id: x}\n- id: idea", "idea:3:1: one experiment is expected here"),
        ("- id: idea", "id: idea", "idea:"),
        ("plain words", "\u202e", "idea:1:1: it holds control or invisible characters"),
    ],
)
def test_a_problem_has_its_line_in_what_was_edited(old: str, new: str, problem: str) -> None:
    found = edited(STATE, "idea", old, new)
    assert isinstance(found, list) and any(problem in one for one in found), found


def test_a_new_one_may_be_called_as_nobody_is_yet() -> None:
    wanted = Experiment(id="mine", based_on="idea", args={"tp": "2"})
    text = edited_yaml(wanted)
    found = read_yaml(STATE, wanted, text.replace("id: mine", "id: yours"), FLAGS, new=True)
    assert isinstance(found, Experiment) and found == wanted.model_copy(update={"id": "yours"})
    taken = read_yaml(STATE, wanted, text.replace("id: mine", "id: later"), FLAGS, new=True)
    assert isinstance(taken, list) and "there is an experiment 'later' already" in str(taken[0])


def test_an_id_that_no_file_can_have_is_no_problem() -> None:
    state = plan({"id": "symm"}, {"id": "symm@base", "args": {"tp": "4"}})
    found = edited(state, "symm@base", "tp: '4'", "tp: 2")
    assert isinstance(found, Experiment) and (found.id, found.based_on) == ("symm@base", "base")


def test_a_playbook_with_all_that_there_is_around_it() -> None:
    file = Path(__file__).parent.parent.parent / "playbooks" / "example.yaml"
    book = load_playbook(file.read_bytes(), "example", {})
    assert isinstance(book, Playbook)
    state = initial(started(book))
    for name, experiment in state.experiments.items():
        found = read_yaml(state, experiment.spec, edited_yaml(experiment.spec), new=False)
        assert found == experiment.spec, (name, found)


# --- help for flags

FACTS = FlagFacts(names=("tp", "tensor-parallel-size"), takes="int", choices=("1", "2"), default="1", help="How many.")


@pytest.mark.parametrize(
    ("text", "cursor", "name"),
    [
        ("tp=4 cuda-gr", 12, "cuda-gr"),
        ("tp=4 cuda-gr", 3, "tp"),
        ("tp=4 --cuda", 9, "cuda"),
        ("-tp", 3, "tp"),
        ("tp ", 3, ""),
        ("ENV:A=b", 7, ""),
        ("'x={1 2}'", 2, "x"),
        ("", 0, ""),
    ],
)
def test_the_flag_that_is_typed(text: str, cursor: int, name: str) -> None:
    assert flag_at(text, cursor) == name


def test_help_by_the_source_else_by_the_names_that_are_known() -> None:
    assert flag_help("tp", FLAGS, FACTS) == (
        "tp takes int; default 1, also tensor-parallel-size",
        "one of 1 2",
        "How many.",
    )
    assert flag_help("tp", FLAGS, None) == ("tp, also tensor-parallel-size",)
    assert flag_help("moe", FLAGS, None) == ("moe-a2a-backend  moe-runner-backend",)
    assert flag_help("backend", FLAGS, None) == ("moe-a2a-backend  moe-runner-backend",)
    assert flag_help("nope", FLAGS, None) == flag_help("", FLAGS, None) == ()
    many = tuple((f"flag-{n}",) for n in range(20))
    assert flag_help("flag", many, None)[0].endswith("flag-11 and 8 more")


def test_the_table_that_a_session_keeps_is_read_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = FlagHelp.of(STATE)
    assert known("tp-size") is None, "it is not there yet"
    store_table(table_file(tables_folder(), "sglang", "local:~/s"), table(monolith("")))
    deadline = time.monotonic() + 10.0
    while (found := known("tp-size")) is None:
        assert time.monotonic() < deadline, "it is never read"
        time.sleep(0.01)
    assert found == FlagFacts(names=("tp-size", "tp"), takes="int", choices=(), default="1", help="How many.")
    assert known("tp") == found and known("nope") is None
    assert FlagHelp.of(plan({"id": "a"}))("tp") is None, "its playbook names no source"
