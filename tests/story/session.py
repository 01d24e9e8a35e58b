"""Runs a plan by the `tunebot` command on a simulated host, and reads what is left of it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from agent.core.state import State
from agent.journal.journal import read_journal
from agent.report.facts import report_of
from agent.report.lane import fold
from agent.report.model import Report
from tests.story.plans import approvals

TUNEBOT = Path(sys.executable).with_name("tunebot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A session under way: its process (None where it ran before), and the folder of its plan, lines and logs."""

    process: subprocess.Popen[bytes] | None
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A session that has ended. `ledger` is the simulated host's, which tunebot never reads."""

    folder: Path
    state: State
    report: Report
    ledger: Path

    @property
    def others_busy(self) -> float:
        """The fraction of the machine's cores that others had while it measured, on average."""
        records = map(json.loads, (self.folder / "measurements.jsonl").read_text().splitlines())
        return fmean(one["host_load_others"] for one in records if one["host_load_others"] is not None)

    @property
    def words(self) -> dict[str, str]:
        """The verdict of each experiment against its parent."""
        return {one.id: one.verdict.word if one.verdict else "open" for one in self.state.experiments.values()}


def begin(book: dict[str, Any], world: dict[str, Any], folder: Path) -> Run:
    """Start a session without a screen, everything approved, without a history and without an LLM.

    Where the folder has one already, that is taken.
    """
    if folder.exists():
        return Run(process=None, folder=folder)
    folder.mkdir(parents=True)
    (folder / "plan.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    (folder / "world.yaml").write_text(json.dumps(world))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "TUNEBOT_"))}
    homes = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG")}
    command = [TUNEBOT, "run", "plan.yaml", "--target", "simulated:world.yaml", "--headless", "--logs", "logs"]
    command += [word for step in approvals(book) for word in ("--approve", step)]
    with (folder / "lines").open("wb") as lines:
        process = subprocess.Popen(command, cwd=folder, env=kept | homes, stdout=lines, stderr=subprocess.STDOUT)
    return Run(process=process, folder=folder)


def finish(run: Run) -> Ended:
    """Wait for its end. Raises RuntimeError with its last lines where it did not come to one."""
    if run.process and (code := run.process.wait()):
        last = (run.folder / "lines").read_text().splitlines()[-5:]
        raise RuntimeError("\n".join([f"{run.folder}: exit {code}", *last]))
    (folder,) = (path.parent for path in (run.folder / "logs").glob("*/journal.jsonl"))
    state, lane = fold(list(read_journal(folder)))
    report = report_of(state, lane, now=state.now, live=False)
    return Ended(folder=folder, state=state, report=report, ledger=folder / "host" / ".sim" / "ledger.jsonl")
