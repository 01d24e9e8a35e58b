"""Result files of the real clients (see make_data.py), each number with its tool's definition."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.imports.formats import read_results
from agent.imports.model import DEFINITIONS, Imported, Metric, Unreadable

DATA = Path(__file__).parent / "data"
TOKENS = 8
STEP_MS = 5.0


def results(name: str) -> tuple[Imported, ...]:
    return read_results((DATA / name).read_text())


def record(name: str) -> Any:
    """The first object of a file."""
    return json.loads((DATA / name).read_text().split("\n{")[0])


def metric(result: Imported, definition: str) -> Metric:
    (found,) = (one for one in result.metrics if one.definition == definition)
    return found


def mean(result: Imported, definition: str) -> float:
    return metric(result, definition).stats["mean"]


def test_every_file_is_told_apart_by_its_content() -> None:
    found = {path.name: [result.tool for result in results(path.name)] for path in DATA.iterdir()}
    assert found == {
        "sglang.jsonl": ["sglang.bench_serving"] * 2,
        "vllm.json": ["vllm bench serve"],
        "vllm-failed.json": ["vllm bench serve"],
        "tunebot.json": ["tunebot bench"],
        "benchmarks.json": ["GuideLLM"],
        "profile_export_aiperf.json": ["AIPerf"],
        "profile_export.jsonl": ["AIPerf"],
    }


@pytest.mark.parametrize(
    "name", ["sglang.jsonl", "vllm.json", "benchmarks.json", "profile_export_aiperf.json", "tunebot.json"]
)
def test_what_ran_is_told(name: str) -> None:
    for result in results(name):
        assert (result.completed, result.output_tokens) == (6, 6 * TOKENS)
        assert result.duration_s and 0.04 < result.duration_s < 2
        assert "tiny-llama" in (*result.load.values(), *result.server.values())
        assert result.load.keys() & {"max_concurrency", "concurrency", "streams"}


# The server took 5 ms for each token and for the last write with [DONE] in it: definitions differ by that.


def test_sglang_counts_until_done() -> None:
    result = results("sglang.jsonl")[0]
    tpot, e2e, ttft = (mean(result, d) for d in ("tpot_excl_first_done", "e2e_done", "ttft_text"))
    assert tpot == pytest.approx((e2e - ttft) / (TOKENS - 1))
    assert tpot > 1.08 * mean(result, "gap_chunk")
    assert not any(one.definition == "tpot_excl_first" for one in result.metrics)


@pytest.mark.parametrize("name", ["sglang.jsonl", "vllm.json"])
def test_details_of_requests_give_what_compares_with_others(name: str) -> None:
    detailed = results(name)[-1]
    assert mean(detailed, "tpot_excl_first") == pytest.approx(mean(detailed, "gap_chunk"))
    assert metric(detailed, "tokens_per_chunk").stats["value"] == 1.0
    whole = json.loads((DATA / name).read_text().splitlines()[-1])
    without_e2e = {key: value for key, value in whole.items() if not key.endswith("_e2el_ms")}
    assert mean(read_results(json.dumps(without_e2e))[0], "e2e_token") == pytest.approx(mean(detailed, "e2e_token"))


def test_tokens_of_a_chunk_are_not_one_with_speculation() -> None:
    whole = record("vllm.json")
    whole["itls"] = [gaps[:3] for gaps in whole["itls"]]
    assert metric(read_results(json.dumps(whole))[0], "tokens_per_chunk").stats["value"] == TOKENS / 4


@pytest.mark.parametrize("name", ["vllm.json", "profile_export_aiperf.json", "tunebot.json"])
def test_vllm_aiperf_and_tunebot_count_until_the_last_token(name: str) -> None:
    (result,) = results(name)
    tpot, e2e = mean(result, "tpot_excl_first"), mean(result, "e2e_token")
    (ttft,) = (one.stats["mean"] for one in result.metrics if one.definition.startswith("ttft"))
    assert tpot == pytest.approx((e2e - ttft) / (TOKENS - 1))
    assert tpot == pytest.approx(mean(result, "gap_chunk"))
    assert tpot == pytest.approx(STEP_MS, rel=0.1)


def test_guidellms_time_per_output_token_holds_the_ttft_and_is_no_tpot() -> None:
    (result,) = results("benchmarks.json")
    incl = metric(result, "tpot_incl_first")
    assert incl.key == "time_per_output_token_ms" and DEFINITIONS[incl.definition].word != "TPOT"
    last_token = mean(result, "ttft_reported") + (TOKENS - 1) * mean(result, "tpot_excl_first")
    assert incl.stats["mean"] == pytest.approx(last_token / TOKENS, rel=0.01)
    assert metric(result, "tpot_excl_first_weighted").key == "inter_token_latency_ms"
    assert mean(result, "tpot_excl_first") == pytest.approx(STEP_MS, rel=0.1)
    assert mean(result, "e2e_end") > last_token + 0.5 * STEP_MS  # in ms, though the file has seconds
    assert any("holds TTFT" in note for note in result.notes)


def test_aiperfs_inter_token_latency_is_tpot_and_its_requests_say_the_same_as_its_summary() -> None:
    (summary,), (requests,) = results("profile_export_aiperf.json"), results("profile_export.jsonl")
    assert metric(summary, "tpot_excl_first").key == "inter_token_latency"
    assert metric(summary, "gap_chunk").key == "inter_chunk_latency"
    for definition in ("ttft_text", "tpot_excl_first", "gap_chunk", "e2e_token"):
        mine, theirs = metric(requests, definition).stats, metric(summary, definition).stats
        assert {stat: theirs[stat] for stat in mine} == pytest.approx(mine)


def test_the_same_word_with_another_definition_is_another_metric() -> None:
    written = {
        name: {one.key: one.definition for one in results(name)[0].metrics}
        for name in ("sglang.jsonl", "vllm.json", "profile_export_aiperf.json", "benchmarks.json")
    }
    assert written["sglang.jsonl"]["e2e_latency_ms"] == "e2e_done"
    assert written["vllm.json"]["e2el_ms"] == written["profile_export_aiperf.json"]["request_latency"] == "e2e_token"
    assert written["benchmarks.json"]["request_latency"] == "e2e_end"


def test_an_open_loop_of_tunebot_counts_from_the_time_due() -> None:
    (closed,) = results("tunebot.json")
    (open_loop,) = read_results(json.dumps(record("tunebot.json") | {"request_rate": 4.0}))
    assert {"ttft_text", "e2e_token"} <= {one.definition for one in closed.metrics}
    assert {"ttft_due", "e2e_due"} <= {one.definition for one in open_loop.metrics}
    assert not {"ttft_text", "e2e_token"} & {one.definition for one in open_loop.metrics}


def test_an_infinite_rate_is_text_and_a_trace_is_too() -> None:
    assert ": Infinity," in (DATA / "sglang.jsonl").read_text()
    assert [result.load["request_rate"] for result in results("sglang.jsonl")] == ["inf", "50.0"]
    traced = json.dumps(record("sglang.jsonl") | {"request_rate": "trace"})
    assert read_results(traced)[0].load["request_rate"] == "trace"


def test_failures_of_sglang_are_known_only_with_its_details() -> None:
    plain, detailed = results("sglang.jsonl")
    assert plain.failed is None and any("no failures" in note for note in plain.notes)
    assert detailed.failed == 0 and not detailed.notes


def test_zeros_of_a_run_in_which_all_failed_are_no_measurement() -> None:
    assert record("vllm-failed.json")["mean_ttft_ms"] == 0.0
    (result,) = results("vllm-failed.json")
    assert (result.completed, result.failed, result.metrics) == (0, 6, ())


def test_a_percentile_that_older_files_lack_is_left_out() -> None:
    old = {key: value for key, value in record("sglang.jsonl").items() if not key.startswith(("p90", "p95"))}
    stats = metric(read_results(json.dumps(old))[0], "ttft_text").stats
    assert {"mean", "p50", "p99"} <= stats.keys() and not {"p90", "p95"} & stats.keys()


def test_a_ttft_that_is_missing_is_told_since_guidellm_counts_it_as_0() -> None:
    whole = record("benchmarks.json")
    whole["benchmarks"][0]["requests"]["successful"][0]["time_to_first_token_ms"] = None
    assert any("1 of 6 requests had no TTFT" in note for note in read_results(json.dumps(whole))[0].notes)
    benchmark = whole["benchmarks"][0]
    benchmark["requests"] = {}
    benchmark["metrics"]["time_to_first_token_ms"]["successful"]["min"] = 0.0
    assert any("TTFT of 0 ms" in note for note in read_results(json.dumps(whole))[0].notes)


def test_tokens_counted_again_by_sglang_are_held_against_its_count() -> None:
    short = record("sglang.jsonl") | {"total_output_tokens_retokenized": 30}
    assert any(
        "30 output tokens when tokenised again, not 48" in note for note in read_results(json.dumps(short))[0].notes
    )


def test_a_line_that_was_cut_off_is_named() -> None:
    with pytest.raises(Unreadable, match="line 2 is not JSON"):
        read_results((DATA / "sglang.jsonl").read_text()[:-200])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\x00", "no text"),
        (b"[1, 2]", "not a JSON object"),
        (b"Benchmark duration (s): 3", "not JSON"),
        (b'{"benchmarks": []}', "no known benchmark client wrote this (it begins with 'benchmarks')"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_result_ends_with_a_message_and_a_hint(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content)
    assert main(["import", str(file)]) == 2
    said = capsys.readouterr()
    assert message in said.err and "hint:" in said.err and not said.out


@pytest.mark.parametrize("file", ["nothing-here.json", "."])
def test_a_file_that_is_not_there_ends_with_a_message(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", file]) == 2
    assert file in capsys.readouterr().err


def test_the_table_names_key_and_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(DATA / "benchmarks.json"), str(DATA / "vllm.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if line.startswith("  TPOT+TTFT"))
    assert row.split()[-2:] == ["ms", "time_per_output_token_ms"]
    assert "  as GuideLLM defines it:" in lines and "  as vllm bench serve defines it:" in lines
    assert any("TTFT included" in line for line in lines)


def test_the_json_is_strict_and_has_a_definition_and_a_unit_for_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in sorted(DATA.iterdir())]
    assert main(["import", "--json", *files]) == 0

    def refuse(token: str) -> None:
        raise AssertionError(token)

    made = json.loads(capsys.readouterr().out, parse_constant=refuse)["results"]
    assert len(made) == 8
    for result in made:
        for one in result["metrics"]:
            assert one["means"] and one["unit"] and ("value" in one or "mean" in one)


def test_secrets_and_escapes_of_a_file_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = {"model_path": "tiny\x1b[31m-llama", "api_key": "very-secret", "version": "1\u202e2"}
    file = tmp_path / "result.jsonl"
    file.write_text(json.dumps(record("sglang.jsonl") | {"server_info": info, "tag": "a\nb\ud800"}))
    for options in ([], ["--json"]):
        assert main(["import", *options, str(file)]) == 0
        shown = capsys.readouterr().out
        assert "tiny-llama" in shown and "very-secret" not in shown and "\x1b" not in shown
        assert "\u202e" not in shown and "⟨U+D800⟩" in shown


def test_the_data_names_no_machine() -> None:
    for path in DATA.iterdir():
        assert not [part for part in _texts(path) if part.startswith(("/root", "/home", "/work", "/tmp"))]


def _texts(path: Path) -> Sequence[str]:
    return path.read_text().replace('\\"', '"').split('"')
