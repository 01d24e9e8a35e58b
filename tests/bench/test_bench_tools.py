"""Rounds that another tool measures: its command, and its result as a round."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.bench.tools import ToolLoad, argv_of, round_of, run_tool
from agent.imports.formats import read_results
from agent.imports.model import Imported
from agent.playbook.workload import Workload
from agent.ports import RoundError
from agent.targets.local import LocalTarget

DATA = Path(__file__).parents[1] / "imports" / "data"


def tool_load(tool: str = "command", run: Sequence[str] = (), *, native: bool = True, **more: object) -> ToolLoad:
    """Six requests to a server at port 30000."""
    shape = {"name": "w", "requests": 6, "concurrency": 3, "input_len": 64, "output_len": 8}
    workload = Workload.model_validate({**shape, "tool": tool, "run": tuple(run), **more})
    return ToolLoad(workload=workload, port=30000, native=native, seed=7, timeout_s=20.0)


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[LocalTarget]:
    made = LocalTarget("here", workdir=tmp_path / "work", home=tmp_path)
    yield made
    await made.close()


def imported(name: str, change: Callable[[dict], None] = lambda record: None) -> Imported:
    """The last run of a real result file, changed."""
    text = (DATA / name).read_text()
    record = json.loads(text.splitlines()[-1] if name == "sglang.jsonl" else text)
    change(record)
    return read_results(json.dumps(record))[-1]


def stand_in(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A tool that is a Python script."""
    script = tmp_path / "tool.py"
    script.write_text(f"import pathlib, shutil, sys\nDATA = pathlib.Path({str(DATA)!r})\n{body}\n")
    return sys.executable, str(script)


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_sglangs_command_has_the_load_a_seed_of_its_own_and_no_warm_up_that_a_round_would_share() -> None:
    load = tool_load("sglang-bench", ("~/v/bin/python", "-m", "sglang.bench_serving"), rate=2.5)
    argv = argv_of(load, "~/r/result")
    assert argv[:3] == ["~/v/bin/python", "-m", "sglang.bench_serving"]
    wanted = {"--base-url": "http://127.0.0.1:30000", "--num-prompts": "6", "--max-concurrency": "3", "--seed": "7"}
    wanted |= {"--random-input-len": "64", "--random-output-len": "8", "--request-rate": "2.5", "--backend": "sglang"}
    wanted |= {"--warmup-requests": "0", "--output-file": "~/r/result", "--random-range-ratio": "1.0"}
    assert {name: option(argv, name) for name in wanted} == wanted
    assert option(argv_of(tool_load("sglang-bench", native=False), "~/r/result"), "--backend") == "vllm"


def test_vllms_command_saves_each_request_and_leaves_no_length_to_chance() -> None:
    argv = argv_of(tool_load("vllm-bench"), "~/r/result")
    assert argv[:3] == ["vllm", "bench", "serve"]
    assert {"--ignore-eos", "--save-result", "--save-detailed"} <= set(argv) and "--request-rate" not in argv
    assert (option(argv, "--result-dir"), option(argv, "--result-filename")) == ("~/r", "result")


def test_a_command_of_ones_own_is_filled_in_word_by_word_and_never_read_by_a_shell() -> None:
    load = tool_load(run=("bench", "{url}/v1;rm -rf $HOME", "--n={requests}x{concurrency}", "{result}", "{other}"))
    assert argv_of(load, "~/a b")[1:] == ["http://127.0.0.1:30000/v1;rm -rf $HOME", "--n=6x3", "~/a b", "{other}"]


async def test_a_tool_runs_on_the_target_and_its_last_result_is_taken(target: LocalTarget, tmp_path: Path) -> None:
    body = "with open(sys.argv[1], 'a') as out: out.write((DATA / 'sglang.jsonl').read_text())"
    load = tool_load(run=(*stand_in(tmp_path, body), "{result}"))
    for _ in range(2):  # the file of the first time is gone by the second
        found = await run_tool(target, load, "~/bench results/one.jsonl")
        assert (found.tool, found.label, found.completed) == ("sglang.bench_serving", "paced", 6)
    assert not list((tmp_path / "bench results").iterdir())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print('usage: tool'); sys.exit('no such flag: --x')", "exit 1: no such flag: --x"),
        ("", "cannot read"),
        ("pathlib.Path(sys.argv[1]).write_text('{\"a\": 1}')", "its result cannot be read: no known benchmark client"),
        ("pathlib.Path(sys.argv[1]).write_bytes(b'\\xff')", "its result cannot be read"),
    ],
)
async def test_a_tool_that_measures_nothing_fails_the_round(
    target: LocalTarget, tmp_path: Path, body: str, message: str
) -> None:
    load = tool_load(run=(*stand_in(tmp_path, body), "{result}"))
    with pytest.raises(RoundError) as raised:
        await run_tool(target, load, "~/results/one.json")
    assert message in str(raised.value)


async def test_a_tool_without_an_end_and_one_that_is_not_there(target: LocalTarget, tmp_path: Path) -> None:
    load = replace(tool_load(run=stand_in(tmp_path, "import time; time.sleep(60)")), timeout_s=0.5)
    with pytest.raises(RoundError, match="no end after"):
        await run_tool(target, load, "~/results/one.json")
    with pytest.raises(RoundError, match="no-such-tool"):
        await run_tool(target, tool_load(run=("no-such-tool",)), "~/results/one.json")


def test_a_round_of_sglangs_details_has_tpot_and_e2e_without_the_wait_for_done() -> None:
    found = imported("sglang.jsonl")
    made = round_of(found, 6)
    assert (made.requests, made.failed, made.output_tokens, made.tokens_per_chunk) == (6, 0, 48, 1.0)
    assert made.output_throughput == pytest.approx(48 / made.duration_s)
    told = next(one for one in found.metrics if one.definition == "tpot_excl_first_done").stats
    assert made.tpot_ms < 0.95 * told["p50"]  # the file's own holds the write with [DONE]
    assert made.e2e and made.ttft and made.e2e.p50 > made.ttft_ms + 7 * 4.5
    assert made.chunk_gap and made.itl is None and made.cache_hit_rate == 0.0
    assert made.hygiene == () and made.not_comparable is None


def test_where_the_tool_has_another_definition_the_round_says_so() -> None:
    (warning,) = round_of(imported("vllm.json"), 6).hygiene
    assert (warning.name, warning.level) == ("definition", "warn") and "even without text" in warning.text

    def without_details(record: dict) -> None:
        del record["itls"]

    made = round_of(imported("sglang.jsonl", without_details), 6)
    assert ["[DONE]" in item.text for item in made.hygiene] == [True, False]
    assert made.e2e is None  # until [DONE] is not until the last token


def test_what_holds_the_ttft_never_passes_for_tpot() -> None:
    def only_with_ttft(record: dict) -> None:
        benchmark = record["benchmarks"][0]
        benchmark["requests"] = {}
        del benchmark["metrics"]["inter_token_latency_ms"]

    found = imported("benchmarks.json", only_with_ttft)
    assert any(one.definition == "tpot_incl_first" for one in found.metrics)
    with pytest.raises(RoundError, match="no TPOT"):
        round_of(found, 6)


@pytest.mark.parametrize("name", ["vllm-failed.json", "vllm.json"])
def test_requests_that_are_missing_have_failed(name: str) -> None:
    with pytest.raises(RoundError, match="requests failed"):
        round_of(imported(name), 7)
