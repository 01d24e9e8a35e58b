"""`make corpus`: the diagnosis of every log in ../shared/corpus (or $TUNEBOT_SHARED/corpus) against what it has to be.

Exit code 0 where the totals are reached, or where the logs are not there; 1 otherwise. `-v` shows what is wrong.
"""

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.explain import explain_file
from agent.watch.outcome import Diagnosis

SHARED = Path(os.environ.get("TUNEBOT_SHARED", Path(__file__).resolve().parents[3] / "shared"))
PARTS = ("outcome", "root line", "category", "phase")
WANTED = (32, 31, 29, 28)
HEALTHY = ("ready", "in-progress")


@dataclass(frozen=True)
class Case:
    """One log: what the engine found, what it should have, and which parts are right."""

    name: str
    expected: dict[str, Any]
    found: Diagnosis

    @property
    def right(self) -> tuple[bool, ...]:
        """In the order of PARTS."""
        want, root = self.expected, self.expected["root_line"]
        said = self.found.root.text[:500] if self.found.root is not None else ""
        line_right = root in said if root is not None else self.found.root is None
        return (
            self.found.outcome == want["outcome"],
            line_right,
            self.found.category == want["category"],
            self.found.phase == want["phase"],
        )

    @property
    def is_false_alarm(self) -> bool:
        """A healthy log that is called a failure."""
        return self.expected["outcome"] in HEALTHY and self.found.outcome in ("failed", "hung", "degraded")


def read_case(path: Path) -> Case:
    """A log with its front matter."""
    _, head, body = path.read_bytes().split(b"---\n", 2)
    with tempfile.NamedTemporaryFile() as log:
        log.write(body)
        log.flush()
        answer = explain_file(log.name)
    return Case(path.stem, yaml.safe_load(head)["expected"], answer.found)


def main() -> int:
    """Print the table and the totals."""
    paths = sorted(SHARED.glob("corpus/*.log"))
    if not paths:
        print(f"corpus: no logs in {SHARED / 'corpus'}; nothing is measured")
        return 0
    cases = [read_case(path) for path in paths]
    print(f"{'case':<56}" + "".join(f"{part:<11}" for part in PARTS))
    for case in cases:
        print(f"{case.name[:54]:<56}" + "".join(f"{'ok' if right else 'WRONG':<11}" for right in case.right))
        if "-v" in sys.argv and not all(case.right):
            found, want = case.found, case.expected
            print(f"    want {want['outcome']} {want['category']} {want['phase']} {want['rank']} | {want['root_line']}")
            root = f"{found.root.number}: {found.root.text[:150]}" if found.root else None
            print(f"    got  {found.outcome} {found.category} {found.phase} {found.rank} | {root}")
    totals = [sum(column) for column in zip(*(case.right for case in cases), strict=True)]
    alarms = [case.name for case in cases if case.is_false_alarm]
    reached = all(total >= wanted for total, wanted in zip(totals, WANTED, strict=True)) and not alarms
    for part, total, wanted in zip(PARTS, totals, WANTED, strict=True):
        print(f"{part}: {total} of {len(cases)} right (at least {wanted})")
    print(f"false alarms on healthy logs: {', '.join(alarms) or 'none'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
