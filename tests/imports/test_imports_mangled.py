"""Real result files with anything in them changed: read, or refused with a message; never another exception."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.imports.formats import read_results
from agent.imports.model import Unreadable
from agent.imports.show import as_json, cleaned, result_lines
from agent.text import clean, one_line

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.iterdir())
WRONG: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, "", "trace", [], {}, [None], -1, 0, 1e308, -1e308, math.inf, math.nan, 10**400, "\x1b[2J"]
    ),
    st.text(max_size=8),
    st.dictionaries(st.sampled_from(["avg", "mean", "successful", "value", "unit"]), st.floats(), max_size=2),
)
QUIET = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def survives(text: str) -> None:
    """What is read can be shown, in strict JSON too."""
    try:
        found = read_results(text)
    except Unreadable as error:
        assert str(error)
        return
    for result in found:
        shown = cleaned(result, one_line)
        assert all(clean(line) == line and "\n" not in line for line in result_lines(shown))
        json.dumps(as_json(shown), allow_nan=False)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys; of long arrays the first elements."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    elif isinstance(value, list):
        keys = list(range(min(len(value), 3)))
    else:
        return []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@QUIET
@given(st.data())
def test_a_value_of_another_kind_anywhere(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.suffix == ".jsonl" else [
        json.loads(file.read_text())
    ]  # fmt: skip
    for container, key in data.draw(st.lists(st.sampled_from(places(records)), min_size=1, max_size=4)):
        if isinstance(container, dict) and data.draw(st.booleans()):
            container.pop(key, None)
        else:
            container[key] = data.draw(WRONG)
    survives("\n".join(map(json.dumps, records)))


@QUIET
@given(st.sampled_from(FILES), st.integers(0, 20_000), st.text(max_size=6))
def test_a_text_that_is_cut_off_and_goes_on_otherwise(file: Path, at: int, more: str) -> None:
    survives(file.read_text()[:at] + more)


@QUIET
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    survives(text)
