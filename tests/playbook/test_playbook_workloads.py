"""Workloads: what they default to, which keys do not fit together, and the files that they name."""

from pathlib import Path

import pytest

from agent.attempt import yaml_text
from agent.bench.datafile import looking_from
from agent.playbook.load import load_playbook
from agent.playbook.metrics import LOWER_IS_BETTER, MetricName, unit_of
from agent.playbook.model import Playbook
from agent.playbook.workload import DataFile, Workload
from agent.servers.known_flags import all_known_flags
from tests.playbook.kit import SMALL, bad, good


def with_workload(text: str) -> str:
    return SMALL.replace("{name: single}", f"{{name: single, {text}}}")


def workload(text: str) -> Workload:
    return good(with_workload(text)).workloads[0]


def test_an_open_loop() -> None:
    made = workload(
        "rate: 4, ramp: 10s, arrivals: constant, requests: 50, slo: {ttft_ms: 200, e2e_ms: 5000}, api: chat"
    )
    assert (made.rate, made.ramp, made.arrivals, made.api) == (4.0, 10.0, "constant", "chat")
    assert made.slo and (made.slo.ttft_ms, made.slo.tpot_ms, made.slo.e2e_ms) == (200.0, None, 5000.0)


@pytest.mark.parametrize(
    ("text", "concurrency"),
    [("requests: 50", 1), ("rate: 4, requests: 50", 50), ("rate: 4", 16), ("rate: 4, concurrency: 8", 8),
     ("rate: 4, requests: 9000", 4096)],
)  # fmt: skip
def test_an_open_loop_lets_all_in_unless_told(text: str, concurrency: int) -> None:
    assert workload(text).concurrency == concurrency


def test_a_workload_of_an_old_journal_still_loads() -> None:
    old = {"name": "w", "data": "mixed-text", "concurrency": 1, "input_len": 8, "output_len": 8, "requests": 1}
    made = Workload.model_validate({**old, "rounds": 3})
    assert (made.api, made.rate, made.slo) == ("completions", None, None)
    assert Workload.model_validate(made.model_dump(mode="json")) == made


def test_a_workload_that_is_written_out_again_is_the_same() -> None:
    playbook = good(with_workload("rate: 4, ramp: 90s, slo: {ttft_ms: 200}, data: {file: a.jsonl}"))
    assert good(yaml_text(playbook)) == playbook


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("concurrency: 64", "concurrency 64 is never reached with 16 requests; write 'requests: 256' or more"),
        ("ramp: 10s", "ramp has no effect without a rate; write 'rate: 4.0' for 4 requests a second"),
        ("arrivals: constant", "arrivals has no effect without a rate"),
        ("data: random-tokens, api: chat", "a chat takes text, and random-tokens are token ids"),
        ("data: shared-prefix", "shared-prefix needs to know how long the prefix is"),
        ("shared_prefix_len: 5", "shared_prefix_len has no effect; write 'data: shared-prefix' with it"),
        ("data: shared-prefix, shared_prefix_len: 512", "a prefix of 512 tokens leaves nothing of an input of 512"),
        ("data: {file: a}, input_len: 3", "input_len has no effect: the prompts of a file are as long as they are"),
        ("data: mixed", "workloads[0].data: expected one of mixed-text, random-tokens, shared-prefix, found 'mixed'"),
        ("data: {fil: a, file: b}", "unknown key 'fil' in workloads[0].data"),
        ("data: {file: a, sha256: zz}", "workloads[0].data.sha256: 'zz' is not a SHA-256 digest"),
        ("rate: no", "workloads[0].rate: expected a number, found 'no'"),
        ("rate: 0", "workloads[0].rate: must be above 0.0, found '0'"),
        ("slo: {}", "workloads[0].slo: needs at least one of ttft_ms, tpot_ms, e2e_ms"),
        ("slo: {ttft: 5}", "unknown key 'ttft' in workloads[0].slo; did you mean 'ttft_ms'?"),
        ("rate: 4, requests: -5", "workloads[0].requests: must be at least 1, found '-5'"),
    ],
)
def test_what_does_not_fit_is_told_once(text: str, says: str) -> None:
    (problem,) = bad(with_workload(text))
    assert says in f"{problem.message}; {problem.hint}"
    assert problem.line == 11


def test_only_sglang_has_generate() -> None:
    assert workload("api: generate").api == "generate"
    text = with_workload("api: generate").replace("kind: sglang", "kind: vllm").replace("{model-path: /m}", "{}")
    (problem,) = bad(text)
    assert problem.message == "api generate is SGLang's own; vllm does not have it"


def test_goodput_needs_limits() -> None:
    text = SMALL.replace("{workload: single}", "{workload: single, metric: goodput}")
    (problem,) = bad(text)
    assert (problem.line, problem.key_path) == (9, "objective.metric")
    assert "meet an slo" in problem.message
    good(text.replace("{name: single}", "{name: single, slo: {tpot_ms: 20}}"))


@pytest.mark.parametrize(
    ("metric", "unit", "lower"),
    [
        ("output_throughput", "tok/s", False),
        ("request_throughput", "req/s", False),
        ("goodput", "good req/s", False),
        ("ttft_ms", "ms TTFT", True),
        ("tpot_p99_ms", "ms TPOT p99", True),
        ("e2e_p90_ms", "ms E2E p90", True),
    ],
)
def test_a_metric_has_a_unit_and_a_direction(metric: MetricName, unit: str, lower: bool) -> None:
    assert unit_of(metric) == unit
    assert (metric in LOWER_IS_BETTER) is lower


def with_file(folder: Path, text: str) -> Playbook | list[str]:
    found = load_playbook(text.encode(), "file.yaml", all_known_flags(), looking_from(folder))
    return found if isinstance(found, Playbook) else [f"{p.line}:{p.column}: {p.message}" for p in found]


def test_a_file_of_prompts_is_bound_to_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text('{"prompt": "a"}\n')
    playbook = with_file(tmp_path, with_workload("data: {file: chats.jsonl}"))
    assert isinstance(playbook, Playbook)
    data = playbook.workloads[0].data
    assert isinstance(data, DataFile) and data.file == str(tmp_path / "chats.jsonl")
    pinned = with_workload(f"data: {{file: chats.jsonl, sha256: {data.sha256}}}")
    assert isinstance(with_file(tmp_path, pinned), Playbook)
    (tmp_path / "chats.jsonl").write_text('{"prompt": "another"}\n')
    (said,) = with_file(tmp_path, pinned)
    assert said.startswith("11:54: the file has other bytes: its SHA-256 is ")


def test_what_is_wrong_with_a_file_is_told_beside_other_mistakes(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text('{"prompt": "a"}\n{"prompt": 5}\n')
    assert with_file(tmp_path, with_workload("data: {file: chats.jsonl}, rounds: 0")) == [
        "11:33: chats.jsonl:2: the prompt must be text, and not empty",
        "11:55: workloads[0].rounds: must be at least 1, found '0'",
    ]
    (said,) = with_file(tmp_path, with_workload("data: {file: none.jsonl}"))
    assert said == f"11:33: there is no file {tmp_path / 'none.jsonl'}"
