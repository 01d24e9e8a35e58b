"""`targets.yaml`: names for machines, in the project's folder and in the user's, read as strictly as a playbook."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from agent.playbook.fields import Text, Whole
from agent.playbook.model import Strict
from agent.playbook.problems import Problem, Report
from agent.playbook.shape import build_model
from agent.playbook.tree import Table, found, parse_tree
from agent.playbook.units import Seconds
from agent.ports import TargetUnusable
from agent.text import one_line

_LARGEST = 64 * 1024
_RESERVED = ("local", "simulated")
_NETWORKS = (("--network", "host"), ("--net", "host"))
_NOT_OURS = {
    "--detach": "tunebot watches `docker run` in the foreground",
    "--restart": "a server that failed must stay down",
    "--pid": "the processes of the container could not be told from others",
    "--cidfile": "tunebot writes its own",
    "--tty": "there is no terminal",
}
_SHORT = re.compile(r"-[iqP]*([dt])[diqtP]*")
_LONG = {"d": "--detach", "t": "--tty"}
_SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class DockerEntry(Strict):
    """Servers run in containers: `run` is the argv up to the image (`[docker, run, --rm, ..., IMAGE]`).

    `stop_timeout` (seconds) takes the place of the time that a server of that kind gets between TERM and KILL.
    """

    run: tuple[Text, ...]
    stop_timeout: Seconds | None = None

    @field_validator("run")
    @classmethod
    def _can_be_watched(cls, run: tuple[str, ...]) -> tuple[str, ...]:
        if "exec" in run[:3]:
            raise ValueError("what `docker exec` starts cannot be found again or stopped; write `docker run` instead")
        if "run" not in run[1:-1] or "container" in run[:2]:
            raise ValueError("expected [docker, run, OPTIONS..., IMAGE]")
        options = run[run.index("run", 1) + 1 : -1]
        for option in options:
            short = _SHORT.fullmatch(option)
            name = _LONG[short[1]] if short else option.partition("=")[0]
            if name in _NOT_OURS:
                raise ValueError(f"{name} cannot be here: {_NOT_OURS[name]}")
        pairs = [tuple(option.split("=", 1)) for option in options] + list(pairwise(options))
        if not any(pair in _NETWORKS for pair in pairs):
            raise ValueError("--network host is needed: a server listens on a port of the machine's loopback")
        return run


class TargetEntry(Strict):
    """One machine.

    `env` and `path` (folders that go before PATH) are set for everything that runs there, and so is a `venv` or a
    `conda` environment (its name or its prefix). Servers run in `docker`, where that is given. `read` are folders that
    research may read beside those of the playbook.
    """

    kind: Literal["local", "ssh", "simulated"]
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]*$")
    world: Text | None = None
    workdir: Text | None = None
    gpus: Whole | None = Field(default=None, ge=0)
    env: Mapping[str, str] = {}
    path: tuple[Text, ...] = ()
    venv: Text | None = None
    conda: Text | None = None
    docker: DockerEntry | None = None
    read: tuple[Text, ...] = ()

    @property
    def trees(self) -> Mapping[str, str]:
        """The folders of `read` by the name of source that they get: the last part of each."""
        return {PurePosixPath(folder).name: folder for folder in self.read}

    @field_validator("venv")
    @classmethod
    def _is_whole(cls, folder: str | None) -> str | None:
        if folder is not None and not folder.startswith(("/", "~/")):
            raise ValueError("the path must begin with / or ~/")
        return folder

    @field_validator("read")
    @classmethod
    def _are_trees(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        for folder in folders:
            path = PurePosixPath(folder)
            if not folder.startswith(("/", "~/")) or ".." in path.parts or not _SOURCE_NAME.fullmatch(path.name):
                raise ValueError(f"{one_line(folder, 80)} is no folder such as ~/sglang or /opt/src")
        names = [PurePosixPath(folder).name for folder in folders]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two folders are called {one_line(twice[0], 80)}; research could not tell them apart")
        return folders

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "ssh" and self.host is None:
            raise ValueError("an ssh target needs 'host', a name of ~/.ssh/config or user@host")
        of_kind = {"host": "ssh", "gpus": "ssh", "world": "simulated"}
        for key, kind in of_kind.items():
            if getattr(self, key) is not None and self.kind != kind:
                raise ValueError(f"'{key}' belongs to 'kind: {kind}'")
        if self.kind == "simulated" and self.model_fields_set - {"kind", "world"}:
            raise ValueError("a simulated target has an environment of its own; it takes only 'world'")
        surroundings = [key for key in ("venv", "conda", "docker") if getattr(self, key) is not None]
        if len(surroundings) > 1:
            raise ValueError(f"'{surroundings[0]}' and '{surroundings[1]}' exclude each other")
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
