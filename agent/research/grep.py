"""The research task grep: a fixed argv, never a shell, over places that may be read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.model import Finding, Quote
from agent.playbook.model import Grep
from agent.research.common import Progress, ResearchError, Result, base_name, quote_text
from agent.research.sources import SECRET_FOLDERS, SOURCE_SUFFIXES, Place, Sources, is_secret_path

PATTERN_LIMIT = 1000
"""Characters of a pattern; a longer one is a mistake."""

_TIMEOUT_S = 60.0
_MAX_OUTPUT = 4 << 20
_NO_MATCH = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Lines that match, at most as many as asked for; `more` says that there are others."""

    quotes: tuple[Quote, ...]
    more: bool
    missing: tuple[str, ...]


async def grep_task(sources: Sources, entry: Grep, progress: Progress) -> Result:
    """Carry out a grep of the playbook."""
    progress(f"searching {', '.join(base_name(path) for path in entry.paths)}")
    hits = await search(sources, entry.pattern, entry.paths, entry.max_hits)
    return "done", Finding(summary=_summary(hits), quotes=hits.quotes)


async def search(
    sources: Sources, pattern: str, paths: Sequence[str], max_hits: int, *, literal: bool = False, glob: str = ""
) -> Hits:
    """Lines that match an extended regular expression, or have a literal text; of program text, or of names as `glob`.

    Raises ResearchError where the pattern is bad, a path is refused or none exists; TargetUnusable as the target does.
    """
    if not pattern.strip() or len(pattern) > PATTERN_LIMIT:
        raise ResearchError(f"the pattern must have 1 to {PATTERN_LIMIT} characters")
    if "\n" in pattern or not pattern.replace("\t", " ").isprintable():
        raise ResearchError("the pattern has characters that stand on no line")
    located = await sources.locate(paths)
    if not located.places:
        raise ResearchError(f"none of the paths exists: {', '.join(located.missing)}")
    result = await sources.target.run(
        _argv(pattern, located.places, max_hits, literal, glob),
        timeout_s=_TIMEOUT_S,
        env={"LC_ALL": "C"},
        background=True,
        max_output_bytes=_MAX_OUTPUT,
    )
    if result.timed_out:
        raise ResearchError(f"grep did not end within {_TIMEOUT_S:.0f} s", "timeout")
    found = _parse(result.output, located.places)
    # Exit code 2 with hits only says that some file could not be read.
    if not found and result.exit_code != _NO_MATCH:
        raise ResearchError(f"grep failed: {_message(result.output)}")
    quotes = tuple(
        Quote(path=path, line=line, text=quote_text(found[path, line], sources.redact).strip())
        for path, line in sorted(found)[:max_hits]
    )
    more = result.truncated or len(found) > max_hits
    return Hits(quotes=quotes, more=more, missing=located.missing)


def _argv(pattern: str, places: Sequence[Place], max_hits: int, literal: bool, glob: str) -> list[str]:
    named = [_glob_of(place.real.rpartition("/")[2]) for place in places if not place.is_folder]
    return [
        *("grep", "-r", "-F" if literal else "-E", "-n", "-I", "-H", "-Z", "-m", str(max_hits + 1)),
        *(f"--include={name}" for name in ([glob] if glob else [f"*{suffix}" for suffix in SOURCE_SUFFIXES])),
        *(f"--include={name}" for name in named),
        *(f"--exclude-dir={folder}" for folder in SECRET_FOLDERS),
        # As one element with its option: one that begins with ~/ would be expanded on the target.
        f"--regexp={pattern}",
        "--",
        *(place.real for place in places),
    ]


def _glob_of(name: str) -> str:
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in name)


def _parse(output: bytes, places: Sequence[Place]) -> dict[tuple[str, int], bytes]:
    roots = {place.real_root: place.label.partition(":")[0] for place in places}
    found: dict[tuple[str, int], bytes] = {}
    for row in output.split(b"\n"):
        path, nul, rest = row.partition(b"\0")
        number, colon, text = rest.partition(b":")
        label = _label(path.decode("utf-8", "replace"), roots) if nul and colon and number.isdigit() else None
        if label:
            found[label, int(number)] = text
    return found


def _label(path: str, roots: dict[str, str]) -> str | None:
    root = max((root for root in roots if path.startswith(root.rstrip("/") + "/") or path == root), key=len, default="")
    relative = path[len(root) :].lstrip("/")
    if not root or not path.isprintable() or is_secret_path(relative, is_folder=False):
        return None
    return f"{roots[root]}:{relative}"


def _message(output: bytes) -> str:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip() and "\0" not in line]
    return re.sub(r"^\S*grep: ", "", lines[-1]) if lines else "it said nothing"


def _summary(hits: Hits) -> str:
    count = len(hits.quotes)
    words = f"{count}+ hits" if hits.more else "1 hit" if count == 1 else f"{count} hits" if count else "no hits"
    if hits.quotes:
        words += f"  {base_name(hits.quotes[0].path)}:{hits.quotes[0].line}"
    if hits.missing:
        words += f"  (missing: {', '.join(hits.missing)})"
    return words
