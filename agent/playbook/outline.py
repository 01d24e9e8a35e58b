"""The experiments of a file as far as they can be made out, so that references are checked beside other mistakes."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.playbook.problems import Path
from agent.playbook.tree import Items, Node, Scalar, Table
from agent.playbook.values import resolve


@dataclass(frozen=True, slots=True)
class Draft:
    """One entry of `experiments`."""

    index: int
    table: Table

    @property
    def path(self) -> Path:
        """The path to the entry."""
        return ("experiments", self.index)

    @property
    def id(self) -> Scalar | None:
        """Its id, where it has one."""
        return scalar_at(self.table, "id")

    @property
    def name(self) -> str:
        """Its id, or nothing."""
        return self.id.text if self.id else ""

    @property
    def baseline(self) -> Scalar | None:
        """The `true` of `baseline: true`, or what somebody wrote for it."""
        value = scalar_at(self.table, "baseline")
        return value if value and resolve(value) is not False else None

    @property
    def based_on(self) -> Scalar | None:
        """The id that `based_on` names."""
        return scalar_at(self.table, "based_on")


class Outline:
    """Every experiment of a file, by place and by id."""

    def __init__(self, root: Table) -> None:
        self.root = root
        self.drafts = [Draft(index, item) for index, item in items_at(root, "experiments") if isinstance(item, Table)]
        self.by_id: dict[str, Draft] = {}
        for draft in self.drafts:
            if draft.id:
                self.by_id.setdefault(draft.id.text, draft)
        self.baseline = next((draft for draft in self.drafts if draft.baseline), None)

    def lineage(self, draft: Draft) -> Iterator[Draft]:
        """The experiment and its ancestors, youngest first; it ends where a reference is wrong or goes in a circle."""
        seen: set[int] = set()
        next_: Draft | None = draft
        while next_ and next_.index not in seen:
            seen.add(next_.index)
            yield next_
            default = None if next_.baseline else self.baseline
            next_ = self.by_id.get(next_.based_on.text) if next_.based_on else default


def table_at(table: Table, *keys: str) -> Table | None:
    """The mapping under a chain of keys, or None."""
    for key in keys:
        value = table.get(key)
        if not isinstance(value, Table):
            return None
        table = value
    return table


def scalar_at(table: Table, key: str) -> Scalar | None:
    """The scalar under a key; None where there is none or where it is null."""
    value = table.get(key)
    return value if isinstance(value, Scalar) and resolve(value) is not None else None


def items_at(table: Table, key: str) -> list[tuple[int, Node]]:
    """The elements of the list under a key, numbered."""
    value = table.get(key)
    return list(enumerate(value.nodes)) if isinstance(value, Items) else []


def scalars_at(table: Table, key: str) -> list[tuple[int, Scalar]]:
    """The scalars in the list under a key, numbered."""
    return [(index, item) for index, item in items_at(table, key) if isinstance(item, Scalar)]
