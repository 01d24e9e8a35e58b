"""What the types cannot say: references, flags, sources. Each check looks at the tree, so that none hides another."""

import re
from collections.abc import Iterator, Mapping, Sequence

from agent.playbook.flags import check_flags
from agent.playbook.model import MOST_EXPERIMENTS
from agent.playbook.outline import Draft, Outline, items_at, scalar_at, table_at
from agent.playbook.problems import Path, Report, shown
from agent.playbook.references import check_references
from agent.playbook.smoke_checks import check_smoke
from agent.playbook.term_checks import check_terms
from agent.playbook.tree import Items, Node, Scalar, Table
from agent.playbook.values import resolve
from agent.playbook.workload_checks import check_workloads

HOST_FACTS = ("gpu.sm_major", "gpu.sm_minor", "gpu.sm", "gpu.name", "gpu.count")
"""What a preflight check may have filled in between braces."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)+)\}")


def check(root: Table, report: Report, known_flags: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """Report everything about a playbook file that its shape alone does not show."""
    outline = Outline(root)
    if len(outline.drafts) > MOST_EXPERIMENTS:
        return  # the shape says so; what follows takes time in the square of their number
    check_references(outline, report)
    check_terms(outline, report)
    check_smoke(outline, report)
    server = table_at(root, "server")
    kind = scalar_at(server, "kind") if server else None
    if kind and kind.text in known_flags:
        check_flags(outline, kind.text, known_flags[kind.text], report)
    for draft in outline.drafts:
        _check_sources(outline, draft, report)
        _check_placeholders(draft, report)
    check_workloads(root, report)


def _check_sources(outline: Outline, draft: Draft, report: Report) -> None:
    names = _source_names(outline, draft)
    for path, place in _places_in_source(draft):
        name, colon, file = place.text.partition(":")
        message = hint = None
        if not colon or not name:
            message = f"in: expected NAME:path with a name from server.source, found {shown(place.text)}"
        elif name not in names:
            message = f"in: server.source has no {shown(name)}"
            hint = report.guess(name, names) or "declare it under server.source"
        elif file.startswith(("/", "~")) or ".." in file.split("/"):
            message = f"in: {shown(place.text)} leads out of its source tree"
        if message:
            report.add(place.place, path, message, hint=hint)


def _source_names(outline: Outline, draft: Draft) -> list[str]:
    tables = [table_at(outline.root, "server", "source")]
    tables += [table_at(link.table, "server", "source") for link in outline.lineage(draft)]
    return list(dict.fromkeys(name for table in tables if table for name in table.entries))


def _places_in_source(draft: Draft) -> Iterator[tuple[Path, Scalar]]:
    for path, entry in _entries(draft):
        for kind, (_, task) in entry.entries.items():
            where = task.get("in") if isinstance(task, Table) else None
            nodes: Sequence[Node] = where.nodes if isinstance(where, Items) else (where,) if where else ()
            for index, node in enumerate(nodes):
                if isinstance(node, Scalar) and resolve(node) is not None:
                    yield (*path, kind, "in", *((index,) if isinstance(where, Items) else ())), node


def _check_placeholders(draft: Draft, report: Report) -> None:
    for path, entry in _entries(draft):
        for kind, part in (("table-has-key", "key"), ("list-contains", "item")):
            check_ = table_at(entry, kind)
            text = scalar_at(check_, part) if check_ else None
            for name in _PLACEHOLDER.findall(text.text) if text else ():
                if text and name not in HOST_FACTS:
                    message = f"{part}: {shown('{' + name + '}')} is not a fact of a host"
                    report.add(text.place, (*path, kind, part), message, hint=report.guess(name, HOST_FACTS))


def _entries(draft: Draft) -> Iterator[tuple[Path, Table]]:
    for key in ("preflight", "research"):
        for index, entry in items_at(draft.table, key):
            if isinstance(entry, Table):
                yield (*draft.path, key, index), entry
