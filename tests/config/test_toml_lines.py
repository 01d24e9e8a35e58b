"""A setting is changed and everything else stays: where it is found, where a new one goes, what is refused."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.file import literal
from agent.config.toml_lines import CannotEdit, entries, flat, with_value, without

FILE = """\
# who answers
[llm]
model = "one"  # the good one
question.usd = 2

[ keys ]  # mine
"run.details" = 'enter'

[defaults]
headless = false
"""


def test_where_settings_stand() -> None:
    found = [(".".join(entry.path), entry.line, entry.column, entry.width) for entry in entries(FILE)]
    assert found == [
        ("llm.model", 2, 0, 5),
        ("llm.question.usd", 3, 0, 12),
        ("keys.run.details", 6, 0, 13),
        ("defaults.headless", 9, 0, 8),
    ]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("llm", "model"), '"two"', 'model = "two"  # the good one'),
        (("llm", "question", "usd"), "3.5", "question.usd = 3.5"),
        (("keys", "run.details"), '"f5"', '"run.details" = "f5"'),
        (("defaults", "headless"), "true", "headless = true"),
    ],
)
def test_a_value_is_changed_in_its_line(path: tuple[str, ...], value: str, line: str) -> None:
    old, new = FILE.split("\n"), with_value(FILE, path, value).split("\n")
    assert [after for before, after in zip(old, new, strict=True) if before != after] == [line]


@pytest.mark.parametrize(
    ("path", "before", "line"),
    [
        (("llm", "effort"), "[ keys ]", 'effort = "x"'),
        (("llm", "session", "usd"), "[ keys ]", 'session.usd = "x"'),
        (("keys", "run", "ask"), "[defaults]", 'run.ask = "x"'),
        (("defaults", "logs"), None, 'logs = "x"'),
    ],
)
def test_a_new_one_joins_its_table(path: tuple[str, ...], before: str | None, line: str) -> None:
    new = with_value(FILE, path, '"x"')
    assert new.replace(f"{line}\n", "") == FILE
    assert before is None or new.index(line) < new.index(before)


def test_a_new_table_goes_to_the_end() -> None:
    assert with_value(FILE, ("screen", "bell"), "false") == f"{FILE}\n[screen]\nbell = false\n"
    assert with_value("", ("keys", "run", "ask"), '"f5"') == '[keys]\nrun.ask = "f5"\n'
    assert with_value("# only words", ("llm", "model"), '"m"') == '# only words\n\n[llm]\nmodel = "m"\n'


def test_a_table_that_is_written_as_dotted_keys_stays_one() -> None:
    text = 'llm.model = "m"\n'
    assert flat(tomllib.loads(with_value(text, ("llm", "effort"), '"high"'))) == {
        ("llm", "model"): "m",
        ("llm", "effort"): "high",
    }


def test_what_does_not_stand_on_a_line_of_its_own_is_not_touched() -> None:
    inline = 'llm = {model = "m"}\n'
    with pytest.raises(CannotEdit):
        with_value(inline, ("llm", "model"), '"n"')
    with pytest.raises(CannotEdit):
        without('a = """\nllm.model = 1\n"""\n', ("llm", "model"))


def test_a_long_text_holds_no_settings() -> None:
    text = 'a = """\n[llm]\nmodel = "no"\n"""\n[llm]\nmodel = "yes"\n'
    assert [entry.path for entry in entries(text)] == [("a",), ("llm", "model")]
    assert with_value(text, ("llm", "model"), '"new"').count('"no"') == 1


NAMES = st.sampled_from(
    ["llm.model", "llm.effort", "llm.question.usd", "defaults.logs", "keys.run.ask", "keys.app.quit"]
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(0, 10**9), st.floats(0, 1e12))


@given(st.lists(st.tuples(NAMES, st.one_of(st.none(), VALUES)), max_size=12))
def test_any_sequence_of_edits_says_what_was_set_last(edits: list[tuple[str, str | bool | int | float | None]]) -> None:
    text, wanted = "# mine\n", {}
    for name, value in edits:
        path = tuple(name.split("."))
        if value is not None:
            text = with_value(text, path, literal(value))
            wanted[path] = value
        elif path in wanted:
            text = without(text, path)
            del wanted[path]
    assert flat(tomllib.loads(text)) == wanted
    assert text.startswith("# mine\n")
