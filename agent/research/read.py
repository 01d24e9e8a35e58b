"""The research task read: the lines around a place in a source file, and what they demand of the flags."""

import asyncio
from dataclasses import dataclass

from agent.core.model import Finding, LaunchConfig, Quote
from agent.flags.fragment import demands_in
from agent.playbook.model import Args, Read
from agent.research.common import Progress, ResearchError, Result, base_name, numbered
from agent.research.grep import search
from agent.research.resolver import describe
from agent.research.sources import Sources

MAX_FILE = 4 << 20
"""Bytes of a file that are read; text beyond is not looked at."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source: its label and its lines as bytes; line 1 is `lines[0]`."""

    label: str
    lines: tuple[bytes, ...]

    @property
    def text(self) -> str:
        """The whole text, for a parser: not for the screen."""
        return b"\n".join(self.lines).decode("utf-8", "replace")

    def quotes(self, sources: Sources, first: int, count: int) -> tuple[Quote, ...]:
        """`count` lines from line `first` (1 is the first) as evidence, as far as the file has them."""
        first = max(1, first)
        return numbered(self.label, self.lines[first - 1 : first - 1 + count], sources.redact, first)


async def read_task(sources: Sources, entry: Read, config: LaunchConfig, progress: Progress) -> Result:
    """Carry out a read of the playbook."""
    progress(f"reading {base_name(entry.file)}")
    file = await load(sources, entry.file)
    first = block_start(await find(sources, file, entry.around), entry.lines)
    quotes = file.quotes(sources, first, entry.lines)
    last = quotes[-1].line
    # Parsing thousands of lines takes tens of milliseconds: not on the loop that answers keys.
    unmet = await asyncio.to_thread(demands_in, file.text, first, last, config.args)
    beyond = [demand.place.line for demand in unmet if demand.place.line > last]
    quotes += tuple(quote for line in beyond for quote in file.quotes(sources, line, 1))
    requires: Args = {demand.flag: demand.choices[0] for demand in unmet if demand.flag and not demand.given}
    summary = "; ".join(describe(demand) for demand in unmet) or f"{base_name(file.label)}:{first}-{last}"
    return "done", Finding(summary=summary, quotes=quotes, requires=requires)


async def load(sources: Sources, path: str) -> SourceFile:
    """Read a file, up to MAX_FILE bytes. Raises ResearchError and TargetUnusable."""
    place = await sources.locate_file(path)
    data = b""
    while len(data) < min(place.size, MAX_FILE):
        chunk = await sources.target.read_file(place.real, len(data), min(_CHUNK, MAX_FILE - len(data)))
        if not chunk:
            break  # it has become shorter
        data += chunk
    # Lines end where grep's and an editor's do.
    lines = data.removesuffix(b"\n").split(b"\n")
    return SourceFile(place.label, tuple(line.removesuffix(b"\r") for line in lines))


async def find(sources: Sources, file: SourceFile, around: str) -> int:
    """The number of the first line with that text, or else that matches it as an extended regular expression."""
    if not around.strip():
        raise ResearchError("the text to look for is empty")
    wanted = around.encode("utf-8", "replace")
    for number, line in enumerate(file.lines, 1):
        if wanted in line:
            return number
    # By the target's grep: a pattern from outside could keep Python's own matcher busy for ever.
    absent = ResearchError(f"{base_name(file.label)} has no line with {around}")
    try:
        hits = await search(sources, around, [file.label], 1)
    except ResearchError as error:
        raise error if error.status == "timeout" else absent from error
    if not hits.quotes or hits.quotes[0].line > len(file.lines):
        raise absent
    return hits.quotes[0].line


def block_start(line: int, lines: int) -> int:
    """Where a block of `lines` lines begins that shows `line`: a third of them before it."""
    return max(1, line - lines // 3)
