"""What the installed server's source demands of an experiment's flags, read on the target: a finding like any other."""

import asyncio
from dataclasses import replace

from agent.core.model import Finding, LaunchConfig, Quote
from agent.flags.cache import load_table, store_table, table_file, tables_folder
from agent.flags.check import FlagProblem, check_args
from agent.flags.demands import Demand, Forced, demands, forced
from agent.flags.model import FlagTable, Kind, NoFlags, readable
from agent.flags.resolve import flag_table
from agent.playbook.model import Args
from agent.research.common import Progress, ResearchError, clip, sentence
from agent.research.sources import Sources
from agent.research.target_tree import is_unchanged, target_tree

_MOST_ROUNDS = 40


class FlagResolver:
    """Flag tables of the trees of one target. A tree is read again when one of its files has changed."""

    def __init__(self) -> None:
        self._tables: dict[str, FlagTable] = {}
        self._one_at_a_time = asyncio.Lock()

    async def table(self, sources: Sources, kind: Kind, progress: Progress) -> FlagTable:
        """The flags of the source named as its kind.

        Raises ResearchError where there is none or it cannot be read, TargetUnusable as the target does.
        """
        root = sources.roots.get(kind)
        if root is None:
            raise ResearchError(f"server.source names no {kind}, so its flags are not known")
        async with self._one_at_a_time:
            file = table_file(tables_folder(), kind, f"{sources.target.name}:{root}")
            table = self._tables.get(root) or await asyncio.to_thread(load_table, file)
            if table is None or not await is_unchanged(sources, kind, table.files):
                table = await _read_table(sources, kind, progress)
                await asyncio.to_thread(store_table, file, table)
            self._tables[root] = table
            return table

    async def finding(self, sources: Sources, config: LaunchConfig, progress: Progress) -> Finding:
        """What the source demands and the configuration does not have; `fails` where it would not take the flags.

        Raises as `table`.
        """
        kind = readable(config.kind)
        if kind is None:
            raise ResearchError(f"flags of {config.kind} cannot be read from a source")
        table = await self.table(sources, kind, progress)
        problems, unmet, own = await asyncio.to_thread(_judge, table, config.args)
        fatal = [f"{problem.message}; {problem.hint}" for problem in problems if problem.fatal]
        if fatal:
            return Finding(summary=sentence(" and ".join(fatal), sources.redact), outcome="fails")
        # A value that somebody chose is theirs to change: only what is not given yet is completed.
        requires: Args = {demand.flag: demand.choices[0] for demand in unmet if demand.flag and not demand.given}
        parts = [*map(describe, unmet), *(describe_forced(one) for one in own if one.instead_of is not None)]
        summary = "; ".join(parts) or f"{len(table.flags)} flags read: nothing more is demanded"
        quotes = [
            *(_quote(sources, kind, one, "asserts" if one.flag else "refuses") for one in unmet),
            *(_quote(sources, kind, one, "sets") for one in own),
        ]
        return Finding(summary=sentence(summary, sources.redact), quotes=tuple(quotes), requires=requires)


def _judge(table: FlagTable, args: Args) -> tuple[tuple[FlagProblem, ...], tuple[Demand, ...], tuple[Forced, ...]]:
    return check_args(table, args), demands(table, args), forced(table, args)


def describe(demand: Demand) -> str:
    """`needs --moe-runner-backend flashinfer_cutlass (or other)`, or what is refused."""
    instead = " instead of what is given" if demand.given else ""
    if demand.flag is None:
        return f"refuses {' and '.join(demand.because)}: {demand.says or demand.text}"
    first, *others = (str(choice) for choice in demand.choices)
    if demand.choices[0] is True:
        return f"needs --{demand.flag}"
    also = f" (or {', '.join(others)})" if others else ""
    return f"needs --{demand.flag} {first}{also}{instead}"


def describe_forced(one: Forced) -> str:
    """`sets --ep-size 8 instead of 4`."""
    return f"sets --{one.flag} {one.value} instead of {one.instead_of}"


def _quote(sources: Sources, kind: Kind, one: Demand | Forced, does: str) -> Quote:
    text = f"{' and '.join(one.because)}: {does} {one.text}"
    return Quote(path=f"{kind}:{one.place.path}", line=one.place.line, text=clip(sources.redact(text)))


async def _read_table(sources: Sources, kind: Kind, progress: Progress) -> FlagTable:
    """Read a tree in rounds: what one reading asks for is there for the next."""
    tree = await target_tree(sources, kind)
    for _ in range(_MOST_ROUNDS):
        try:
            # Parsing thousands of lines takes a while: not on the loop that answers keys.
            table = await asyncio.to_thread(flag_table, tree, kind)
        except NoFlags as error:
            if tree.complete:
                raise ResearchError(f"the flags of {kind} cannot be read: {error}") from error
        else:
            if tree.complete:
                return replace(table, files=tree.hashes)
        await tree.fetch(progress)
    raise ResearchError(f"the flags of {kind} cannot be read: its files lead to ever more files")
