"""`targets.yaml`: names for machines, in the project's folder and in the user's, read as strictly as a playbook."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from agent.playbook.fields import Text, Whole
from agent.playbook.model import Strict
from agent.playbook.problems import Problem, Report
from agent.playbook.shape import build_model
from agent.playbook.tree import Table, found, parse_tree
from agent.ports import TargetUnusable
from agent.text import one_line

_LARGEST = 64 * 1024
_RESERVED = ("local", "simulated")


class TargetEntry(Strict):
    """One machine. `env` and `path` (folders that go before PATH) are set for everything that runs there."""

    kind: Literal["local", "ssh", "simulated"]
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]*$")
    world: Text | None = None
    workdir: Text | None = None
    gpus: Whole | None = Field(default=None, ge=0)
    env: Mapping[str, str] = {}
    path: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "ssh" and self.host is None:
            raise ValueError("an ssh target needs 'host', a name of ~/.ssh/config or user@host")
        of_kind = {"host": "ssh", "gpus": "ssh", "world": "simulated"}
        for key, kind in of_kind.items():
            if getattr(self, key) is not None and self.kind != kind:
                raise ValueError(f"'{key}' belongs to 'kind: {kind}'")
        if self.kind == "simulated" and (self.workdir or self.env or self.path):
            raise ValueError("a simulated target has an environment of its own; it takes only 'world'")
        return self


class _File(Strict):
    targets: Mapping[str, TargetEntry]


def load_targets(data: bytes, file: str) -> Mapping[str, TargetEntry] | list[Problem]:
    """The machines of a file by name, or all problems of it. Never raises."""
    text = data[: _LARGEST + 1].decode("utf-8", "replace")
    report = Report(file, text)
    root = parse_tree(text, report)
    if root is None:
        return report.sorted() or {}
    if not isinstance(root, Table):
        report.add(root.place, (), f"the file is a mapping of names to targets, found {found(root)}")
        return report.sorted()
    if not root.entries:
        return report.sorted() or {}
    for name, (key, _) in root.entries.items():
        if name in _RESERVED or ":" in name:
            report.add(key.place, (name,), f"'{one_line(name, 80)}' means something already; choose another name")
    whole = Table(root.place, {"targets": (next(iter(root.entries.values()))[0], root)})
    model = build_model(whole, report, _File)
    problems = report.sorted()
    return problems if problems or model is None else model.targets


def find_target(name: str, files: Sequence[Path]) -> TargetEntry | None:
    """The target of that name in the first file that has it. Raises TargetUnusable for a file that is no good."""
    for path in files:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TargetUnusable(f"cannot read {path}: {error.strerror}") from error
        entries = load_targets(data, str(path))
        if isinstance(entries, list):
            raise TargetUnusable("\n".join(["targets.yaml has problems:", *map(str, entries)]), "correct the file")
        if name in entries:
            return entries[name]
    return None
