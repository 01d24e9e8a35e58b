"""`tunebot flags`: what flags a server has, and which blocks of its source test one."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.diagnostics import Exit, UserError
from agent.flags.cache import cached_table, tables_folder
from agent.flags.model import FlagTable, Kind, NoFlags
from agent.flags.view import flag_lines, flags_json, use_lines, uses_json, uses_of
from agent.playbook.model import Playbook
from agent.playbook.problems import nearest

_MARKS: tuple[tuple[Kind, str], ...] = (("sglang", "srt/server_args.py"), ("vllm", "engine/arg_utils.py"))
_WITHIN = ("", "sglang", "python/sglang", "vllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for: flags with `pattern` in their name, or the uses of the flag `uses`."""

    pattern: str
    uses: str | None
    as_json: bool


def show_flags(root: Path, wish: Wish, say: Callable[[str], None]) -> Exit:
    """Print flags or uses of the tree at `root`. Raises UserError."""
    table = table_of(root)
    if wish.uses is None:
        return _list(table, wish, say)
    name = wish.uses.lstrip("-").replace("_", "-")
    flag = table.find(name)
    if flag is None:
        raise UserError(f"{table.kind} {table.version} has no flag '{name}'", _guess(table, name))
    found = uses_of(table, flag)
    if wish.as_json:
        say(json.dumps({"flag": flag.name, "uses": uses_json(found)}, ensure_ascii=False, indent=2))
        return Exit.OK
    for line in flag_lines([flag]):
        say(line)
    say("")
    for line in use_lines(found):
        say(line)
    return Exit.OK


def _list(table: FlagTable, wish: Wish, say: Callable[[str], None]) -> Exit:
    wanted = wish.pattern.lstrip("-").replace("_", "-").lower()
    found = [flag for flag in table.flags if any(wanted in name for name in flag.spellings)]
    if not found:
        raise UserError(f"{table.kind} {table.version} has no flag with '{wanted}' in it", _guess(table, wanted))
    if wish.as_json:
        made = {"kind": table.kind, "version": table.version, "flags": flags_json(found)}
        say(json.dumps(made, ensure_ascii=False, indent=2))
        return Exit.OK
    for line in flag_lines(found):
        say(line)
    say(f"{len(found)} of {len(table.flags)} flags of {table.kind} {table.version}")
    return Exit.OK


def _guess(table: FlagTable, name: str) -> str:
    near = nearest(name, [spelling for flag in table.flags for spelling in flag.spellings])
    return f"did you mean '{near}'?" if near else "tunebot flags without a name lists them all"


def table_of(root: Path) -> FlagTable:
    """The flags of a tree of this machine, from the cache where nothing has changed. Raises UserError."""
    package, kind = _package(root)
    try:
        return cached_table(package, kind, tables_folder())
    except NoFlags as error:
        raise UserError(f"the flags of {root} cannot be read: {error}") from error


def _package(root: Path) -> tuple[Path, Kind]:
    """The package's folder at or below `root`, and what it is the package of."""
    for within in _WITHIN:
        for kind, mark in _MARKS:
            if (root / within / mark).is_file():
                return root / within, kind
    hint = "give the folder of the installed package (…/site-packages/sglang or …/vllm) or of its repository"
    raise UserError(f"{root} is no source tree of SGLang or vLLM", hint)


def source_root(source: Path | None, playbook: Playbook | None) -> Path:
    """The tree to read: `--source`, or the one that the playbook names if it is on this machine. Raises UserError."""
    if source:
        return source.expanduser()
    if playbook is None:
        raise UserError("which server?", "give --source DIR, or --playbook FILE with a server.source on this machine")
    named = playbook.server.source.get(playbook.server.kind)
    if named is None:
        hint = f"add 'source: {{{playbook.server.kind}: DIR}}' to it, or give --source DIR"
        raise UserError(f"server.source of {playbook.name} has no {playbook.server.kind}", hint)
    root = Path(named).expanduser()
    if not root.is_dir():
        raise UserError(f"{named} is not on this machine", "give --source DIR with a copy of it")
    return root
