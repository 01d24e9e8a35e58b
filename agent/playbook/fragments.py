"""Fragments: parts of an experiment that ship, laid under it by `use` before anything else looks at the file.

A fragment is YAML too: `with` are its parameters (null: one that must be given), `let` short names for its own use, and
`experiment` what it gives, in which `{{name}}` is filled in. What it gives stands where `use` stands, for messages.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from agent.playbook.outline import items_at, table_at
from agent.playbook.problems import Path, Place, Report, shown
from agent.playbook.tree import Items, Node, Scalar, Table, parse_tree
from agent.playbook.values import resolve

Fragments = Mapping[str, str]
"""The text of each fragment, by its name."""

_NAME = re.compile(r"\{\{([a-z]+)\}\}")
_WORD = re.compile(r"[\w@%+=:,./~-]+")
"""Names, versions and paths: nothing that means more than itself, to a shell or to a person."""


def with_fragments(root: Table, report: Report, fragments: Fragments) -> Table:
    """The tree with every `use` carried out. A fragment's lists come before the experiment's own, values below them."""
    drafts = [
        _expanded(node, ("experiments", index), report, fragments) if isinstance(node, Table) else node
        for index, node in items_at(root, "experiments")
    ]
    if not drafts:
        return root
    key, items = root.entries["experiments"]
    return replace(root, entries={**root.entries, "experiments": (key, Items(items.place, tuple(drafts)))})


def _expanded(draft: Table, path: Path, report: Report, fragments: Fragments) -> Table:
    name, given = draft.get("use"), draft.get("with")
    if name is None:
        if given is not None:
            report.add(draft.entries["with"][0].place, (*path, "with"), "with: there is no 'use' that it could be for")
        return draft
    if not isinstance(name, Scalar) or not isinstance(given, Table | None):
        return draft  # its shape is wrong, which is said where shapes are looked at
    own = replace(draft, entries={key: entry for key, entry in draft.entries.items() if key not in ("use", "with")})
    if name.text not in fragments:
        hint = report.guess(name.text, fragments) or "the ones that ship can be used in the file of a playbook only"
        report.add(name.place, (*path, "use"), f"use: there is no fragment {shown(name.text)}", hint=hint)
        return own
    words = Report(name.text, fragments[name.text])
    fragment = parse_tree(fragments[name.text], words)
    experiment = table_at(fragment, "experiment") if isinstance(fragment, Table) else None
    if experiment is None or not isinstance(fragment, Table):
        report.add(name.place, (*path, "use"), f"use: the fragment {shown(name.text)} cannot be read")
        return own
    values = _values(fragment, given or Table(name.place, {}), name, path, report)
    return _laid_under(experiment, own, values, name.place) if values is not None else own


def _values(fragment: Table, given: Table, name: Scalar, path: Path, report: Report) -> Mapping[str, str] | None:
    """What each name stands for; None where a parameter is wrong, which is reported."""
    before = report.count
    wanted = table_at(fragment, "with") or Table(name.place, {})
    for key, (word, _) in given.entries.items():
        if key not in wanted.entries:
            hint = report.guess(key, wanted.entries)
            report.add(word.place, (*path, "with", key), f"with: {name.text} has no parameter {shown(key)}", hint=hint)
    values: dict[str, str] = {}
    for key, (_, default) in wanted.entries.items():
        value = given.get(key) or default
        if isinstance(value, Scalar) and resolve(value) is None:
            report.add(name.place, (*path, "with"), f"with: {name.text} needs to be told {shown(key)}")
        elif not isinstance(value, Scalar) or (value is not default and not _WORD.fullmatch(value.text)):
            message = f"with: {key} must be one word, without spaces, quotes and the like"
            report.add(value.place, (*path, "with", key), message)
        else:
            values[key] = _fill(value.text, values)
    short = table_at(fragment, "let")
    for key, (_, value) in short.entries.items() if short else ():
        if isinstance(value, Scalar):
            values[key] = _fill(value.text, values)
    return values if report.count == before else None


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: values.get(match[1], match[0]), text)


def _laid_under(below: Table, above: Table, values: Mapping[str, str], place: Place) -> Table:
    """Both in one; `below` with its names filled in, as if all of it stood at `place`."""
    entries = {
        key: (replace(word, place=place), _filled(value, values, place)) for key, (word, value) in below.entries.items()
    }
    for key, (word, value) in above.entries.items():
        under = below.get(key)
        if isinstance(under, Table) and isinstance(value, Table):
            value = _laid_under(under, value, values, place)
        elif isinstance(under, Items) and isinstance(value, Items):
            value = Items(value.place, (*(_filled(item, values, place) for item in under.nodes), *value.nodes))
        entries[key] = (word, value)
    return replace(above, entries=entries)


def _filled(node: Node, values: Mapping[str, str], place: Place) -> Node:
    match node:
        case Scalar():
            return replace(node, text=_fill(node.text, values), place=place)
        case Items():
            return Items(place, tuple(_filled(item, values, place) for item in node.nodes))
        case Table():
            return _laid_under(node, Table(place, {}), values, place)
    return node
