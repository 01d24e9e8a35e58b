"""What `make bench-client` makes of its runs, and that the README says what it found."""

import json
from pathlib import Path

import pytest

from tests.bench_client.figures import BEGIN, END, block, figures, with_block
from tests.bench_client.runs import Run, line_of, runs_of

FIGURES = Path(__file__).parent / "figures.json"
README = Path(__file__).parents[2] / "README.md"


def run(requests: int, *, cpu_s: float, repeat: int = 0, kind: str = "full", duration_s: float = 0.0) -> Run:
    """A run of 50,000 tokens/s unless told."""
    return Run(
        client="tunebot",
        version="1",
        kind=kind,
        requests=requests,
        concurrency=16,
        repeat=repeat,
        tokens=requests * 256,
        duration_s=duration_s or requests * 256 / 50_000,
        wall_s=1.0,
        cpu_s=cpu_s,
        server_cpu_s=1.0,
        load_1m=0.0,
    )


def test_what_a_client_needs_to_start_is_not_in_its_cpu_per_token() -> None:
    runs = [run(192, cpu_s=10.0), run(1920, cpu_s=10.0 + 1728 * 256 * 2e-6)]
    made = figures(runs, {})["clients"]["tunebot"]["full_speed"]["16"]
    assert made["cpu_s_per_million_tokens"] == 2.0
    assert made["tokens_per_s"] == 50_000


def test_one_disturbed_repeat_of_three_does_not_move_the_figures() -> None:
    runs = [run(size, cpu_s=cpu_s, repeat=n) for n in range(3) for size, cpu_s in ((192, 1.0), (1920, 2.0))]
    disturbed = [*runs[:-1], run(1920, cpu_s=9.0, repeat=2, duration_s=99.0)]
    assert figures(runs, {})["clients"] == figures(disturbed, {})["clients"]


def test_the_fraction_of_a_core_at_a_pace_is_between_two_sizes() -> None:
    runs = [run(64, cpu_s=0.5, kind="paced", duration_s=3.0), run(320, cpu_s=0.9, kind="paced", duration_s=16.0)]
    assert figures(runs, {})["clients"]["tunebot"]["paced"]["cpu_fraction"] == round(0.4 / 13, 4)


def test_a_run_that_was_not_written_whole_is_measured_again() -> None:
    text = line_of(run(192, cpu_s=1.0)) + line_of(run(1920, cpu_s=1.0))
    assert [one.requests for one in runs_of(text[:-5])] == [192]


def test_the_table_gets_its_place_in_the_readme() -> None:
    made = figures([run(192, cpu_s=1.0), run(1920, cpu_s=2.0)], {"cores": 2, "cpu": "a CPU"})
    written = with_block(f"before\n{BEGIN}old\n{END}after\n", made)
    assert written == f"before\n{BEGIN}{block(made)}{END}after\n"
    assert "| tunebot 1 | 50,000 | 2.3 |" in written
    with pytest.raises(ValueError, match="no place"):
        with_block("before", made)


@pytest.mark.skipif(not FIGURES.exists(), reason="make bench-client has not measured here")
def test_the_readme_says_what_was_measured() -> None:
    readme = README.read_text()
    assert with_block(readme, json.loads(FIGURES.read_text())) == readme
