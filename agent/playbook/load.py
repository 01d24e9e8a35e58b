"""The way in: the bytes of a playbook file to a Playbook, or to all of its problems at once."""

from collections.abc import Mapping, Sequence

from yaml.reader import Reader

from agent.playbook.checks import check
from agent.playbook.data_files import LookAt, check_data_files, with_data_files
from agent.playbook.fragments import Fragments, with_fragments
from agent.playbook.model import Playbook
from agent.playbook.problems import Place, Problem, Report
from agent.playbook.resolve import with_default_parents
from agent.playbook.shape import build_model
from agent.playbook.tree import Node, Table, found, parse_tree

LARGEST = 256 * 1024
"""Bytes of a playbook file. A long one has 20 KiB."""

KnownFlags = Mapping[str, Sequence[Sequence[str]]]
"""For each kind of server its flags: every inner sequence holds the spellings of one flag, the usual one first."""


def load_playbook(
    data: bytes,
    file: str,
    known_flags: KnownFlags,
    look_at: LookAt | None = None,
    fragments: Fragments | None = None,
) -> Playbook | list[Problem]:
    """The playbook, in which every experiment but the baseline has a `based_on`; or its problems in file order.

    Never raises. `file` is the name to print. A kind of server that `known_flags` lacks has its flags not checked;
    without `look_at` files of prompts are not looked at. `fragments` are those that an experiment may use.
    """
    text = _decoded(data, file)
    if isinstance(text, Problem):
        return [text]
    report = Report(file, text)
    root = parse_tree(text, report) if _is_readable(text, report) else None
    if isinstance(root, Table):
        root = with_fragments(root, report, fragments or {})
    playbook = _build(root, report, known_flags, look_at) if root else None
    problems = report.sorted()
    if problems or playbook is None:
        return problems
    return with_default_parents(playbook)


def _build(root: Node, report: Report, known_flags: KnownFlags, look_at: LookAt | None) -> Playbook | None:
    if not isinstance(root, Table):
        report.add(root.place, (), f"a playbook is a mapping that begins with 'tunebot: 1', found {found(root)}")
        return None
    playbook = build_model(root, report, Playbook)
    check(root, report, known_flags)
    files = check_data_files(root, report, look_at) if look_at else {}
    return with_data_files(playbook, files) if playbook else None


def _decoded(data: bytes, file: str) -> str | Problem:
    if len(data) > LARGEST:
        message = f"the file has {len(data):,} bytes; a playbook has at most {LARGEST:,}"
        report = Report(file, "")
        report.add(Place(1, 1), (), message)
        return report.sorted()[0]
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        report = Report(file, "")
        column = len(before) - before.rfind("\n")
        message = f"not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        report.add(Place(before.count("\n") + 1, column), (), message)
        return report.sorted()[0]


def _is_readable(text: str, report: Report) -> bool:
    if bad := Reader.NON_PRINTABLE.search(text):
        before = text[: bad.start()]
        place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        report.add(place, (), f"YAML does not allow the character U+{ord(bad[0]):04X}")
        return False
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.splitlines()):
        report.add(Place(1, 1), (), "the file is empty", hint="a playbook begins with 'tunebot: 1'")
        return False
    return True
