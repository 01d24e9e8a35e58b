"""The story's `ep-flashinfer`, which lacks a flag that the source demands: who adds it, and what if nobody does."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agent.core import events as ev
from agent.core.needs import Completion, needs
from agent.core.state import State
from agent.headless import Printer
from agent.paths import shipped_playbooks
from agent.run import Options, open_session
from agent.sim.host import world_file
from tests.session.kit import Session, parsed

DEMANDED = "flashinfer_cutlass"
QUESTION = {"ask": "Which flags does flashinfer's all-to-all need?", "needed": True}


def playbook(accept: str | None, source: Mapping[str, str] | None = None, *, ask: bool = False) -> dict[str, Any]:
    """The baseline and `ep-flashinfer` of the shipped demo, without its own research."""
    book = yaml.safe_load((shipped_playbooks() / "demo.yaml").read_text())
    kept = {e["id"]: e for e in book["experiments"] if e["id"] in ("baseline", "ep-flashinfer")}
    for experiment in kept.values():
        experiment.pop("research", None)
        experiment.pop("when", None)
    if ask:
        kept["ep-flashinfer"]["research"] = [QUESTION]
    book["server"]["source"] |= source or {}
    book["workloads"][0]["rounds"] = 1
    if accept is None:
        del book["accept"]
    del book["groups"]  # they name the others
    return {**book, "experiments": list(kept.values())}


async def play(book: dict[str, Any], folder: Path, *, approve: bool = False) -> Session:
    """The playbook on the story's host in a hurry; with `approve` a person takes over what an LLM says."""
    world = yaml.safe_load(world_file("story").read_text()) | {"speed": 600}
    (folder / "world.yaml").write_text(json.dumps(world))
    options = Options(target=f"simulated:{folder / 'world.yaml'}", approved=(), keep=False, logs=folder / "logs")
    lines: list[str] = []
    printer = Printer(lines.append)

    def listen(before: State, event: ev.Event, state: State) -> None:
        printer(before, event, state)
        if approve and isinstance(event, ev.TaskFinished):
            for need in needs(state):
                if isinstance(need, Completion) and need.from_llm:
                    completed = ev.ExperimentCompleted(
                        at=time.time(), experiment=need.experiment, adds=need.adds, task=need.task
                    )
                    engine.submit(completed)

    async with open_session(parsed(book), "playbook", options, listen) as (engine, session):
        state = await engine.run()
    return Session(state, lines, session.path)


def runner(session: Session) -> str | None:
    """The MoE runner with which `ep-flashinfer` was really started."""
    argv = session.real_launches()["ep-flashinfer"]["argv"]
    return argv[argv.index("--moe-runner-backend") + 1] if "--moe-runner-backend" in argv else None
