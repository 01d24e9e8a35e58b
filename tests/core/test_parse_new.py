"""The text of a new experiment: a table of words, and whatever a person may type."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.parse_grep import parse_grep, places_of
from agent.core.parse_new import parse_new, read_change, suggested_id
from agent.playbook.model import Experiment, GrepEntry
from agent.servers.known_flags import known_flags
from tests.tui.states import begun

STATE = begun("x")
SERVER_WITHOUT_SOURCE = STATE.playbook.server.model_copy(update={"source": {}})
FLAGS = (("tp", "tensor-parallel-size"), ("cuda-graph-max-bs",), ("enable-torch-compile",), ("moe-a2a-backend",))


@pytest.mark.parametrize(
    ("text", "args", "env"),
    [
        ("tp=4", {"tp": "4"}, {}),
        ("--tp=4", {"tp": "4"}, {}),
        ("enable-torch-compile", {"enable-torch-compile": True}, {}),
        ("-cuda-graph-max-bs", {"cuda-graph-max-bs": None}, {}),
        ("tp=0.10 moe-a2a-backend=", {"tp": "0.10", "moe-a2a-backend": ""}, {}),
        ("enable-torch-compile=true tp=null", {"enable-torch-compile": True, "tp": None}, {}),
        ("enable-torch-compile=false", {"enable-torch-compile": False}, {}),
        ("tp=1 tp=2", {"tp": ("1", "2")}, {}),
        ("moe-a2a-backend='{\"a\": 1}'", {"moe-a2a-backend": '{"a": 1}'}, {}),
        ("ENV:A=b=c ENV:B=", {}, {"A": "b=c", "B": ""}),
        ("-ENV:NCCL_ALGO tp=4", {"tp": "4"}, {"NCCL_ALGO": None}),
        ("ENV:A='two words'", {}, {"A": "two words"}),
    ],
)
def test_words_become_an_experiment(text, args, env):
    found = parse_new(STATE, "base", "mine", text, FLAGS, "because")
    assert isinstance(found, Experiment), found
    assert (found.id, found.based_on, found.why) == ("mine", "base", "because")
    assert (found.args, found.env) == (args, env)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "nothing is different from base"),
        ("tpp=4", "did you mean 'tp'?"),
        ("tensor-parallel-size=4", "another spelling of 'tp'"),
        ("moe_a2a=1", "sglang has no flag 'moe_a2a'"),
        ("tp=8", "like this in base already"),
        ("ENV:NCCL_ALGO=x", "like this in base already"),
        ("-moe-a2a-backend", "no 'moe-a2a-backend' to take away"),
        ("-tp=4", "has no value"),
        ("=4", "is no flag"),
        ("'tp", "no closing quotation"),
        ("ENV:A", "needs a value"),
        ("ENV:9=1", "cannot be the name"),
        ("ENV:A=1 ENV:A=2", "given twice"),
        ("tp=4 -tp", "given twice"),
        ("tp=4\x1b[31m", "control or invisible"),
        ("tp=\u202e4", "control or invisible"),
        ("tp=" + "9" * 9000, "longer than"),
    ],
)
def test_problems_are_said(text, problem):
    found = parse_new(STATE, "base", "mine", text, FLAGS)
    assert isinstance(found, list)
    assert any(problem in line for line in found), found


def test_two_new_spellings_of_one_flag_are_a_problem():
    flags = (("context-length", "max-model-len"),)
    assert "another spelling" in str(parse_new(STATE, "base", "mine", "context-length=1 max-model-len=2", flags))


def test_all_problems_come_at_once():
    found = parse_new(STATE, "base", "base", "tpp=1 ENV:9=1 -tp=4", FLAGS)
    assert isinstance(found, list) and len(found) == 4


@pytest.mark.parametrize("name", ["", "a b", "-a", "x" * 65, "a@b", "base", "[b]"])
def test_ids_are_checked(name):
    assert isinstance(parse_new(STATE, "base", name, "tp=4", FLAGS), list)


def test_a_parent_that_is_gone_is_a_problem():
    assert isinstance(parse_new(STATE, "gone", "mine", "tp=4"), list)


def test_without_known_flags_no_name_is_checked():
    assert isinstance(parse_new(STATE, "base", "mine", "no-such-flag=1"), Experiment)


def test_the_flags_that_ship_are_taken():
    assert isinstance(parse_new(STATE, "base", "mine", "cuda-graph-max-bs=256", known_flags("sglang")), Experiment)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "new"),
        ("tp=4", "tp-4"),
        ("-tp", "no-tp"),
        ("ENV:NCCL_ALGO=Ring", "nccl-algo-Ring"),
        ("cuda-graph-bs=1 cuda-graph-bs=8", "cuda-graph-bs-1-8"),
        ("id=ea", "id-ea"),
        ("idea", "idea-2"),
    ],
)
def test_suggested_ids_are_free_and_tell_the_change(text, name):
    assert suggested_id(STATE, text) == name


PIECES = ["tp", "=", "-", "ENV:", "'", '"', "\\", "#", "[b]", "4", "\ud800", "\x00"]


@given(st.text(max_size=300) | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_nothing_that_is_typed_raises(text):
    read_change(text)
    name = suggested_id(STATE, text)
    found = parse_new(STATE, "base", name, text, FLAGS)
    # A suggested id is always a good one.
    assert not isinstance(found, list) or not any("the id takes" in line or "an experiment" in line for line in found)
    parse_new(STATE, "base", text, "tp=4", FLAGS)
    parse_grep(STATE, "base", text, text)
    parse_grep(STATE, "base", "x", text)


def test_grep_searches_all_sources_at_first():
    assert places_of(STATE, "base") == "sglang: flashinfer:"
    found = parse_grep(STATE, "base", "a|b", "sglang:srt flashinfer:")
    assert isinstance(found, GrepEntry)
    assert (found.task.pattern, found.task.paths) == ("a|b", ("sglang:srt", "flashinfer:"))


def test_grep_knows_what_the_target_lets_research_read():
    state = replace(STATE, host=replace(STATE.host, trees=("nccl", "sglang")))
    assert places_of(state, "base") == "sglang: flashinfer: nccl:"
    found = parse_grep(state, "base", "a", "nccl:src")
    assert isinstance(found, GrepEntry) and found.task.paths == ("nccl:src",)
    bare = replace(state, playbook=state.playbook.model_copy(update={"server": SERVER_WITHOUT_SOURCE}))
    assert places_of(bare, "base") == "nccl: sglang:"
    found = parse_grep(replace(bare, host=STATE.host), "base", "a", "nccl:")
    assert isinstance(found, list) and found[0].startswith("there is no source to search: name one under")


@pytest.mark.parametrize(
    ("pattern", "places", "problem"),
    [
        (" ", "sglang:", "a pattern is needed"),
        ("x", "", "where?"),
        ("x", "sglan:", "did you mean 'sglang'?"),
        ("x", "/etc", "write NAME:path"),
        ("x", "sglang:/etc", "leads out"),
        ("x", "sglang:../x", "leads out"),
        ("x\x00", "sglang:", "control"),
        ("x" * 1001, "sglang:", "longer"),
    ],
)
def test_grep_problems_are_said(pattern, places, problem):
    found = parse_grep(STATE, "base", pattern, places)
    assert isinstance(found, list) and problem in found[0]
