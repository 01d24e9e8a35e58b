"""The keys of every `args`: flags that the server has, each once and under one of its spellings."""

from collections.abc import Iterator, Sequence

from agent.playbook.outline import Outline, table_at
from agent.playbook.problems import Path, Report, shown
from agent.playbook.tree import Scalar, Table


class _Spellings:
    """Which flag a key of `args` means."""

    def __init__(self, kind: str, flags: Sequence[Sequence[str]]) -> None:
        self.kind = kind
        self.usual = {spelling: group[0] for group in flags for spelling in group}

    def flag_of(self, key: str) -> str | None:
        """The usual spelling of the flag, or None for what is no flag."""
        if key in self.usual:
            return self.usual[key]
        head, dot, rest = key.partition(".")
        if self.kind == "vllm" and rest and head in self.usual:
            return self.usual[head] + dot + rest  # vLLM reads --compilation-config.mode as a key of that JSON
        return None


def check_flags(outline: Outline, kind: str, flags: Sequence[Sequence[str]], report: Report) -> None:
    """Report flags that the server lacks, and flags that would reach it twice under two spellings."""
    spellings = _Spellings(kind, flags)
    own: dict[int, dict[str, Scalar]] = {}
    server = table_at(outline.root, "server", "args")
    of_server = _flags_of(server, ("server", "args"), spellings, report)
    for draft in outline.drafts:
        args = table_at(draft.table, "args")
        own[draft.index] = _flags_of(args, (*draft.path, "args"), spellings, report)
    for draft in outline.drafts:
        inherited = [*[own[link.index] for link in outline.lineage(draft)][1:], of_server]
        for flag, key in own[draft.index].items():
            other = next((layer[flag] for layer in inherited if flag in layer), None)
            if other and other.text != key.text:
                message = f"{shown(key.text)} is another spelling of {shown(other.text)} from line {other.place.line}"
                hint = f"write {shown(other.text)} to replace that value; now both would reach the server"
                report.add(key.place, (*draft.path, "args", key.text), message, hint=hint)


def _flags_of(table: Table | None, path: Path, spellings: _Spellings, report: Report) -> dict[str, Scalar]:
    """The keys of one `args` by the flag that they mean."""
    seen: dict[str, Scalar] = {}
    for key in _keys(table):
        at = (*path, key.text)
        flag = spellings.flag_of(key.text)
        if key.text.startswith("-"):
            hint: str | None = f"write {shown(key.text.lstrip('-').partition('=')[0])}"
            report.add(key.place, at, f"flags are written without leading dashes, found {shown(key.text)}", hint=hint)
        elif flag is None:
            hint = _guess(key.text, spellings, report)
            report.add(key.place, at, f"{spellings.kind} has no flag {shown(key.text)}", hint=hint)
        elif flag in seen:
            first = seen[flag]
            message = f"{shown(key.text)} is another spelling of {shown(first.text)}, which is given already"
            report.add(key.place, at, message, hint="remove one of the two")
        else:
            seen[flag] = key
    return seen


def _keys(table: Table | None) -> Iterator[Scalar]:
    for key, _ in table.entries.values() if table else ():
        yield key


def _guess(word: str, spellings: _Spellings, report: Report) -> str | None:
    return report.guess(word.replace("_", "-"), spellings.usual)
