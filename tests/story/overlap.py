"""How much longer a campaign takes than its steps, while all research gets done: `python -m tests.story.overlap`.

    python -m tests.story.overlap [SPEED] [FOLDER]

A short form of the demo runs on the simulated host, and a plain script does the same steps there one after the other.
SPEED divides the times of the host, not those of rounds, nor what tunebot itself takes: at 70 a load of ten minutes
takes nine seconds, and half a second between two steps weighs as much as 35 would. So the ratio is told as it was
measured, and with the host's own times put back. The figures go to overlap.json and docs/story.md. Exit code 0 only if
all research was done and the first ratio is at most 1.03.
"""

import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent.sim.host import create_host
from agent.sim.ledger import spans
from tests.story import page, plain
from tests.story.costs import covered_s
from tests.story.plans import overlapped, parsed, world
from tests.story.session import begin, finish

FIGURES = Path(__file__).with_name("overlap.json")
SPEED = 5.0
MOST = 1.03
LAUNCHED = ["baseline", "eagle3", "ep-plain", "cuda13"]


def main() -> int:
    """Run both, write the figures, print them; the exit code."""
    speed = float(sys.argv[1]) if len(sys.argv) > 1 else SPEED
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="overlap-"))
    book, data, load = overlapped(), world(speed), [os.getloadavg()[0]]
    run = begin(book, data, folder / "tunebot")
    host = create_host(folder / "plain", data)
    with ThreadPoolExecutor(1) as pool:
        scripted = pool.submit(plain.tune, parsed(book), LAUNCHED, host)
        ended, plain_s = finish(run), scripted.result()
    load.append(os.getloadavg()[0])
    undone = [name for name, task in ended.state.tasks.items() if task.status is None]
    launched = [launch.experiment for launch in ended.state.launches.values()]
    assert launched == LAUNCHED, f"it launched {launched}"
    figures = {
        "speed": speed,
        "machine": {"cores": os.cpu_count(), "load_average": [round(value, 1) for value in load]},
        "launches": len(launched),
        "research": {"done": len(ended.state.tasks) - len(undone), "undone": undone},
        "tunebot": times(ended.report.ledger.elapsed_s, ended.ledger, speed),
        "plain script": times(plain_s, host.ledger, speed),
    }
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    page.main()
    print(json.dumps(figures, indent=2))
    print(f"kept in {folder}")
    return int(bool(undone) or figures["tunebot"]["ratio"] > MOST)


def times(elapsed_s: float, ledger: Path, speed: float) -> dict[str, float]:
    """Seconds of a campaign and of its steps, and their ratio; then with the times of the host as they would be."""
    found = spans(ledger)
    steps_s, rounds_s = covered_s(found), covered_s(found, ("request",))
    between_s = elapsed_s - steps_s
    real_s = (steps_s - rounds_s) * speed + rounds_s
    told = {"took_s": elapsed_s, "steps_s": steps_s, "rounds_s": rounds_s, "between_s": between_s}
    ratios = {"ratio": elapsed_s / steps_s, "ratio_at_speed_1": 1 + between_s / real_s}
    return {name: round(value, 1) for name, value in told.items()} | {n: round(v, 4) for n, v in ratios.items()}


if __name__ == "__main__":
    sys.exit(main())
