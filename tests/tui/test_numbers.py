"""The table of measured rounds, and what speaks against them."""

from dataclasses import replace

from agent.core.views.details import details
from tests.core.test_numbers import CACHED, FULL, WARNED, measured
from tui.widgets.numbers import draw_numbers


def test_doubts_are_a_glyph_and_a_word_below_the_table() -> None:
    view = details(measured(replace(FULL, hygiene=(WARNED, CACHED))), "base", 200.0).measured
    drawn = draw_numbers(view, 76).plain.splitlines()
    assert [line.rstrip() for line in drawn[-4:]] == [
        "✖ not comparable  prefix cache: 25% of the prompt tokens were in the prefix",
        "                  cache (round 1)",
        "! warn  input length: inputs of 600 tokens on average, 512 were asked for",
        "        (round 1)",
    ]
    assert any(line.startswith("p99  TTFT 70.0") for line in drawn)
    assert all(len(line) <= 76 for line in drawn)
