"""`make real-sglang`: tunes a real SGLang on this machine's GPU and holds what tunebot says against what must be.

    python -m tests.real.sglang_gpu [--python PYTHON] [--logs FOLDER] [--figures FILE]

Needs an NVIDIA GPU with 20 GiB free, and a Python with SGLang and transformers in it (--python; else this one). A
Llama of 1.1 billion random weights is made with it first. Exit code 0 where every verdict is the expected one, the
smoke loads and the guard did what they are for, and tokens agree with SGLang's own /metrics; the figures then go to
tests/real/sglang.json. 13 minutes on an H200.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent import __version__
from agent.core.guard import GuardResult, logprob_change, normal
from agent.core.model import Phase
from agent.core.state import Launch, State
from agent.core.verdict import guard_of
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags

from .counters import Counters, play

PLAYBOOK = Path(__file__).with_name("sglang-1gpu.yaml")
FIGURES = Path(__file__).with_name("sglang.json")
EXPECTED = {
    "baseline": ("keep",),
    "same-again": ("no-gain", "inconclusive"),
    "one-request": ("worse",),
    "no-graphs": ("worse",),
    "fewer-layers": ("invalid",),
    "too-small": ("failed",),
    "many-gpus": ("ruled-out",),
}
REASONS = {"fewer-layers": "nats", "too-small": "in the smoke load"}
"""Words that a reason must have."""
PURPOSES = {"baseline": ["smoke", "measure"], "no-graphs": ["measure"], "too-small": ["smoke"], "many-gpus": []}
"""What the first two launches of an experiment were for."""
PHASES = (Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.GRAPH_CAPTURE, Phase.WARMUP, Phase.READY)
OWN_REQUESTS = 10
"""Requests at most that are neither measured nor a warm-up: SGLang's own warm-up, and looks at whether it is ready."""


def said(python: str, code: str) -> str:
    """What a line of Python prints. Ends the program where it fails."""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"real-sglang: {python}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip().splitlines()[-1]


def playbook_text(python: str, source: Path) -> str:
    """The playbook with this machine's paths; the model is made where it is not there."""
    made = subprocess.run(
        [python, str(Path(__file__).with_name("make_model.py")), "large"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        sys.exit(f"real-sglang: {made.stderr}")
    words = {"PYTHON": python, "SOURCE": str(source), "MODEL": made.stdout.strip().splitlines()[-1]}
    return re.sub(r"\b(PYTHON|SOURCE|MODEL)\b", lambda word: words[word[0]], PLAYBOOK.read_text(encoding="utf-8"))


def check_verdicts(state: State) -> list[str]:
    """What did not end as it must."""
    wrong = []
    for name, words in EXPECTED.items():
        experiment = state.experiments[name]
        verdict = experiment.verdict
        if verdict is None or verdict.word not in words or REASONS.get(name, "") not in verdict.reason:
            wrong.append(f"{name}: expected {' or '.join(words)} {REASONS.get(name, '')}, found {verdict}")
        purposes = [state.launches[launch].purpose for launch in experiment.launches]
        if name in PURPOSES and purposes[:2] != PURPOSES[name]:
            wrong.append(f"{name}: launched for {purposes}")
    return wrong


def check_launches(measured: list[Launch]) -> list[str]:
    """Where a load passed other phases than it must, flags were contradicted, or nobody saw the GPU work.

    The GPU is looked at two seconds after the begin of a round: what has ended by then is not seen.
    """
    wrong = []
    for launch in measured:
        passed = [phase for phase, _ in launch.phases]
        wanted = [phase for phase in PHASES if phase is not Phase.GRAPH_CAPTURE or launch.experiment != "no-graphs"]
        if missing := [phase for phase in wanted if phase not in passed]:
            wrong.append(f"{launch.experiment}: not recognised in its log: {', '.join(missing)}")
        wrong += [f"{launch.experiment}: {flag}" for flag in launch.flags if flag.status == "contradicted"]
        used = [done.metrics.gpu_use for done in launch.rounds if done.metrics.gpu_use]
        if not used or not all(use.count == 1 and 0 < use.watts < use.limit_watts for use in used):
            wrong.append(f"{launch.experiment}: what the GPU did: {used}")
    return wrong


def check_counts(state: State, measured: list[Launch], counters: Counters) -> list[str]:
    """Where SGLang counted other requests or tokens than tunebot."""
    wrong = []
    workload = state.playbook.workloads[0]
    for launch in measured:
        rounds = [done.metrics for done in (*launch.rounds, *launch.spoilt)]
        counted = counters.by_launch[launch.id]
        requests, tokens = sum(m.requests for m in rounds), sum(m.output_tokens for m in rounds)
        more = counted["num_requests_total"] - requests - workload.concurrency
        more_tokens = counted["generation_tokens_total"] - tokens - workload.concurrency * workload.output_len
        told = (
            f"{launch.experiment}: {requests} requests of {tokens} tokens; SGLang {more:.0f} of {more_tokens:.0f} more"
        )
        print(told)
        if not (0 <= more <= OWN_REQUESTS and more <= more_tokens <= 10 * OWN_REQUESTS):
            wrong.append(told)
    return wrong


def figures(state: State, python: str) -> dict[str, Any]:
    """What is kept of a run."""
    gpu = state.host.gpus[0]
    versions = said(python, "import json,sglang,torch; print(json.dumps([sglang.__version__, torch.__version__]))")
    experiments = {}
    theirs = guard_of(state, state.baseline.id)
    for name, experiment in state.experiments.items():
        launches = [state.launches[launch] for launch in experiment.launches]
        verdict = experiment.verdict
        rounds = [done.metrics for launch in launches for done in launch.rounds]
        answers = guard_of(state, name)
        experiments[name] = {
            "verdict": verdict.word if verdict else None,
            "reason": verdict.reason if verdict else experiment.reason,
            "loads_s": [[launch.purpose, round(launch.load_s or 0.0, 1)] for launch in launches],
            "tokens_per_s": [round(one.output_throughput) for one in rounds],
            "watts": [round(one.gpu_use.watts) for one in rounds if one.gpu_use],
            "busy": [round(one.gpu_use.busy, 2) for one in rounds if one.gpu_use],
        } | (_beside(answers, theirs) if answers and theirs and name != state.baseline.id else {})
    return {
        "machine": {"gpu": gpu.name, "driver": gpu.driver, "cores": os.cpu_count()},
        "versions": {
            "tunebot": __version__, "sglang": json.loads(versions)[0], "torch": json.loads(versions)[1],
            "python": platform.python_version(),
        },
        "minutes": round((state.now - state.started_at) / 60, 1),
        "experiments": experiments,
    }  # fmt: skip


def _beside(answers: GuardResult, theirs: GuardResult) -> dict[str, Any]:
    """How answers differ from those of the baseline: in nats a token of its own, and in words."""
    same = sum(normal(one) == normal(other) for one, other in zip(answers.answers, theirs.answers, strict=True))
    change = logprob_change(answers, theirs)
    return {"nats": None if change is None else round(change, 4), "same_answers": f"{same} of {len(theirs.answers)}"}


def main() -> int:
    """Run the playbook and print what is wrong, if anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.sglang_gpu")
    parser.add_argument("--python", default=sys.executable, help="a Python that has SGLang")
    parser.add_argument("--logs", type=Path, default=Path("logs"))
    parser.add_argument("--figures", type=Path, default=FIGURES)
    options = parser.parse_args()
    source = Path(said(options.python, "import sglang; print(sglang.__file__)")).parent
    text = playbook_text(options.python, source)
    counters = Counters("sglang")
    with tempfile.TemporaryDirectory(prefix="tunebot-sglang-") as history:
        os.environ["XDG_STATE_HOME"] = history  # what other sessions on this machine measured is no part of this one
        playbook = load_playbook(text.encode(), str(PLAYBOOK), all_known_flags())
        if not isinstance(playbook, Playbook):
            print(*playbook, sep="\n", file=sys.stderr)
            return 2
        state, _ = play(playbook, text, options.logs, counters)
    measured = [launch for launch in state.launches.values() if launch.rounds]
    wrong = [*check_verdicts(state), *check_launches(measured), *check_counts(state, measured, counters)]
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    if state.ending != "completed" or wrong:
        print(f"real-sglang: the session ended as {state.ending}", file=sys.stderr)
        return 1
    options.figures.write_text(json.dumps(figures(state, options.python), indent=1) + "\n", encoding="utf-8")
    print("real-sglang: all verdicts as expected; requests and tokens agree with SGLang's /metrics")
    return 0


if __name__ == "__main__":
    sys.exit(main())
