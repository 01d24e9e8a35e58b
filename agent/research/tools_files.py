"""The tools that look at files of the sources: list, stat, read, grep."""

import time
from typing import Annotated

from pydantic import Field

from agent.playbook.fields import Whole
from agent.playbook.model import Strict
from agent.research.common import ResearchError
from agent.research.grep import search
from agent.research.read import block_start, find, load
from agent.research.sources import Place, is_secret_path
from agent.research.tool import Reply, Scope, SourcePath, Tool, Word

_MOST_SHOWN = 200
_MOST_LINES = 400
_MOST_HITS = 100

# Of a folder with millions of entries the first ones do.
_LOOK = """
import json, os, stat, sys
def row(name, info):
    mode = info.st_mode
    kinds = ((stat.S_ISLNK, "link"), (stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"))
    return [name, next((kind for test, kind in kinds if test(mode)), "other"), info.st_size, info.st_mtime]
path, inside = sys.argv[1:]
rows = []
if inside:
    with os.scandir(path) as entries:
        for entry in entries:
            if len(rows) == 3000:
                break
            rows.append(row(entry.name, entry.stat(follow_symlinks=False)))
else:
    rows.append(row("", os.stat(path, follow_symlinks=False)))
print()
print(json.dumps(sorted(rows)))
"""


class _Path(Strict):
    path: SourcePath


class _Read(Strict):
    path: SourcePath
    around: Annotated[Word | None, Field(description="show the lines around the first one with this text")] = None
    start: Annotated[Whole, Field(ge=1, description="or: the first line to show")] = 1
    lines: Annotated[Whole, Field(ge=1, description=f"how many lines, at most {_MOST_LINES}")] = 60


class _Grep(Strict):
    pattern: Word
    paths: Annotated[tuple[SourcePath, ...], Field(min_length=1, max_length=10)]
    literal: Annotated[bool, Field(strict=True, description="the pattern is a plain text")] = False
    glob: Annotated[
        str, Field(max_length=100, pattern=r"^[\w.*?-]*$", description="only files of such names, as *.json")
    ] = ""


async def _list(scope: Scope, given: _Path) -> Reply:
    place = await scope.sources.locate_one(given.path)
    if not place.is_folder:
        raise ResearchError(f"{given.path} is a file: stat or read it")
    rows, hidden = await _look(scope, place, inside=True)
    notes = [f"{len(rows) - _MOST_SHOWN} more are not shown"] if len(rows) > _MOST_SHOWN else []
    if hidden:
        notes.append(f"{hidden} whose names look like secrets are not shown")
    return Reply(scope.quotes(f"list:{place.label}", rows[:_MOST_SHOWN]), "; ".join(notes))


async def _stat(scope: Scope, given: _Path) -> Reply:
    place = await scope.sources.locate_one(given.path)
    rows, _ = await _look(scope, place, inside=False)
    return Reply(scope.quotes(f"stat:{place.label}", rows))


async def _read(scope: Scope, given: _Read) -> Reply:
    file = await load(scope.sources, given.path)
    count = min(given.lines, _MOST_LINES)
    first = given.start
    if given.around is not None:
        first = block_start(await find(scope.sources, file, given.around), count)
    return Reply(file.quotes(scope.sources, first, count), f"the file has {len(file.lines)} lines")


async def _grep(scope: Scope, given: _Grep) -> Reply:
    hits = await search(scope.sources, given.pattern, given.paths, _MOST_HITS, literal=given.literal, glob=given.glob)
    notes = ["there are more hits"] if hits.more else []
    if hits.missing:
        notes.append(f"not there: {', '.join(hits.missing)}")
    return Reply(hits.quotes, "; ".join(notes))


async def _look(scope: Scope, place: Place, inside: bool) -> tuple[list[str], int]:
    """What there is, a line each, and how many entries are kept back."""
    found = await scope.sources.answer_of(_LOOK, place.real, "inside" if inside else "")
    relative = place.label.partition(":")[2]
    rows, hidden = [], 0
    for name, kind, size, changed in found:
        if is_secret_path(f"{relative}/{name}".strip("/"), is_folder=kind == "folder"):
            hidden += 1
        elif name.isprintable():
            day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(changed))
            rows.append(f"{name or place.label}  {kind}  {size} bytes  {day}")
    return rows, hidden


TOOLS = (
    Tool("list", "The entries of a folder of a source.", _Path, _list),
    Tool("stat", "What a file or folder is, its size, and when it was changed.", _Path, _stat),
    Tool("read", "Lines of a source file: around the first line with a text, or from a line number on.", _Read, _read),
    Tool(
        "grep",
        "Lines of source files that match an extended regular expression (grep -E), or have a literal text. Without a "
        "glob only program text is searched, and files that are named.",
        _Grep,
        _grep,
    ),
)
