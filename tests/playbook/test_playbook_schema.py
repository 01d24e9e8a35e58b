"""The JSON Schema that editors use, and the lists of flags."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agent.playbook.schema import playbook_schema, schema_text
from agent.servers.known_flags import KINDS, known_flags
from tests.playbook.kit import SMALL, good

SHIPPED = Path(__file__).parents[2] / "playbooks"
FILES = sorted(SHIPPED.glob("*.yaml"))


def as_an_editor_reads(text: str) -> Any:
    return yaml.safe_load(text)


def test_the_committed_schema_is_the_present_one() -> None:
    assert (SHIPPED / "schema.json").read_text() == schema_text()


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(playbook_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shipped_playbooks_have_no_problem_for_tunebot_or_for_an_editor(path: Path) -> None:
    text = path.read_text()
    good(text)
    jsonschema.validate(as_an_editor_reads(text), json.loads((SHIPPED / "schema.json").read_text()))


def test_every_shipped_playbook_names_its_schema_for_editors() -> None:
    first = {path.name: path.read_text().partition("\n")[0] for path in FILES}
    assert first == dict.fromkeys(first, "# yaml-language-server: $schema=./schema.json")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: small", "nam: small"),
        ("{name: single}", "{name: single, rounds: three}"),
        ("{name: single}", "{name: single, rounds: 0}"),
        ("{workload: single}", "{workload: single, min_gain: 0.02}"),
        ("{model-path: /m}", "{model-path: {a: b}}"),
        ("baseline: true", "baseline: true, research: [{grp: x}]"),
        ("baseline: true", "baseline: true, research: [{grep: {pattern: x, in: [sglang:a]}, ask: why not}]"),
    ],
)
def test_an_editor_sees_the_mistakes_that_a_schema_can_see(before: str, after: str) -> None:
    text = SMALL.replace(before, after)
    assert text != SMALL
    jsonschema.validate(as_an_editor_reads(SMALL), playbook_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(as_an_editor_reads(text), playbook_schema())


@pytest.mark.parametrize("kind", KINDS)
def test_every_spelling_of_a_flag_stands_once_and_without_dashes(kind: str) -> None:
    flags = known_flags(kind)
    spellings = [spelling for group in flags for spelling in group]
    assert len(spellings) == len(set(spellings)) > 400
    assert list(flags) == sorted(flags, key=" ".join)
    assert not [spelling for spelling in spellings if spelling.startswith("-")]


def test_flags_of_the_story_are_known() -> None:
    sglang = {group[0]: group[1:] for group in known_flags("sglang")}
    assert sglang["tensor-parallel-size"] == ("tp-size", "tp")
    assert {"speculative-algorithm", "moe-a2a-backend", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"} <= set(sglang)
    assert {"enable-flashinfer-allreduce-fusion", "enable-dp-attention", "host", "port"} <= set(sglang)
    vllm = {group[0] for group in known_flags("vllm")}
    assert {"model", "max-num-seqs", "no-enable-prefix-caching", "speculative-config", "host", "port"} <= vllm
