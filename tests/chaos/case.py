"""One case of the harness: a session plan played on fresh ground and judged."""

import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.ground import ground, playbook
from tests.chaos.oracle import Violation, judge
from tests.chaos.plan import Places, SessionPlan
from tests.chaos.session import Kill, Operator, Without, weather


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case. `kept` is where its files are, if a promise was broken."""

    plan: SessionPlan
    kills: list[Kill]
    faults: Counter[str]
    violations: list[Violation]
    kept: Path | None
    seconds: float


def play(plan: SessionPlan, without: Without) -> Result:
    """Play and judge one plan."""
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix=f"chaos-{plan.number}-"))
    with ground(root, plan.ssh, orphans=plan.schedule == "server") as place:
        book = playbook(
            "box" if plan.ssh else "simulated",
            plan.serve,
            whole=plan.schedule != "pair",
            launches=plan.launches,
            guard=plan.guard,
        )
        operators = [
            Operator(place, name, book, lives, without, random.Random(f"{plan.seed}:{name}"))
            for name, lives in (("one", plan.lives), ("two", plan.second))
            if lives or name == "one"
        ]
        if len(operators) == 2:
            operators[0].partner, operators[1].partner = operators[1], operators[0]
        faults: Counter[str] = Counter()
        threads = [threading.Thread(target=operator.play, daemon=True) for operator in operators]
        if plan.weather:
            calm = operators[0].calm
            threading.Thread(target=weather, args=(place, plan.seed, calm, faults), daemon=True).start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        operators[0].calm.set()
        violations = [violation for operator in operators for violation in judge(operator)]
        for operator in operators:
            faults += operator.faults
    kills = [kill for operator in operators for kill in operator.kills]
    if not violations:
        shutil.rmtree(root)
    return Result(plan, kills, faults, violations, root if violations else None, time.monotonic() - began)


def measure_places() -> Places:
    """How many journal writes and steps a session has that nobody disturbs."""
    with ThreadPoolExecutor() as pool:
        here, there = pool.map(_places, (False, True))
    return Places(writes=here["write"], local_steps=here["step"], ssh_steps=there["step"])


def _places(ssh: bool) -> Counter[str]:
    root = Path(tempfile.mkdtemp(prefix="chaos-places-"))
    with ground(root, ssh, orphans=False) as place:
        book = playbook("box" if ssh else "simulated", serve=False, whole=True)
        operator = Operator(place, "one", book, (), Without(), random.Random(0))
        operator.play()
        broken = judge(operator)
        assert not broken, f"{broken}, kept in {root}"
        counts = Counter((operator.logs / "trace").read_text().split()[::2])
    shutil.rmtree(root)
    return counts
