"""The flags of a playbook's experiments against the sources that it names, as far as those are on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.core.plan import overlay
from agent.core.state import ExperimentState
from agent.diagnostics import UserError
from agent.flags.check import FlagProblem, check_args
from agent.flags.demands import Demand, demands
from agent.flags_command import table_of
from agent.playbook.model import Experiment, Playbook


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagReport:
    """What the source says of one experiment: the version read, problems of its flags, what it demands beside them.

    `unread` says why nothing is known; the rest is empty then.
    """

    experiment: str
    version: str = ""
    problems: tuple[FlagProblem, ...] = ()
    demands: tuple[Demand, ...] = ()
    unread: str = ""


def flag_reports(playbook: Playbook) -> Iterator[FlagReport]:
    """A report for each experiment, in the playbook's order. Those that attach to a running server have none."""
    by_id = {experiment.id: experiment for experiment in playbook.experiments}
    for experiment in playbook.experiments:
        if experiment.baseline != "attach":
            yield _report(playbook, by_id, experiment)


def _report(playbook: Playbook, by_id: dict[str, Experiment], experiment: Experiment) -> FlagReport:
    chain = [experiment]
    while (parent := chain[-1].based_on) is not None:
        chain.append(by_id[parent])
    config = overlay(playbook, [ExperimentState(spec=spec) for spec in reversed(chain)])
    named = config.source.get(config.kind)
    if named is None:
        return FlagReport(experiment=experiment.id, unread=f"server.source has no {config.kind}")
    root = Path(named).expanduser()
    if not root.is_dir():
        return FlagReport(experiment=experiment.id, unread=f"{named} is not on this machine")
    try:
        table = table_of(root)
    except UserError as error:
        return FlagReport(experiment=experiment.id, unread=str(error))
    return FlagReport(
        experiment=experiment.id,
        version=table.version,
        problems=check_args(table, config.args),
        demands=demands(table, config.args),
    )
