"""flag-known: whether the server's own source knows the flags of a launch."""

from collections.abc import Awaitable, Callable

from agent.core.model import LaunchConfig, Quote
from agent.flags.check import NAMES, check_args
from agent.flags.model import FlagTable, Kind, readable
from agent.playbook.model import Args
from agent.playbook.preflights import FlagKnown
from agent.research.common import Progress, ResearchError, clip
from agent.research.preflights.reports import Report
from agent.research.sources import Sources

TableOf = Callable[[Sources, Kind, Progress], Awaitable[FlagTable]]
"""The flags of a source tree. Raises ResearchError where they cannot be read, TargetUnusable as the target does."""


async def check_flag(
    sources: Sources, check: FlagKnown, config: LaunchConfig, table_of: TableOf, progress: Progress
) -> Report:
    """Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    kind = readable(config.kind)
    if kind is None:
        raise ResearchError(f"the flags of {config.kind} cannot be read from a source")
    table = await table_of(sources, kind, progress)
    args: Args = config.args
    if check.name is not None:
        # A flag that the launch does not have is asked for by its name alone.
        args = {check.name: config.args.get(check.name, True)}
    problems = check_args(table, args)
    if check.name is not None and check.name not in config.args:
        problems = tuple(problem for problem in problems if problem.kind not in ("choice", "type"))
    fatal = [problem for problem in problems if problem.fatal]
    told = "; ".join(f"{problem.message}: {problem.hint}".rstrip(": ") for problem in fatal or problems)
    quotes = tuple(
        Quote(path=f"{config.kind}:{flag.place.path}", line=flag.place.line, text=clip(sources.redact(flag.help)))
        for name in args
        if (flag := table.find(name)) and check.name is not None
    )
    server = f"{NAMES[table.kind]} {table.version}".rstrip()
    known = f"{server} knows '{check.name}'" if check.name else f"{server} knows every flag"
    return Report("fails" if fatal else "fine", told or known, quotes)
