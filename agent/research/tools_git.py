"""The tools that look at the history of a source: git log, git show. Nothing that a repository configures is run."""

from typing import Annotated

from pydantic import Field

from agent.playbook.fields import Whole
from agent.playbook.model import Strict
from agent.research.common import ResearchError, numbered
from agent.research.sources import Place, is_secret_path
from agent.research.tool import Reply, Scope, SourcePath, Tool
from agent.text import decode

_TIMEOUT_S = 30.0
_MAX_OUTPUT = 4 << 20
_MOST_LINES = 400
_PATCH = b"diff --git "

# Whatever GIT_* there is could name another repository, a pager, a program for patches, or a file to trace into.
_CLEAN = """
import os, sys
env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
env |= {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
os.execvpe("git", ["git", *sys.argv[1:]], env)
"""
_CONFIG = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never", "log.showSignature=false")
_PLAIN = ("--no-color", "--no-decorate", "--no-notes")


class _Log(Strict):
    path: SourcePath
    count: Annotated[Whole, Field(ge=1, le=100)] = 20


class _Show(Strict):
    rev: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+~^-]{0,99}$", description="a commit, as git_log names it"),
    ]
    path: Annotated[SourcePath, Field(description="a file: its patch; a folder: which of its files changed")]
    start: Annotated[Whole, Field(ge=1, description="the first line of the output to show")] = 1


async def _log(scope: Scope, given: _Log) -> Reply:
    place = await scope.sources.locate_one(given.path)
    shape = f"--max-count={given.count}"
    output = await _git(scope, place, "log", *_PLAIN, shape, "--format=%h %as %an: %s")
    rows = output.splitlines()
    return Reply(numbered(f"git-log:{place.label}", rows, scope.sources.redact), "" if rows else "no commit touches it")


async def _show(scope: Scope, given: _Show) -> Reply:
    if ".." in given.rev:
        raise ResearchError("rev must be one commit")
    place = await scope.sources.locate_one(given.path)
    what = ("--name-status",) if place.is_folder else ("--patch", "--no-ext-diff", "--no-textconv")
    shape = (*_PLAIN, "--no-renames", "--diff-merges=first-parent", "--format=commit %h%n%an, %as%n%n%w(0,4,4)%B")
    output = await _git(scope, place, "show", *shape, *what, given.rev)
    rows = [row for row in output.split(b"\n") if not (place.is_folder and _is_secret(row))]
    if sum(row.startswith(_PATCH) for row in rows) > 1:
        raise ResearchError(f"{given.path} was a folder in {given.rev}")
    first = given.start - 1
    quotes = numbered(
        f"git:{given.rev}:{place.label}", rows[first : first + _MOST_LINES], scope.sources.redact, given.start
    )
    return Reply(quotes, f"the output has {len(rows)} lines")


async def _git(scope: Scope, place: Place, *words: str) -> bytes:
    """The output of git in the root of the source, about one path of it. Raises ResearchError where git fails."""
    relative = place.real[len(place.real_root) :].lstrip("/")
    argv = ["python3", "-I", "-S", "-c", _CLEAN, "--no-pager", "-C", place.real_root]
    argv += [word for setting in _CONFIG for word in ("-c", setting)]
    argv += [*words, "--", f":(literal){relative}" if relative else "."]
    result = await scope.sources.target.run(argv, timeout_s=_TIMEOUT_S, background=True, max_output_bytes=_MAX_OUTPUT)
    if result.timed_out:
        raise ResearchError(f"git did not end within {_TIMEOUT_S:.0f} s", "timeout")
    if result.truncated:
        raise ResearchError(f"git says more than {_MAX_OUTPUT >> 20} MiB about that: ask for less")
    if result.exit_code != 0:
        said = decode(result.output)
        if "dubious ownership" in said:
            raise ResearchError("git refuses this tree, since it belongs to somebody else")
        raise ResearchError(f"git failed: {said.strip().splitlines()[-1] if said.strip() else 'it said nothing'}")
    return result.output


def _is_secret(row: bytes) -> bool:
    """Whether a line of --name-status names a file that may not be read."""
    status, tab, name = row.partition(b"\t")
    return bool(tab) and len(status) == 1 and is_secret_path(name.decode("utf-8", "replace"), is_folder=False)


TOOLS = (
    Tool("git_log", "The latest commits that touch a path of a source, where it is a git work tree.", _Log, _log),
    Tool("git_show", "What one commit changed in a path of a source.", _Show, _show),
)
