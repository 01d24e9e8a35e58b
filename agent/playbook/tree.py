"""YAML text to a tree whose every value knows where it stands.

Built from parse events, not with `yaml.compose`: an alias is refused before anything is expanded, nesting is bounded
without recursion, and every duplicate key is seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from agent.playbook.problems import Path, Place, Report, shown
from agent.playbook.syntax import explain

DEEPEST = 16
"""Levels of nesting; the format itself needs eight."""

MOST_PROBLEMS = 1000
"""After so many aliases, tags and the like nobody wants to know the rest."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text as written. `plain` is unquoted: only then can it mean a number, true, false or null."""

    place: Place
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    place: Place
    nodes: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping, each key once, in the order of the file."""

    place: Place
    entries: "dict[str, tuple[Scalar, Node]]"

    def get(self, key: str) -> "Node | None":
        """The value under `key`."""
        entry = self.entries.get(key)
        return entry[1] if entry else None


@dataclass(frozen=True, slots=True)
class Broken:
    """Where a value was refused already: what is said about it later would only be noise."""

    place: Place


Node = Scalar | Items | Table | Broken


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end is not reached yet."""

    place: Place
    path: Path
    table: bool
    nodes: list[Node] = field(default_factory=list)
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    key: Node | None = None

    def child_path(self) -> Path:
        if not self.table:
            return (*self.path, len(self.nodes))
        return (*self.path, self.key.text) if isinstance(self.key, Scalar) else self.path

    def add(self, node: Node, report: Report) -> None:
        if not self.table:
            self.nodes.append(node)
        elif self.key is None:
            self.key = node
        else:
            self._add_entry(self.key, node, report)
            self.key = None

    def _add_entry(self, key: Node, value: Node, report: Report) -> None:
        if isinstance(key, Items | Table):
            report.add(key.place, self.path, f"a key must be text, found {found(key)}")
        elif isinstance(key, Scalar) and key.plain and key.text == "<<":
            report.add(key.place, self.path, "merge keys ('<<') are not supported; write the keys out")
        elif isinstance(key, Scalar) and (first := self.entries.get(key.text)):
            message = f"duplicate key {shown(key.text)}, first on line {first[0].place.line}"
            report.add(key.place, (*self.path, key.text), message)
        elif isinstance(key, Scalar):
            self.entries[key.text] = (key, value)

    def closed(self) -> Node:
        return Table(self.place, self.entries) if self.table else Items(self.place, tuple(self.nodes))


def found(node: Node) -> str:
    """What a value is, for messages."""
    match node:
        case Table():
            return "a mapping"
        case Items():
            return "a list"
        case Scalar(text=text, plain=True):
            return "nothing" if text in NULLS else shown(text)
        case Scalar(text=text):
            return f"the text {shown(text)}"
        case Broken():
            return "what cannot be read"


NULLS = ("", "~", "null", "Null", "NULL")


def parse_tree(text: str, report: Report) -> Node | None:
    """The tree of a file with one document, or None where the problems reported leave nothing to look at."""
    loader = yaml.SafeLoader(text)
    try:
        return _build(_events(loader), report)
    except yaml.MarkedYAMLError as error:
        place, message, hint = explain(error)
        report.add(place, (), message, hint=hint)
    except (ValueError, OverflowError):
        # PyYAML lets out those of int() and chr(), for a code point or a version number that is too large.
        place = Place(loader.line + 1, loader.column + 1)
        report.add(place, (), "a number in an escape or a directive is too large")
    finally:
        loader.dispose()
    return None


def _events(loader: yaml.SafeLoader) -> Iterator[yaml.Event]:
    while loader.check_event():
        yield loader.get_event()  # type: ignore[no-untyped-call]


def _build(events: Iterator[yaml.Event], report: Report) -> Node | None:
    open_: list[_Open] = []
    root: Node | None = None
    for event in events:
        if report.count > MOST_PROBLEMS:
            return None
        place = _place(event)
        node: Node
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            report.add(place, (), "a second document begins here; a playbook is one document")
            return root
        if isinstance(event, yaml.NodeEvent):
            path = open_[-1].child_path() if open_ else ()
            _refuse_references(event, place, path, report)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(open_) == DEEPEST:
                report.add(place, path, f"nested more than {DEEPEST} levels deep")
                return None
            open_.append(_Open(place, path, isinstance(event, yaml.MappingStartEvent)))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            node = open_.pop().closed()
        elif isinstance(event, yaml.ScalarEvent):
            node = _scalar(event, place, path, report)
        elif isinstance(event, yaml.AliasEvent):
            node = Broken(place)
        else:
            continue
        if open_:
            open_[-1].add(node, report)
        else:
            root = node
    return root


def _scalar(event: yaml.ScalarEvent, place: Place, path: Path, report: Report) -> Node:
    text = event.value
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
        report.add(place, path, "this text holds a character that no program can be given (NUL or half a surrogate)")
        return Broken(place)
    return Scalar(place, text, not event.style)


def _refuse_references(event: yaml.NodeEvent, place: Place, path: Path, report: Report) -> None:
    if isinstance(event, yaml.AliasEvent):
        report.add(place, path, f"aliases ({shown(f'*{event.anchor}')}) are not supported; write the value out")
    elif event.anchor is not None:
        report.add(place, path, f"anchors ({shown(f'&{event.anchor}')}) are not supported; remove it")
    if tag := getattr(event, "tag", None):
        report.add(place, path, f"tags ({shown(tag)}) are not supported; quote what must be text")


def _place(event: yaml.Event) -> Place:
    start, end = event.start_mark, event.end_mark
    if start is None or end is None:
        return Place(1, 1)
    width = end.column - start.column if end.line == start.line else 0
    return Place(start.line + 1, start.column + 1, max(width, 1))
