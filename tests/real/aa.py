"""`make aa`: pairs of launches with equal flags under two names, on a real vLLM (CPU build, tiny random model).

    python -m tests.real.aa 20      # about 50 minutes on two cores

Each pair is a session of its own, and what one learns of the noise between launches the next ones know. Exit code 1
where more than one pair in twenty ends in *keep*: that would be a gain that nobody made.
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

from agent.core.model import Verdict
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.run import Options, run_session
from agent.servers.known_flags import all_known_flags

from .run import PLAYBOOK

FIGURES = Path(__file__).with_name("aa.json")
MIN_GAIN = "5%"
ROUNDS, REQUESTS = 4, 24
LAUNCHES = 2


def playbook() -> Playbook:
    """The baseline of the shipped playbook, and the same flags again under another name."""
    book: dict[str, Any] = yaml.safe_load(PLAYBOOK.read_text())
    experiments = [{"id": "baseline", "baseline": True}, {"id": "same-again", "based_on": "baseline"}]
    book["objective"]["min_gain"] = MIN_GAIN
    book["workloads"][0] |= {"rounds": ROUNDS, "requests": REQUESTS}
    book |= {"launches": LAUNCHES, "experiments": experiments}
    found = load_playbook(yaml.safe_dump(book).encode(), "aa", all_known_flags())
    assert isinstance(found, Playbook), found
    return found


async def pair(logs: Path) -> tuple[Verdict, int]:
    """One session: how the second name was judged against the first, and how many launches that took."""
    options = Options(target=None, approved=(), keep=False, logs=logs)
    state, _ = await run_session(playbook(), "aa", options, lambda before, event, after: None)
    verdict = state.experiments["same-again"].verdict
    assert verdict is not None
    return verdict, len(state.launches)


def main() -> int:
    """Run the series and write its figures."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    verdicts, launches = [], 0
    with tempfile.TemporaryDirectory(prefix="tunebot-aa-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        for number in range(1, pairs + 1):
            verdict, took = asyncio.run(pair(Path(folder) / "logs"))
            print(f"{number:3} {verdict.word:14} {took} launches: {verdict.reason}", flush=True)
            verdicts.append(verdict)
            launches += took
    words = Counter(verdict.word for verdict in verdicts)
    gains = [round(verdict.gain, 4) for verdict in verdicts if verdict.gain is not None]
    figures = {"pairs": pairs, "min_gain": MIN_GAIN, "launches": launches, "words": dict(words), "gains": gains}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    print(", ".join(f"{count} {word}" for word, count in words.most_common()))
    return 0 if words["keep"] <= pairs / 20 and len(gains) == pairs else 1


if __name__ == "__main__":
    sys.exit(main())
