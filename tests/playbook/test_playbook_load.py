"""What a good file becomes."""

import json
import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agent.playbook.load import LARGEST, load_playbook
from agent.playbook.model import Playbook, Probe, RemoteTarget
from agent.playbook.not_carried_out import not_carried_out
from agent.playbook.preflights import TableHasKey
from tests.playbook.kit import HEAD, SMALL, bad, good, load

SHIPPED = Path(__file__).parents[2] / "playbooks"


def experiments(body: str) -> Playbook:
    return good(f"{HEAD}experiments:\n  - {{id: base, baseline: true}}\n{body}")


def args_of(flags: str) -> dict[str, object]:
    return dict(experiments(f"  - id: x\n    args: {flags}\n").experiments[1].args)


def test_the_example_is_a_playbook_without_problems() -> None:
    playbook = good((SHIPPED / "example.yaml").read_text())
    assert playbook.target == RemoteTarget(ssh="gpu8", gpus=8)
    assert playbook.server.load_timeout == 1500
    assert playbook.objective.min_gain == 0.02
    assert playbook.server.args == {"model-path": "/models/Kimi-K2.5", "tp": "8", "trust-remote-code": True}
    by_id = {experiment.id: experiment for experiment in playbook.experiments}
    assert by_id["custom-allreduce"].args == {"disable-custom-all-reduce": None}
    check = by_id["torch-symm-mem"].preflight[0].check
    assert isinstance(check, TableHasKey) and check.key == "{gpu.sm_major}"
    probe = by_id["ep-flashinfer"].research[3].task
    assert isinstance(probe, Probe) and probe.run[2] == "import flashinfer.comm" and probe.timeout == 60


def test_an_experiment_without_a_parent_is_based_on_the_baseline() -> None:
    playbook = experiments("  - id: a\n  - {id: b, based_on: a}\n  - {id: c, based_on: null}\n")
    assert [experiment.based_on for experiment in playbook.experiments] == [None, "base", "a", "base"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.10", "0.10"),
        ("1e3", "1e3"),
        ("1:30", "1:30"),
        ("no", "no"),
        ("on", "on"),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("+5", "+5"),
        (".5", ".5"),
        ("2001-01-01", "2001-01-01"),
        (".inf", ".inf"),
        ("=", "="),
        ("True", "True"),
        ("NULL", "NULL"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'true'", "true"),
        ('"null"', "null"),
        ("'~'", "~"),
        ("''", ""),
        ('"a\\tb"', "a\tb"),
        ("~/models/x", "~/models/x"),
        ("""'{"method": "eagle", "n": 1.0}'""", '{"method": "eagle", "n": 1.0}'),
        ("[a, 0.10, yes, true, 'x y']", ("a", "0.10", "yes", "true", "x y")),
        ("|\n        two\n          lines\n", "two\n  lines\n"),
        (">-\n        two\n        lines\n", "two lines"),
    ],
)
def test_under_args_the_text_of_a_scalar_is_its_value(written: str, value: object) -> None:
    block = f"\n      dtype: {written}\n"
    assert args_of(block) == {"dtype": value}


def test_in_env_everything_but_null_is_text() -> None:
    body = "  - id: x\n    env: {A: true, B: no, C: 010, D: null, E: ~, F: 'null', G: 1:30, H: }\n"
    env = experiments(body).experiments[1].env
    assert env == {"A": "true", "B": "no", "C": "010", "D": None, "E": None, "F": "null", "G": "1:30", "H": None}


def test_the_variables_of_another_server_are_text_too() -> None:
    body = "  - id: x\n    server: {env: {A: 1e3, B: true}}\n"
    server = experiments(body).experiments[1].server
    assert server is not None and server.env == {"A": "1e3", "B": "true"}


def test_a_number_where_text_is_wanted_is_the_text_as_written() -> None:
    playbook = good(SMALL.replace("name: small", "name: 0.10").replace("[python3, -m", "[sleep, 1e3, true, -m"))
    assert playbook.name == "0.10"
    assert playbook.server.command[:3] == ("sleep", "1e3", "true")


def test_the_words_of_yaml_1_1_are_text() -> None:
    playbook = experiments("  - id: no\n    why: on\n  - {id: x, based_on: no, research: [ask: yes]}\n")
    assert playbook.experiments[1].id == "no" and playbook.experiments[1].why == "on"
    assert playbook.experiments[2].based_on == "no" and playbook.experiments[2].research[0].task == "yes"


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    assert isinstance(load(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()), Playbook)


def test_vllm_takes_single_keys_of_its_json_flags() -> None:
    text = SMALL.replace("kind: sglang", "kind: vllm")
    text = text.replace("model-path: /m", "model: /m, compilation-config.mode: 3")
    assert good(text).server.args["compilation-config.mode"] == "3"


def test_flags_are_not_checked_for_a_kind_without_a_list() -> None:
    text = SMALL.replace("model-path: /m", "flag-of-tomorrow: 1")
    assert isinstance(load_playbook(text.encode(), "f", {}), Playbook)


def test_a_journal_gives_the_same_playbook_back() -> None:
    playbook = good((SHIPPED / "example.yaml").read_text())
    adapter = TypeAdapter(Playbook)
    kept = json.loads(json.dumps(adapter.dump_python(playbook, mode="json", by_alias=True)))
    assert adapter.validate_python(kept) == playbook


@pytest.mark.parametrize(
    "data",
    [
        b"a" * 10_000_000,
        b"[" * 200_000,
        b"- " * 100_000,
        b"? " * 100_000,
        b"{a: " * 60_000,
        b"a: &a [" + b"*a, " * 60_000 + b"]",
        b"'" + b"x\n" * 100_000,
        b'"' + b"\\n" * 100_000,
        b"\t" * 200_000,
        b"#" * 250_000,
    ],
    ids=["10-MB", "brackets", "dashes", "keys", "braces", "aliases", "quote", "escapes", "tabs", "comment"],
)
def test_a_hostile_file_is_answered_within_a_second(data: bytes) -> None:
    began = time.process_time()
    assert bad(data)
    assert time.process_time() - began < 1


def test_a_file_of_the_largest_size_with_a_problem_in_every_line_is_answered() -> None:
    line = "    mem-fraction-statik-%06d: 1\n"
    text = HEAD + "experiments:\n  - id: base\n    baseline: true\n    args:\n"
    text = "".join([text, *(line % number for number in range((LARGEST - len(text)) // (len(line) + 2)))])
    began = time.process_time()
    assert len(bad(text)) > 7000
    assert time.process_time() - began < 10


def test_what_is_not_carried_out_is_named_with_its_place() -> None:
    said = not_carried_out(good((SHIPPED / "example.yaml").read_text()))
    assert [sentence.partition(": ")[0] for sentence in said] == [
        "server.version",
        "experiments[8] (cuda13).server.version",
    ]
    assert all(sentence.endswith(".") for sentence in said)
    assert not_carried_out(good(SMALL)) == []
