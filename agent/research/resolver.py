"""What the installed server's source demands of an experiment's flags, read on the target: a finding like any other."""

import asyncio
import json
from collections.abc import Mapping

from agent.core.model import Finding, LaunchConfig, Quote
from agent.flags.demands import Demand, Forced, demands, forced
from agent.flags.model import FlagTable, Kind, NoFlags, readable
from agent.flags.resolve import flag_table
from agent.flags.tree import TextTree
from agent.playbook.model import Args
from agent.research.common import Progress, ResearchError, clip, sentence
from agent.research.sources import Sources

_READ = """
import json, sys
found = {}
for label, path in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with open(path, "rb") as file:
            found[label] = file.read(2 << 20).decode("utf-8", "replace")
    except OSError:
        pass
print()
print(json.dumps(found))
"""
_READ_TIMEOUT_S = 60.0
_MAX_OUTPUT = 64 << 20
_MOST_ROUNDS = 40


class FlagResolver:
    """Flag tables of the trees of one target, each read once in a session."""

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
            if root not in self._tables:
                self._tables[root] = await _read_table(sources, kind, progress)
            return self._tables[root]

    async def finding(self, sources: Sources, config: LaunchConfig, progress: Progress) -> Finding:
        """What the source demands and the configuration does not have. Raises as `table`."""
        kind = readable(config.kind)
        if kind is None:
            raise ResearchError(f"flags of {config.kind} cannot be read from a source")
        table = await self.table(sources, kind, progress)
        unmet, own = await asyncio.to_thread(_judge, table, config.args)
        # A value that somebody chose is theirs to change: only what is not given yet is completed.
        requires: Args = {demand.flag: demand.choices[0] for demand in unmet if demand.flag and not demand.given}
        parts = [*map(describe, unmet), *(describe_forced(one) for one in own if one.instead_of is not None)]
        summary = "; ".join(parts) or f"{len(table.flags)} flags read: nothing more is demanded"
        quotes = [
            *(_quote(sources, kind, one, "asserts" if one.flag else "refuses") for one in unmet),
            *(_quote(sources, kind, one, "sets") for one in own),
        ]
        return Finding(summary=sentence(summary, sources.redact), quotes=tuple(quotes), requires=requires)


def _judge(table: FlagTable, args: Args) -> tuple[tuple[Demand, ...], tuple[Forced, ...]]:
    return demands(table, args), forced(table, args)


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
    texts: dict[str, str | None] = {}
    for _ in range(_MOST_ROUNDS):
        tree = TextTree(texts)
        failed: NoFlags | None = None
        table: FlagTable | None = None
        try:
            # Parsing thousands of lines takes a while: not on the loop that answers keys.
            table = await asyncio.to_thread(flag_table, tree, kind)
        except NoFlags as error:
            failed = error
        wanted = sorted(tree.asked - texts.keys())
        if not wanted:
            if table is None:
                raise ResearchError(f"the flags of {kind} cannot be read: {failed}")
            return table
        progress(f"reading {len(texts) + len(wanted)} files of {kind}")
        texts |= dict.fromkeys(wanted)
        texts |= await _texts(sources, kind, wanted)
    raise ResearchError(f"the flags of {kind} cannot be read: its files lead to ever more files")


async def _texts(sources: Sources, kind: Kind, paths: list[str]) -> Mapping[str, str]:
    """The texts of those paths that exist and may be read."""
    located = await sources.locate([f"{kind}:{path}" for path in paths])
    argv = ["python3", "-I", "-S", "-c", _READ]
    for place in located.places:
        if not place.is_folder:
            argv += [place.label.partition(":")[2], place.real]
    result = await sources.target.run(argv, timeout_s=_READ_TIMEOUT_S, background=True, max_output_bytes=_MAX_OUTPUT)
    if result.timed_out:
        raise ResearchError("the target did not read the files in time", "timeout")
    try:
        found = json.loads(result.output.decode("utf-8", "replace").rstrip().rpartition("\n")[2])
        return {str(path): str(text) for path, text in found.items()}
    except (ValueError, AttributeError) as error:
        raise ResearchError("the target could not read the files (is python3 there?)") from error
