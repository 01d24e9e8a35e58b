"""What holds for any file."""

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.playbook.model import Playbook
from tests.playbook.kit import HEAD, SMALL, good, load

# Pieces of playbooks, so that a fair part of what is made up parses and reaches the later checks.
_PIECES = """
    experiments: baseline: true args: env: when: {all: [a], are: [keep]} id: a based_on: b - ? : , [ ] { } & * ! | > '
    " # % @ ` ~ << null 1 2% 3m --- ... server: kind: sglang grep: in: sglang:a.py tp: 8
"""
_KEYS = """
    tunebot name target server kind command source args env load_timeout objective workload metric min_gain guard
    workloads rounds requests launches accept at_end experiments id why based_on baseline preflight research when all
    any are prepare revisit run creates timeout grep read ask probe needed in pattern tp ssh topology
"""
PIECES = st.sampled_from([*_PIECES.split(), "\n", "\n\n", "\t", " ", "\n  ", "\n    ", "\n  - "])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | PIECES
KEYS = st.sampled_from(_KEYS.split())
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


def answers(data: bytes) -> None:
    result = load(data)
    if isinstance(result, Playbook):
        return
    assert result
    assert result == sorted(result, key=lambda problem: (problem.line, problem.column))
    lines = data.count(b"\n") + data.count(b"\r") + 1 + len(data.decode(errors="replace").splitlines())
    for problem in result:
        assert 1 <= problem.line <= lines and problem.column >= 1
        assert "\x1b" not in str(problem)


@settings(deadline=None)  # the machine is shared
@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    answers(data)


@settings(deadline=None)
@given(st.text(max_size=200))
@example('"\\UFFFFFFFF"')
@example("%YAML 1." + "9" * 5000 + "\n---\n")
@example("a: &a\n  <<: *a")
def test_any_text_has_an_answer(text: str) -> None:
    answers(text.encode(errors="surrogatepass"))


@settings(deadline=None)
@given(st.lists(PIECES, max_size=40))
def test_any_pieces_of_playbooks_have_an_answer(pieces: list[str]) -> None:
    answers(" ".join(pieces).encode())


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_values_under_any_keys_have_an_answer(content: object) -> None:
    answers(yaml.safe_dump(content, allow_unicode=True).encode())


@settings(deadline=None)
@given(st.integers(0, len(SMALL)), st.integers(0, 30), st.text(max_size=10) | PIECES)
def test_any_edit_of_a_good_file_has_an_answer(at: int, removed: int, added: str) -> None:
    answers((SMALL[:at] + added + SMALL[at + removed :]).encode(errors="surrogatepass"))


WORDS = st.from_regex(r"[A-Za-z0-9_./+~-][A-Za-z0-9_./+:=@%~-]{0,20}", fullmatch=True).filter(
    lambda word: not word.endswith(":") and word not in ("true", "false", "null", "~", "-", "---", "...")
)


@pytest.mark.parametrize("place", ["args", "env"])
@settings(deadline=None)
@given(word=WORDS)
def test_a_plain_word_arrives_as_written(place: str, word: str) -> None:
    key = "dtype" if place == "args" else "DTYPE"
    text = f"{HEAD}experiments:\n  - id: base\n    baseline: true\n    {place}:\n      {key}: {word}\n"
    experiment = good(text).experiments[0]
    assert (experiment.args if place == "args" else experiment.env) == {key: word}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)


@settings(deadline=None)
@given(TEXTS)
def test_a_quoted_text_arrives_as_it_is(value: str) -> None:
    # JSON is YAML, so json.dumps quotes for both; it leaves DEL and C1 controls raw, which YAML forbids.
    quoted = json.dumps(value).replace("\x7f", "\\u007f")
    text = f"{HEAD}experiments:\n  - id: base\n    baseline: true\n    args:\n      dtype: {quoted}\n"
    # JSON writes an astral character as two surrogates, which are two broken characters in YAML.
    if value.isascii() or max(value) <= "\uffff":
        assert good(text).experiments[0].args == {"dtype": value}


@settings(deadline=None)
@given(TEXTS)
def test_a_single_quoted_json_arrives_as_it_is(value: str) -> None:
    document = json.dumps({"key": value}).replace("\x7f", "\\u007f")
    quoted = "'" + document.replace("'", "''") + "'"
    text = f"{HEAD}experiments:\n  - id: base\n    baseline: true\n    args: {{dtype: {quoted}}}\n"
    assert good(text).experiments[0].args == {"dtype": document}
