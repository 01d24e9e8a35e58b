"""`make aa`: pairs of launches with equal flags under two names, on a real vLLM (CPU build, tiny random model).

    python -m tests.real.aa 20      # 35 to 75 minutes on two cores

A session has one baseline and four experiments that change nothing: four pairs. What one learns of the noise between
launches the next ones know. With a folder as second argument the sessions stay there, and those that it holds already
are not played again: a series wants a quiet machine, and may be played in parts. Exit code 1 where more than one pair
in twenty ends in *keep*: that would be a gain that nobody made.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from agent.core.state import State
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.run import Options, run_session
from agent.servers.known_flags import all_known_flags
from agent.sessions import fold, session_folders

from .run import PLAYBOOK

FIGURES = Path(__file__).with_name("aa.json")
MIN_GAIN = "5%"
ROUNDS, REQUESTS = 3, 16
LAUNCHES = 2
NAMES = ("same-1", "same-2", "same-3", "same-4")


def playbook() -> Playbook:
    """The baseline of the shipped playbook, and the same flags again under other names."""
    book: dict[str, Any] = yaml.safe_load(PLAYBOOK.read_text())
    experiments = [{"id": "baseline", "baseline": True}, *({"id": name, "based_on": "baseline"} for name in NAMES)]
    book["server"]["env"]["VLLM_ENABLE_V1_MULTIPROCESSING"] = 0  # a process less: loads take two thirds of the time
    book["objective"]["min_gain"] = MIN_GAIN
    book["workloads"][0] |= {"rounds": ROUNDS, "requests": REQUESTS}
    book |= {"launches": LAUNCHES, "experiments": experiments}
    found = load_playbook(yaml.safe_dump(book).encode(), "aa", all_known_flags())
    assert isinstance(found, Playbook), found
    return found


def outcomes(state: State) -> list[dict[str, Any]]:
    """How the other names were judged against the baseline."""
    verdicts = [(name, state.experiments[name].verdict) for name in NAMES]
    return [{"name": name, "word": v.word, "gain": v.gain, "reason": v.reason} for name, v in verdicts if v]


async def session(logs: Path) -> State:
    """One session, played now."""
    options = Options(target=None, approved=(), keep=False, logs=logs)
    state, _ = await run_session(playbook(), "aa", options, lambda before, event, after: None)
    return state


def series(sessions: int, home: Path) -> list[State]:
    """So many sessions, of which those are played that are not there."""
    os.environ["XDG_STATE_HOME"] = str(home)
    logs = home / "logs"
    found = [state for folder in reversed(session_folders(logs)) if (state := fold(folder)).ending == "completed"]
    while len(found) < sessions:
        state = asyncio.run(session(logs))
        if state.ending != "completed":
            sys.exit(f"session {state.session} ended as {state.ending}: the series can be gone on with")
        found.append(state)
        for one in outcomes(found[-1]):
            print(f"session {len(found)}: {one['word']:14} {one['reason']}", flush=True)
    return found


def main() -> int:
    """Play the series and write its figures."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory(prefix="tunebot-aa-") as folder:
        states = series(pairs // len(NAMES), Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder))
    found = [one for state in states for one in outcomes(state)]
    words = Counter(one["word"] for one in found)
    gains = [round(one["gain"], 4) for one in found if one["gain"] is not None]
    launches = sum(len(state.launches) for state in states)
    figures = {"pairs": len(found), "min_gain": MIN_GAIN, "launches": launches, "words": dict(words), "gains": gains}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    print(", ".join(f"{count} {word}" for word, count in words.most_common()))
    return 0 if words["keep"] <= pairs / 20 and len(gains) == pairs else 1


if __name__ == "__main__":
    sys.exit(main())
