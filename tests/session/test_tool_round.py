"""A session whose workload another tool measures, on the target beside the server."""

import sys
from pathlib import Path

from tests.session.kit import run, small_playbook

DATA = Path(__file__).parents[1] / "imports" / "data"
TOOL = """
import pathlib, sys, urllib.request
url, seed, result = sys.argv[1:]
assert urllib.request.urlopen(url + "/v1/models").status == 200
with open({log!r}, "a") as log: log.write(seed + "\\n")
pathlib.Path(result).write_text(pathlib.Path({data!r}).read_text())
"""


async def test_each_round_is_a_run_of_the_tool_with_a_seed_of_its_own(tmp_path: Path) -> None:
    script, log = tmp_path / "tool.py", tmp_path / "seeds"
    script.write_text(TOOL.format(log=str(log), data=str(DATA / "vllm.json")))
    argv = [sys.executable, str(script), "{url}", "{seed}", "{result}"]
    workload = {"name": "w", "tool": "command", "run": argv, "requests": 6, "concurrency": 2, "rounds": 2}
    session = await run(small_playbook(workloads=[workload], target="simulated:small"), tmp_path)
    (launch,) = session.state.launches.values()
    rounds = [one.metrics for one in launch.rounds]
    assert [made.output_tokens for made in rounds] == [48, 48]
    assert all("even without text" in item.text for made in rounds for item in made.hygiene)
    seeds = log.read_text().split()
    assert len(seeds) == len(set(seeds)) == 2
    assert session.words == {"base": "keep"} and session.nothing_left()


async def test_a_tool_that_fails_is_the_reason_on_the_board(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "raise SystemExit('no such model')", "{result}"]
    workload = {"name": "w", "tool": "command", "run": argv, "requests": 6, "rounds": 2}
    session = await run(small_playbook(workloads=[workload], target="simulated:small"), tmp_path)
    assert session.words == {"base": "failed"}
    assert "command: exit 1: no such model" in session.state.experiments["base"].reason
