"""`tunebot check`: the plan of a sound playbook: order, loads, time from history, what needs approval."""

from collections.abc import Callable
from typing import Any

from agent.core.plan import approvals_needed, overlay
from agent.core.state import ExperimentState
from agent.core.views.basics import duration
from agent.history import LoadHistoryFile
from agent.paths import history_file
from agent.playbook.model import Experiment, Playbook
from agent.playbook.not_carried_out import not_carried_out
from agent.servers import KINDS


def plan_of(playbook: Playbook) -> dict[str, Any]:
    """The plan as JSON-ready values. Times are seconds, None where nothing like it was loaded before."""
    load_s = _usual_load_s(playbook)
    loads = len(playbook.experiments)
    return {
        "name": playbook.name,
        "experiments": [_experiment(playbook, experiment) for experiment in playbook.experiments],
        "loads_at_most": loads,
        "load_s": load_s,
        "loading_at_most_s": None if load_s is None else load_s * loads,
        "not_carried_out": not_carried_out(playbook),
    }


def _experiment(playbook: Playbook, experiment: Experiment) -> dict[str, Any]:
    return {
        "id": experiment.id,
        "based_on": experiment.based_on,
        "why": experiment.why,
        "when": experiment.when.model_dump(by_alias=True, mode="json") if experiment.when else None,
        "preflights": len(experiment.preflight),
        "research": len(experiment.research),
        "approvals": list(approvals_needed(playbook, experiment)),
    }


def _usual_load_s(playbook: Playbook) -> float | None:
    baseline = next(e for e in playbook.experiments if e.baseline)
    config = overlay(playbook, [ExperimentState(spec=baseline)])
    target = playbook.target if isinstance(playbook.target, str) else playbook.target.ssh
    model = KINDS[config.kind].model_of(config.args)
    phases = LoadHistoryFile(history_file()).phases_s(target, config.kind, model)
    return sum(phases.values()) if phases else None


def print_plan(plan: dict[str, Any], out: Callable[[str], None]) -> None:
    """The plan as lines for a person."""
    out(f"{plan['name']}: no problems")
    out("")
    out("plan, in this order:")
    for number, experiment in enumerate(plan["experiments"], 1):
        out(f"  {number:>2}. {experiment['id']:<26} {_remarks(experiment)}".rstrip())
    out("")
    load_s = plan["load_s"]
    known = f"about {duration(load_s)} each" if load_s else "no ETA: nothing like it was loaded on this target yet"
    out(f"loads: at most {plan['loads_at_most']}, {known}")
    if load_s:
        out(f"loading: at most {duration(plan['loading_at_most_s'])}, measuring not counted")
    approvals = [needed for experiment in plan["experiments"] for needed in experiment["approvals"]]
    if approvals:
        out("steps that change the host; run with:")
        for needed in approvals:
            out(f"  --approve {needed}")
    for note in plan["not_carried_out"]:
        out(f"note: {note}")


def _remarks(experiment: dict[str, Any]) -> str:
    parts = [f"on {experiment['based_on']}" if experiment["based_on"] else "baseline"]
    if when := experiment["when"]:
        names = [*when["all"], *when["any"]]
        parts.append(f"when {', '.join(names)} are {' or '.join(when['are'])}")
    for name, one in (("preflights", "preflight"), ("research", "research task")):
        if count := experiment[name]:
            parts.append(f"{count} {one}{'s' if count > 1 else ''}")
    if count := len(experiment["approvals"]):
        parts.append(f"{count} step{'s' if count > 1 else ''} to approve")
    return " · ".join(parts)
