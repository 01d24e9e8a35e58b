"""Terms of the cost model, and what experiments say that they remove of them."""

import re
from collections.abc import Iterator, Mapping

from agent.playbook.outline import Draft, Outline, scalar_at, table_at
from agent.playbook.problems import Path, Report, shown
from agent.playbook.tree import Scalar, Table
from agent.playbook.values import resolve

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OF_MEASURING = ("bytes", "bytes_verify", "per_layer", "run")


def check_terms(outline: Outline, report: Report) -> None:
    """Report terms that cannot be measured as they say, and more calls removed than there are."""
    terms = table_at(outline.root, "terms")
    counts: dict[str, int | None] = {}
    for name, (key, term) in terms.entries.items() if terms else ():
        counts[name] = _count(term, "count") if isinstance(term, Table) else None
        path: Path = ("terms", name)
        if not _NAME.fullmatch(name):
            hint = "use up to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit"
            report.add(key.place, path, f"{shown(name)} cannot be a name here", hint=hint)
        if isinstance(term, Table):
            _check_measuring(term, path, outline, report)
    for draft in outline.drafts:
        for key, path in _removed(draft):
            _check_removed(draft, key, path, outline, counts, report)


def _check_measuring(term: Table, path: Path, outline: Outline, report: Report) -> None:
    tool = scalar_at(term, "measured_by")
    for name in _OF_MEASURING if tool is None else ():
        if name in term.entries:
            message = f"{name} has no effect without measured_by"
            report.add(term.entries[name][0].place, (*path, name), message, hint="write 'measured_by: nccl-allreduce'")
    if tool is None:
        return
    where = (*path, "measured_by")
    if "bytes" not in term.entries:
        hint = "write for example 'bytes: 14336', a row of 7168 values of two bytes"
        report.add(tool.place, where, "measured_by needs to know the message of a call", hint=hint)
    baseline = outline.baseline
    if baseline and baseline.baseline and baseline.baseline.text == "attach":
        hint = "leave measured_by out; what is believed is used"
        report.add(tool.place, where, "the server that is attached to holds the GPUs: nothing is measured", hint=hint)


def _removed(draft: Draft) -> Iterator[tuple[Scalar, Path]]:
    removes = table_at(draft.table, "removes")
    for name, (key, _) in removes.entries.items() if removes else ():
        yield key, (*draft.path, "removes", name)


def _check_removed(
    draft: Draft, key: Scalar, path: Path, outline: Outline, counts: Mapping[str, int | None], report: Report
) -> None:
    name = key.text
    if draft is outline.baseline:
        hint = "say in count what the baseline has"
        report.add(key.place, path, "the baseline removes nothing: steps are measured on it", hint=hint)
    elif name not in counts:
        report.add(key.place, path, f"removes: there is no term {shown(name)}", hint=report.guess(name, counts))
    elif (count := counts[name]) is not None and (removed := _taken(draft, name)):
        before = sum(_taken(link, name) for link in list(outline.lineage(draft))[1:])
        if removed > max(0, count - before):
            left = f", of which {before} are removed by what it is based on" if before else ""
            report.add(key.place, path, f"removes: {name} has {count} calls{left}; {removed} cannot go")


def _taken(draft: Draft, name: str) -> int:
    removes = table_at(draft.table, "removes")
    return (_count(removes, name) or 0) if removes else 0


def _count(table: Table, key: str) -> int | None:
    """The whole number under a key; None for what is none."""
    value = scalar_at(table, key)
    number = resolve(value) if value else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None
