"""Names that refer to others: ids, workloads, parents, and what waits for what."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.playbook.group_checks import GroupDraft, check_groups, groups_of
from agent.playbook.outline import Draft, Outline, items_at, scalar_at, scalars_at, table_at
from agent.playbook.problems import Path, Report, shown
from agent.playbook.tree import Scalar, Table

LONGEST_ID = 64
_MOST_CYCLES = 50


@dataclass(frozen=True, slots=True)
class _Reference:
    """A place where one experiment names another."""

    how: str
    by: Draft
    to: Scalar
    path: Path


def check_references(outline: Outline, report: Report) -> None:
    """Report every name that is defined twice or nowhere, and every experiment that could never run."""
    _check_ids(outline, report)
    _check_baseline(outline, report)
    _check_workloads(outline, report)
    waits = []
    for draft in outline.drafts:
        for reference in _references(draft):
            if _is_sound(reference, outline, report) and reference.how != "revisit":
                waits.append(reference)
    for before, after in check_groups(outline, groups_of(outline), report):
        waits += _after(before, after)
    _check_cycles(waits, report)


def _check_ids(outline: Outline, report: Report) -> None:
    for draft in outline.drafts:
        if not draft.id:
            continue
        first = outline.by_id[draft.name]
        if first is not draft and first.id:
            message = f"experiment {shown(draft.name)} is defined twice, first on line {first.id.place.line}"
            report.add(draft.id.place, (*draft.path, "id"), message)
        if "@" in draft.name or len(draft.name) > LONGEST_ID:
            hint = f"names have at most {LONGEST_ID} characters; '@' is kept for the names of retries"
            report.add(draft.id.place, (*draft.path, "id"), f"id: {shown(draft.name)} cannot be a name here", hint=hint)


def _check_baseline(outline: Outline, report: Report) -> None:
    experiments = outline.root.entries.get("experiments")
    first = outline.baseline
    if first is None:
        if outline.drafts and experiments:
            hint = "write 'baseline: true' in the one that all others are compared with"
            report.add(experiments[0].place, ("experiments",), "no experiment is the baseline", hint=hint)
        return
    for draft in outline.drafts:
        if draft is not first and draft.baseline and first.baseline:
            message = f"a second baseline; the first is on line {first.baseline.place.line}"
            report.add(draft.table.entries["baseline"][0].place, (*draft.path, "baseline"), message)
    if first.based_on:
        message = "the baseline cannot be based on another experiment"
        report.add(first.table.entries["based_on"][0].place, (*first.path, "based_on"), message)
    if table_at(first.table, "when"):
        message = "the baseline runs first; it cannot wait for another experiment"
        report.add(first.table.entries["when"][0].place, (*first.path, "when"), message)
    _check_attached(first, outline, report)


def _check_attached(first: Draft, outline: Outline, report: Report) -> None:
    if not first.baseline or first.baseline.text != "attach":
        return
    servers = (table_at(outline.root, "server", "args"), table_at(first.table, "args"))
    if not any(args and scalar_at(args, "port") for args in servers):
        message = "baseline: attach needs to know where the server listens"
        report.add(
            first.baseline.place, (*first.path, "baseline"), message, hint="give its port under args: {port: 30000}"
        )


def _check_workloads(outline: Outline, report: Report) -> None:
    names: dict[str, int] = {}
    for index, item in items_at(outline.root, "workloads"):
        name = scalar_at(item, "name") if isinstance(item, Table) else None
        if name and name.text in names:
            message = f"workload {shown(name.text)} is defined twice, first on line {names[name.text]}"
            report.add(name.place, ("workloads", index, "name"), message)
        elif name:
            names[name.text] = name.place.line
    objective = table_at(outline.root, "objective")
    wanted = scalar_at(objective, "workload") if objective else None
    if wanted and names and wanted.text not in names:
        message = f"objective: there is no workload {shown(wanted.text)}"
        report.add(wanted.place, ("objective", "workload"), message, hint=report.guess(wanted.text, names))


def _references(draft: Draft) -> Iterator[_Reference]:
    if draft.based_on:
        yield _Reference("based_on", draft, draft.based_on, (*draft.path, "based_on"))
    when = table_at(draft.table, "when")
    for key in ("all", "any"):
        for index, name in scalars_at(when, key) if when else ():
            yield _Reference("when", draft, name, (*draft.path, "when", key, index))
    for index, name in scalars_at(draft.table, "revisit"):
        yield _Reference("revisit", draft, name, (*draft.path, "revisit", index))


def _after(before: GroupDraft, after: GroupDraft) -> Iterator[_Reference]:
    """Every member of a group waits for all members of the one before it."""
    for _, _, waiting in after.members:
        for path, name, member in before.members:
            if member is not waiting:
                yield _Reference("then", waiting, name, path)


def _is_sound(reference: _Reference, outline: Outline, report: Report) -> bool:
    """Whether the name is that of another experiment."""
    name, by = reference.to.text, reference.by
    if name not in outline.by_id:
        message = f"{reference.how}: there is no experiment {shown(name)}"
        others = [other for other in outline.by_id if other != by.name]
        report.add(reference.to.place, reference.path, message, hint=report.guess(name, others))
    elif name == by.name:
        what = {"based_on": "is based on", "when": "waits for", "revisit": "revisits"}[reference.how]
        report.add(reference.to.place, reference.path, f"{reference.how}: {shown(name)} {what} itself")
    elif reference.how == "revisit" and outline.by_id[name] is outline.baseline:
        report.add(reference.to.place, reference.path, "revisit: the baseline is never retried")
    else:
        return True
    return False


def _check_cycles(references: list[_Reference], report: Report) -> None:
    """Depth first through who needs whom; a step back onto the trail closes a circle."""
    edges: dict[str, list[_Reference]] = {}
    for reference in references:
        edges.setdefault(reference.by.name, []).append(reference)
    done: set[str] = set()
    told = 0
    for start in edges:
        trail: list[_Reference] = []
        depth = {start: 0}
        todo = [iter(edges[start])]
        while todo and start not in done and told < _MOST_CYCLES:
            step = next(todo[-1], None)
            if step is None:
                todo.pop()
                name = trail.pop().to.text if trail else start
                del depth[name]
                done.add(name)
            elif step.to.text in depth:
                _report_cycle([*trail[depth[step.to.text] :], step], report)
                told += 1
            elif step.to.text not in done:
                trail.append(step)
                depth[step.to.text] = len(trail)
                todo.append(iter(edges.get(step.to.text, ())))


def _report_cycle(cycle: list[_Reference], report: Report) -> None:
    # Told from the reference that stands first in the file.
    first = min(range(len(cycle)), key=lambda index: (cycle[index].to.place.line, cycle[index].to.place.column))
    cycle = cycle[first:] + cycle[:first]
    kinds = {link.how for link in cycle}
    if len(kinds) == 1:
        names = " -> ".join(shown(link.by.name)[1:-1] for link in [*cycle, cycle[0]])
        message = f"{kinds.pop()} goes in a circle: {names}"
    else:
        verbs = {"based_on": "is based on", "when": "waits for", "then": "is tried after"}
        steps = [f"{shown(link.by.name)} {verbs[link.how]} {shown(link.to.text)}" for link in cycle]
        message = f"these can never run: {', '.join(steps)}"
    report.add(cycle[0].to.place, cycle[0].path, message)
