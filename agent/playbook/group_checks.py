"""Groups: their names, whom they name, and that no group waits for itself."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.playbook.outline import Draft, Outline, items_at, scalar_at, scalars_at
from agent.playbook.problems import Path, Report, shown
from agent.playbook.tree import Scalar, Table


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """One entry of `groups`, as it is written. `members` are the experiments that exist, each with its place."""

    index: int
    table: Table
    members: tuple[tuple[Path, Scalar, Draft], ...]

    @property
    def path(self) -> Path:
        """The path to the entry."""
        return ("groups", self.index)

    @property
    def id(self) -> Scalar | None:
        """Its id, where it has one."""
        return scalar_at(self.table, "id")

    @property
    def then(self) -> Scalar | None:
        """The id that `then` names."""
        return scalar_at(self.table, "then")


def groups_of(outline: Outline) -> list[GroupDraft]:
    """The groups of a file as far as they can be made out."""
    tables = [(n, item) for n, item in items_at(outline.root, "groups") if isinstance(item, Table)]
    return [GroupDraft(index, table, tuple(_members(index, table, outline))) for index, table in tables]


def _members(index: int, table: Table, outline: Outline) -> Iterator[tuple[Path, Scalar, Draft]]:
    for number, name in scalars_at(table, "members"):
        if draft := outline.by_id.get(name.text):
            yield ("groups", index, "members", number), name, draft


def check_groups(outline: Outline, groups: list[GroupDraft], report: Report) -> list[tuple[GroupDraft, GroupDraft]]:
    """Report what is wrong with groups; the pairs of a group and the one that comes after it, where that is sound."""
    by_id: dict[str, GroupDraft] = {}
    for group in groups:
        if group.id and group.id.text in by_id:
            first = by_id[group.id.text].id
            message = f"group {shown(group.id.text)} is defined twice, first on line {first.place.line if first else 0}"
            report.add(group.id.place, (*group.path, "id"), message)
        elif group.id:
            by_id[group.id.text] = group
        _check_unknown(group, outline, report)
    _check_members(groups, outline, report)
    return list(_successors(by_id, report))


def _check_unknown(group: GroupDraft, outline: Outline, report: Report) -> None:
    for number, name in scalars_at(group.table, "members"):
        if name.text not in outline.by_id:
            path = (*group.path, "members", number)
            hint = report.guess(name.text, outline.by_id)
            report.add(name.place, path, f"members: there is no experiment {shown(name.text)}", hint=hint)


def _check_members(groups: list[GroupDraft], outline: Outline, report: Report) -> None:
    taken: dict[str, Scalar] = {}
    for group in groups:
        for path, name, draft in group.members:
            if draft is outline.baseline:
                report.add(name.place, path, "members: the baseline is what all strategies are compared with")
            elif name.text in taken:
                message = f"members: {shown(name.text)} is a member already, on line {taken[name.text].place.line}"
                report.add(name.place, path, message, hint="an experiment belongs to one group")
            taken.setdefault(name.text, name)


def _successors(by_id: dict[str, GroupDraft], report: Report) -> Iterator[tuple[GroupDraft, GroupDraft]]:
    before: dict[str, GroupDraft] = {}
    for group in by_id.values():
        then, path = group.then, (*group.path, "then")
        if then is None or group.id is None:
            continue
        if then.text not in by_id:
            others = [name for name in by_id if name != group.id.text]
            report.add(
                then.place, path, f"then: there is no group {shown(then.text)}", hint=report.guess(then.text, others)
            )
        elif first := before.get(then.text):
            message = f"then: {shown(then.text)} comes after {shown(first.id.text if first.id else '')} already"
            report.add(then.place, path, message, hint="put both into one group, or chain them one after the other")
        elif circle := _circle(group, by_id):
            report.add(then.place, path, f"then goes in a circle: {' -> '.join(circle)}")
            before[then.text] = group
        else:
            before[then.text] = group
            yield group, by_id[then.text]


def _circle(group: GroupDraft, by_id: dict[str, GroupDraft]) -> list[str]:
    """The ids from a group back to itself, told for the group of the circle that stands first in the file."""
    trail = [group]
    while (then := trail[-1].then) and (next_ := by_id.get(then.text)):
        if next_ is group:
            first = min(trail, key=lambda one: one.index)
            return [shown(one.id.text)[1:-1] for one in [*trail, group] if one.id] if first is group else []
        if next_ in trail:
            return []
        trail.append(next_)
    return []
