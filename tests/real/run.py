"""`make real`: tunes a real vLLM (CPU build, tiny random model) and holds tunebot's figures against vLLM's own.

Exit code 0 when every verdict is the expected one and the request and token counts agree with /metrics.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agent.core.state import State
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags

from .counters import Counters, play

PLAYBOOK = Path(__file__).parents[2] / "playbooks" / "vllm-cpu.yaml"
EXPECTED = {
    "baseline": ("keep",),
    # Whether three launches of each exclude a gain of 20 % hangs on the noise of the machine; that they show a
    # difference where none is would be wrong on any.
    "same-again": ("no-gain", "inconclusive"),
    "one-seq": ("worse",),
    "refused": ("failed",),
    "flashinfer": ("ruled-out",),
}
REASONS = {"refused": "must be divisible by tensor parallel size", "flashinfer": "flashinfer is not installed"}


def check_verdicts(state: State) -> list[str]:
    """What is not as expected."""
    wrong = []
    for name, words in EXPECTED.items():
        verdict = state.experiments[name].verdict
        if verdict is None or verdict.word not in words:
            wrong.append(f"{name}: expected {' or '.join(words)}, found {verdict}")
        elif (reason := REASONS.get(name)) and reason not in verdict.reason:
            wrong.append(f"{name}: the reason should say {reason!r}: {verdict.reason}")
    return wrong


def check_counts(state: State, records: list[dict[str, Any]], counters: Counters) -> list[str]:
    """Where vLLM counted other requests or tokens than tunebot. Both also count the warm-up and the readiness check."""
    wrong = []
    workload = state.playbook.workloads[0]
    for name, counted in counters.by_launch.items():
        launch = state.launches[name]
        rounds = [r.metrics for r in (*launch.rounds, *launch.spoilt)]
        measured, tokens = sum(m.requests for m in rounds), sum(m.output_tokens for m in rounds)
        extra = counted["request_success_total"] - measured - workload.concurrency
        extra_tokens = counted["generation_tokens_total"] - tokens - workload.concurrency * workload.output_len
        print(f"{launch.experiment}: {measured} requests and {tokens} tokens measured, {extra:.0f} readiness checks")
        # Each readiness check generates one token, and there is at least one.
        if not (1 <= extra <= 5 and extra_tokens == extra):
            wrong.append(f"{launch.experiment}: vLLM counted {extra} requests and {extra_tokens} tokens too many")
    if len(records) < sum(len(launch.rounds) for launch in state.launches.values()) * workload.requests:
        wrong.append("measurements.jsonl lacks requests")
    return wrong


def check_overlap(state: State) -> list[str]:
    """Research has to be done while something loads."""
    first = next(iter(state.launches.values()))
    ready_at = first.requested_at + (first.load_s or 0)
    late = [t.task.id for t in state.tasks.values() if t.started_at > ready_at or t.status != "done"]
    return [f"not done beside the first load: {', '.join(late)}"] if late else []


def main() -> int:
    """Run the playbook and print what is wrong, if anything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=Path, default=Path("logs"))
    logs = parser.parse_args().logs
    playbook = load_playbook(PLAYBOOK.read_bytes(), str(PLAYBOOK), all_known_flags())
    if not isinstance(playbook, Playbook):
        print(*playbook, sep="\n", file=sys.stderr)
        return 2
    counters = Counters("vllm")
    state, folder = play(playbook, PLAYBOOK.read_text(), logs, counters)
    records = [json.loads(line) for line in (folder.path / "measurements.jsonl").read_text().splitlines()]
    wrong = [*check_verdicts(state), *check_counts(state, records, counters), *check_overlap(state)]
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    if not wrong:
        print("real: all verdicts as expected; requests and tokens agree with vLLM's /metrics")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
