"""`make real-llamacpp`: the shipped llama.cpp playbook on a real llama-server with random weights.

The playbook runs as it ships, with its paths and numbers of threads set as it says, with launches that must fail added
to it, fewer requests, and without the guard, whose questions random weights cannot answer. What tunebot counted is held
against llama.cpp's own /metrics and against the timings that it logs of each request. Exit code 0 where all agrees; the
figures then go to tests/real/llamacpp.json. 20 to 30 minutes on two cores.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from agent import __version__
from agent.core.model import Phase
from agent.core.state import Launch, State
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags
from agent.session import SessionFolder

from .counters import Counters, play
from .make_gguf import MODELS, gguf
from .setup_llamacpp import SDIST, llama_server

PLAYBOOK = Path(__file__).parents[2] / "playbooks" / "llamacpp-cpu.yaml"
FIGURES = Path(__file__).with_name("llamacpp.json")
NODES = Path("/sys/devices/system/node/node1")

SURE = {"baseline": "keep", "slots-8": "keep", "draft": "worse"}
"""Verdicts that do not depend on what else the machine does: the gains and losses are by factors."""

SHORTER = {"requests: 32, rounds: 4": "requests: 12, rounds: 3", "requests: 6,": "requests: 2,",
           "guard: {answers: builtin}\n": ""}  # fmt: skip
"""What the playbook says, and what it says here."""

PHASES = (Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.WARMUP, Phase.READY)
FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no-such-flag": ({"no-such-flag": True}, "cli-arguments", "invalid argument: --no-such-flag"),
    "no-such-type": ({"cache-type-k": "q9_9"}, "cli-arguments", "Unsupported cache type: q9_9"),
    "missing-model": ({"model": "/nowhere/model.gguf"}, "hub-access", "/nowhere/model.gguf"),
    "no-gguf": ({"model": "TEXT"}, "checkpoint-corrupt", "invalid magic"),
    "cut-off": ({"model": "CUT"}, "checkpoint-corrupt", "not within the file bounds"),
    "missing-draft": ({"spec-type": "draft-simple", "model-draft": "/nowhere/draft.gguf"}, "hub-access",
                      "/nowhere/draft.gguf"),
}  # fmt: skip
"""Flags that must fail, the category of each and words of its reason. TEXT and CUT are files made for it."""

_TIMES = re.compile(
    r"print_timing: id +\d+ \| task (\d+) \| (prompt eval|       eval) time = +[\d.]+ ms / +(\d+) tokens"
)


def playbook_text(folder: Path) -> str:
    """The shipped playbook with this machine's paths and threads, and the launches that must fail behind it."""
    text = PLAYBOOK.read_text(encoding="utf-8")
    paths = {"~/llama.cpp/build/bin/llama-server": llama_server(), "~/models/model.gguf": gguf("model"),
             "~/models/draft.gguf": gguf("draft")}  # fmt: skip
    for shipped, here in {**paths, **SHORTER}.items():
        if shipped not in text:
            sys.exit(f"{PLAYBOOK} has no {shipped} any more")
        text = text.replace(shipped, str(here))
    cores = os.cpu_count() or 1
    text = re.sub(r"(threads(?:-batch)?: )(\d)", lambda m: f"{m[1]}{int(m[2]) * cores // 2}", text)
    (folder / "TEXT").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 157000000\n")
    (folder / "CUT").write_bytes(gguf("model").read_bytes()[:40_000_000])
    made = {name: str(folder / name) for name in ("TEXT", "CUT")}
    added = [
        {"id": name, "based_on": "baseline", "args": {flag: made.get(value, value) for flag, value in args.items()}}
        for name, (args, _, _) in FAILURES.items()
    ]
    return text + "\n" + re.sub("^", "  ", yaml.safe_dump(added, sort_keys=False), flags=re.MULTILINE).rstrip() + "\n"


def check_verdicts(state: State) -> list[str]:
    """What did not end as it must. Every experiment that can run has a verdict of its numbers."""
    wrong = []
    for name, experiment in state.experiments.items():
        verdict = experiment.verdict
        if name in FAILURES or (name == "numa" and not NODES.exists()):
            continue
        if verdict is None or verdict.word not in ("keep", "worse", "no-gain", "inconclusive"):
            wrong.append(f"{name}: no verdict of its numbers: {verdict} {experiment.reason}")
        elif name in SURE and verdict.word != SURE[name]:
            wrong.append(f"{name}: expected {SURE[name]}, found {verdict.word}: {verdict.reason}")
    return wrong


def check_failures(state: State) -> list[str]:
    """Where a launch that must fail did not, or another reason was found than its own."""
    wrong = []
    for name, (_, category, words) in FAILURES.items():
        launches = [state.launches[launch] for launch in state.experiments[name].launches]
        failure = launches[-1].failure if launches else None
        if failure is None or failure.category != category or words not in failure.reason:
            wrong.append(f"{name}: expected {category} with {words!r}, found {failure}")
    return wrong


def check_phases(measured: list[Launch]) -> list[str]:
    """Where a load passed other phases than llama.cpp's own, or flags were contradicted."""
    wrong = []
    for launch in measured:
        passed = [phase for phase, _ in launch.phases]
        if missing := [phase for phase in PHASES if phase not in passed]:
            wrong.append(f"{launch.experiment}: not recognised in its log: {', '.join(missing)}")
        wrong += [f"{launch.experiment}: {flag}" for flag in launch.flags if flag.status == "contradicted"]
    return wrong


def check_counts(state: State, measured: list[Launch], counters: Counters) -> list[str]:
    """Where /metrics counted other tokens than tunebot. Both also count warm-ups and the readiness check."""
    wrong = []
    workloads = state.playbook.workloads
    warm_up = sum(workload.concurrency * workload.output_len for workload in workloads)
    for launch in measured:
        rounds = [r.metrics for r in (*launch.rounds, *launch.spoilt)]
        counted = counters.by_launch[launch.id]["tokens_predicted_total"]
        extra = counted - sum(m.output_tokens for m in rounds) - warm_up
        # Each readiness check generates one token, and there is at least one.
        if not 1 <= extra <= 5:
            wrong.append(f"{launch.experiment}: /metrics counted {extra:.0f} tokens too many")
    return wrong


def requests_of(log: str) -> Counter[tuple[int, int]]:
    """How often llama.cpp logged a request of so many processed prompt tokens and so many generated ones."""
    prompts: dict[str, int] = {}
    found: Counter[tuple[int, int]] = Counter()
    for task, part, tokens in _TIMES.findall(log):
        if part == "prompt eval":
            prompts[task] = int(tokens)
        else:
            found[prompts.pop(task), int(tokens)] += 1
    return found


def check_requests(state: State, folder: SessionFolder, measured: list[Launch]) -> tuple[list[str], int]:
    """Where the log of llama.cpp has other requests than the client's records, and how many it has."""
    logged: Counter[tuple[int, int]] = Counter()
    for launch in measured:
        logged += requests_of(folder.log_of(launch.id).read_text(encoding="utf-8", errors="replace"))
    rows = [json.loads(line) for line in (folder.path / "measurements.jsonl").read_text().splitlines()]
    seen = Counter((row["prompt_tokens"] - (row["cached_tokens"] or 0), row["output_tokens"]) for row in rows)
    lengths = {workload.output_len for workload in state.playbook.workloads}
    warm_ups = len(measured) * sum(workload.concurrency for workload in state.playbook.workloads)
    total = sum(count for (_, tokens), count in logged.items() if tokens in lengths)
    wrong = [
        f"llama.cpp logged no request of {one} tokens, {count} of the client's"
        for one, count in (seen - logged).items()
    ]
    if total != len(rows) + warm_ups:
        wrong.append(f"llama.cpp logged {total} measured requests, the client {len(rows)} and {warm_ups} to warm up")
    return wrong, len(rows)


def figures(state: State, requests: int) -> dict[str, Any]:
    """What is kept of a run."""
    version = subprocess.run([str(llama_server()), "--version"], capture_output=True, text=True, check=False)
    said = re.search(r"^version: (.+)$", version.stderr, re.MULTILINE)
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    experiments = {}
    for name, experiment in state.experiments.items():
        launches = [state.launches[launch] for launch in experiment.launches]
        verdict = experiment.verdict
        failure = next((launch.failure for launch in launches if launch.failure), None)
        rounds = [
            [round(r.metrics.output_throughput, 1) for r in one.rounds if r.workload == "chat"] for one in launches
        ]
        experiments[name] = {
            "verdict": verdict.word if verdict else None,
            "gain": round(verdict.gain, 3) if verdict and verdict.gain is not None else None,
            "tokens_per_s": [one for one in rounds if one],
            "load_s": [round(launch.load_s, 2) for launch in launches if launch.load_s is not None],
        } | ({"failure": failure.reason} if failure else {})
    return {
        "machine": {"cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count()},
        "versions": {
            "tunebot": __version__, "source": SDIST, "llama-server": said[1] if said else "",
            "python": platform.python_version(),
        },
        "launches": len(state.launches),
        "requests_compared": requests,
        "minutes": round((state.now - state.started_at) / 60, 1),
        "experiments": experiments,
    }  # fmt: skip


def main() -> int:
    """Run the playbook and print what is wrong, if anything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=Path, default=Path("logs"))
    logs = parser.parse_args().logs
    if missing := [path for path in (llama_server(), *map(gguf, MODELS)) if not path.exists()]:
        print(f"real-llamacpp: no {missing[0]}; `make real-llamacpp` makes it", file=sys.stderr)
        return 2
    counters = Counters("llamacpp")
    with tempfile.TemporaryDirectory(prefix="tunebot-llamacpp-") as name:
        os.environ["XDG_STATE_HOME"] = name  # what other sessions on this machine measured is no part of this one
        text = playbook_text(Path(name))
        playbook = load_playbook(text.encode(), str(PLAYBOOK), all_known_flags())
        if not isinstance(playbook, Playbook):
            print(*playbook, sep="\n", file=sys.stderr)
            return 2
        state, folder = play(playbook, text, logs, counters)
    if state.ending != "completed":
        print(f"real-llamacpp: the session ended as {state.ending}", file=sys.stderr)
        return 1
    measured = [launch for launch in state.launches.values() if launch.rounds]
    wrong, requests = check_requests(state, folder, measured)
    wrong += [*check_verdicts(state), *check_failures(state), *check_phases(measured)]
    wrong += check_counts(state, measured, counters)
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    if not wrong:
        FIGURES.write_text(json.dumps(figures(state, requests), indent=1) + "\n", encoding="utf-8")
        print(f"real-llamacpp: {requests} requests agree with llama.cpp's log, tokens with its /metrics")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
