"""What a real server counts itself, beside a session that measures it."""

import asyncio
import re
import urllib.request
from collections import defaultdict
from pathlib import Path

from agent.core import events as ev
from agent.core.state import State
from agent.headless import Printer
from agent.playbook.model import Playbook
from agent.run import Options, run_session
from agent.session import SessionFolder


class Counters:
    """The server's counters of each launch, as they stood after its last round and before the guard's questions.

    `by_launch` has them by launch and by their names in /metrics without `prefix` and its colon, summed over labels.
    """

    def __init__(self, prefix: str) -> None:
        self.by_launch: dict[str, dict[str, float]] = {}
        self._line = re.compile(rf"^{prefix}:(\w+)(?:\{{[^}}]*\}})? (\S+)$", re.MULTILINE)

    def listen(self, event: ev.Event, state: State) -> None:
        """Read them where a round was measured."""
        if isinstance(event, ev.RoundMeasured):
            port = state.launches[event.launch].port
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
            sums: dict[str, float] = defaultdict(float)
            for name, value in self._line.findall(text):
                sums[name] += float(value)
            self.by_launch[event.launch] = sums


def play(playbook: Playbook, text: str, logs: Path, counters: Counters) -> tuple[State, SessionFolder]:
    """Run a playbook to its end, its lines on stdout. Raises what `run_session` raises."""
    printer = Printer(lambda line: print(line, flush=True))

    def listen(before: State, event: ev.Event, after: State) -> None:
        printer(before, event, after)
        counters.listen(event, after)

    return asyncio.run(run_session(playbook, text, Options(target=None, approved=(), keep=False, logs=logs), listen))
