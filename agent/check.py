"""`tunebot check`: the problems of a playbook, or its plan: order, loads, time from history, what needs approval."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

from agent.bench.datafile import looking_from
from agent.core.model import LaunchConfig
from agent.core.pivots import group_before, group_of
from agent.core.plan import approvals_needed, plan_approval, planned_configs
from agent.core.smoke import has_smoke
from agent.core.views.basics import SMOKE_LOAD, duration
from agent.diagnostics import Exit, UserError
from agent.flags_located import Checked, check_by_source
from agent.history import LoadHistoryFile
from agent.paths import history_file
from agent.playbook.model import Experiment, Playbook
from agent.playbook.not_carried_out import not_carried_out
from agent.servers import KINDS


def check_file(data: bytes, file: str, target: str | None, as_json: bool, out: Callable[[str], None]) -> Exit:
    """`tunebot check`. Raises UserError after all problems were printed."""
    checked = check_by_source(data, file, looking_from(Path(file).parent), target)
    if checked.found is None:
        refuse(file, checked, as_json, out)
    plan = _plan_of(checked.found)
    if as_json:
        out(json.dumps({**plan, **_remarks_json(checked)}, ensure_ascii=False, indent=2))
    else:
        _complain(checked)
        _print_plan(plan, checked, out)
    return Exit.OK


def refuse(file: str, checked: Checked, as_json: bool, out: Callable[[str], None]) -> NoReturn:
    """Print the problems of a playbook. Raises UserError."""
    problems = [asdict(problem) for problem in checked.problems]
    if as_json:
        out(json.dumps({"problems": problems, **_remarks_json(checked)}, ensure_ascii=False, indent=2))
    else:
        _complain(checked)
        for sentence in checked.unread:
            sys.stderr.write(f"note: {sentence}\n")
    raise UserError(f"{file} has {_count(problems, 'problem')}", "see playbooks/example.yaml for the format")


def _remarks_json(checked: Checked) -> dict[str, Any]:
    return {"warnings": [asdict(warning) for warning in checked.warnings], "not_checked": list(checked.unread)}


def _complain(checked: Checked) -> None:
    """Write problems and warnings to stderr, in the order of the file."""
    warnings = [replace(warning, message=f"warning: {warning.message}") for warning in checked.warnings]
    for problem in sorted((*checked.problems, *warnings), key=lambda problem: (problem.line, problem.column)):
        sys.stderr.write(f"{problem}\n")


def _count(items: Sequence[object], word: str) -> str:
    return f"{len(items)} {word}{'s' if len(items) > 1 else ''}"


def _plan_of(playbook: Playbook) -> dict[str, Any]:
    """The plan as JSON-ready values. Times are seconds, None where nothing like it was loaded before."""
    configs = planned_configs(playbook)
    load_s = _usual_load_s(playbook, configs)
    loads = len(playbook.experiments)
    return {
        "name": playbook.name,
        "experiments": [_experiment(playbook, one, configs[one.id]) for one in playbook.experiments],
        "loads_at_most": loads,
        "load_s": load_s,
        "loading_at_most_s": None if load_s is None else load_s * loads,
        "not_carried_out": not_carried_out(playbook),
    }


def _experiment(playbook: Playbook, experiment: Experiment, config: LaunchConfig) -> dict[str, Any]:
    group = group_of(playbook, experiment.id)
    before = group_before(playbook, group) if group else None
    return {
        "id": experiment.id,
        "based_on": experiment.based_on,
        "why": experiment.why,
        "when": experiment.when.model_dump(by_alias=True, mode="json") if experiment.when else None,
        "after": before.title if before else None,
        "removes": dict(experiment.removes),
        "smoke": has_smoke(playbook, experiment, config),
        "preflights": len(experiment.preflight),
        "research": len(experiment.research),
        "approvals": list(approvals_needed(playbook, experiment)),
        "approval": plan_approval(playbook, experiment),
    }


def _usual_load_s(playbook: Playbook, configs: Mapping[str, LaunchConfig]) -> float | None:
    config = configs[next(experiment.id for experiment in playbook.experiments if experiment.baseline)]
    target = playbook.target if isinstance(playbook.target, str) else playbook.target.ssh
    model = KINDS[config.kind].model_of(config.args)
    phases = LoadHistoryFile(history_file()).phases_s(target, config.kind, model)
    return sum(phases.values()) if phases else None


def _print_plan(plan: dict[str, Any], checked: Checked, out: Callable[[str], None]) -> None:
    """The plan as lines for a person."""
    warned = f", {_count(checked.warnings, 'warning')}" if checked.warnings else ""
    out(f"{plan['name']}: no problems{warned}")
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
    prepared = [experiment for experiment in plan["experiments"] if experiment["approvals"]]
    if prepared:
        out("steps that change the host; run with:")
        for experiment in prepared:
            out(f"  --approve {experiment['approval']}   # {_count(experiment['approvals'], 'step')}")
    for note in (*plan["not_carried_out"], *checked.unread):
        out(f"note: {note}")


def _remarks(experiment: dict[str, Any]) -> str:
    parts = [f"on {experiment['based_on']}" if experiment["based_on"] else "baseline"]
    if when := experiment["when"]:
        names = [*when["all"], *when["any"]]
        parts.append(f"when {', '.join(names)} are {' or '.join(when['are'])}")
    if after := experiment["after"]:
        parts.append(f"if {after} is given up")
    if removes := experiment["removes"]:
        parts.append(f"takes {', '.join(f'{count} {term}' for term, count in removes.items())} off a step")
    if experiment["smoke"]:
        parts.append(f"{SMOKE_LOAD} first")
    for name, one in (("preflights", "preflight"), ("research", "research task")):
        if count := experiment[name]:
            parts.append(f"{count} {one}{'s' if count > 1 else ''}")
    if count := len(experiment["approvals"]):
        parts.append(f"{count} step{'s' if count > 1 else ''} to approve")
    return " · ".join(parts)
