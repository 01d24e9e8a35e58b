"""A tunebot that kills itself: `python -m tests.session.victim ORDER.json` runs or resumes a session without a screen.

The order has `playbook` (a new session) or `session` (its folder), `logs`, and `die`: the name of an event and how
many of them it survives.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from agent.core import events as ev
from agent.core.state import State
from agent.headless import Printer
from agent.run import Options, resume_session, run_session
from tests.session.kit import parsed


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    seen: Counter[str] = Counter()
    say = Printer(lambda line: print(line, flush=True))

    def listen(before: State, event: ev.Event, after: State) -> None:
        say(before, event, after)
        seen[type(event).__name__] += 1
        name, survives = order.get("die") or ("", 0)
        if type(event).__name__ == name and seen[name] > survives:
            os.kill(os.getpid(), signal.SIGKILL)

    options = Options(
        target=order.get("target"), approved=tuple(order.get("approved", ())), keep=False, logs=Path(order["logs"])
    )
    if "session" in order:
        asyncio.run(resume_session(Path(order["session"]), options, listen))
    else:
        asyncio.run(run_session(parsed(order["playbook"]), "", options, listen))


if __name__ == "__main__":
    main()
