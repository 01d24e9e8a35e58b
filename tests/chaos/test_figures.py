"""What the README says of `make chaos` is what the figures say."""

import json
from pathlib import Path

FIGURES = json.loads((Path(__file__).parent / "figures.json").read_text())
README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_readme_quotes_the_figures() -> None:
    states = [count for state, count in FIGURES["states"].items() if state != "not begun"]
    assert len(states) == 10 and min(states) >= 10
    assert f"{FIGURES['kills']} kills ({min(states)} or more in" in README
    assert f"{FIGURES['faults']['power losses']} with the unsynced part of the journal lost" in README
    assert FIGURES["violations"] == 0 and "lost: 0 acknowledged events lost" in README
    assert f"({FIGURES['duration_s']} s on two cores" in README


def test_the_harness_saw_each_promise_broken_where_its_guard_was_taken_out() -> None:
    assert FIGURES["controls"] == {"claim": True, "fsync": True, "lock": True}
