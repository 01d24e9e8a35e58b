"""Workloads that another tool measures."""

import pytest

from tests.playbook.kit import SMALL, bad, good


def with_workload(text: str) -> str:
    return SMALL.replace("{name: single}", f"{{name: single, {text}}}")


def test_a_tool_and_a_command_of_ones_own() -> None:
    made = good(with_workload("tool: sglang-bench, concurrency: 4, rate: 2")).workloads[0]
    assert (made.tool, made.run, made.concurrency, made.rate) == ("sglang-bench", (), 4, 2.0)
    made = good(with_workload('tool: command, run: [~/bench.sh, "{url}", 10, "{result}"]')).workloads[0]
    assert made.run == ("~/bench.sh", "{url}", "10", "{result}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "tool: sglang-bench, data: mixed-text",
            "data has no effect: the requests are made by sglang-bench; remove it",
        ),
        ("tool: vllm-bench, slo: {ttft_ms: 5}", "slo has no effect: the requests are made by vllm-bench"),
        ("tool: wrk", "workloads[0].tool: expected one of sglang-bench, vllm-bench, command, found 'wrk'"),
        ("tool: command", "which command?; write for example 'run: ["),
        ("tool: command, run: []", "which command?"),
        ('tool: command, run: [bench, "--out={result}"]', "no word of the command is {result}"),
        ("run: [a]", "run has no effect without a tool; write 'tool: command' with it"),
    ],
)
def test_what_does_not_fit_is_told_once(text: str, says: str) -> None:
    (problem,) = bad(with_workload(text))
    assert says in f"{problem.message}; {problem.hint}"
    assert problem.line == 11
