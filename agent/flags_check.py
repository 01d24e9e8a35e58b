"""The flags of a playbook's experiments against the sources that it names, as far as those are on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent.core.plan import planned_configs
from agent.diagnostics import UserError
from agent.flags.check import FlagProblem, check_args
from agent.flags.demands import Demand, demands
from agent.flags.model import FlagTable, readable
from agent.flags_command import table_of
from agent.playbook.model import Playbook
from agent.ports import TargetUnusable
from agent.targets.choose import entry_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagReport:
    """What the source says of one experiment: its table, problems of its flags, what it demands beside them.

    `unread` says why nothing is known; the rest is empty then.
    """

    experiment: str
    table: FlagTable | None = None
    problems: tuple[FlagProblem, ...] = ()
    demands: tuple[Demand, ...] = ()
    unread: str = ""


def flag_reports(playbook: Playbook, target: str | None = None) -> Iterator[FlagReport]:
    """A report for each experiment, in the playbook's order. Those that attach to a running server have none.

    `target` is that of `--target`, None for the playbook's own.
    """
    elsewhere = _elsewhere(playbook, target)
    configs = planned_configs(playbook)
    read = cache(_table)  # most experiments share a source
    for experiment in playbook.experiments:
        if experiment.baseline == "attach":
            continue
        config = configs[experiment.id]
        table = elsewhere or read(config.kind, config.source.get(config.kind))
        if isinstance(table, str):
            yield FlagReport(experiment=experiment.id, unread=table)
        else:
            yield FlagReport(
                experiment=experiment.id,
                table=table,
                problems=check_args(table, config.args),
                demands=demands(table, config.args),
            )


def _elsewhere(playbook: Playbook, target: str | None) -> str:
    """Why the sources are not those of this machine, "" where they are."""
    wanted = target or playbook.target
    if not isinstance(wanted, str):
        return f"it is on {wanted.ssh} (tunebot check --preflight looks there)"
    try:
        name, entry = entry_of(wanted)
    except TargetUnusable as error:
        return str(error)
    return "" if entry.kind == "local" else f"it is on {name} (tunebot check --preflight looks there)"


def _table(kind: str, named: str | None) -> FlagTable | str:
    """The table of a source, or why there is none."""
    if readable(kind) is None:
        return f"that of {kind} cannot be read"
    if named is None:
        return f"server.source has no {kind}"
    root = Path(named).expanduser()
    if not root.is_dir():
        return f"{named} is not on this machine"
    try:
        table = table_of(root)
    except UserError as error:
        return str(error)
    return table if table.kind == kind else f"{named} is the source of {table.kind}"
