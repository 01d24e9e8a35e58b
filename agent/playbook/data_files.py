"""The files of prompts that a playbook names: looked at when it is loaded, known by their bytes from then on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.playbook.model import Playbook
from agent.playbook.outline import items_at, scalar_at, table_at
from agent.playbook.problems import Report
from agent.playbook.tree import Table
from agent.playbook.workload import DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file of prompts that can be used: its absolute path, and the SHA-256 of its bytes in hexadecimal digits."""

    path: str
    sha256: str


LookAt = Callable[[str], FoundFile]
"""Reads the file that a playbook names. Raises ValueError with what is wrong, and where in it."""


def check_data_files(root: Table, report: Report, look_at: LookAt) -> dict[int, FoundFile]:
    """The file of each workload that names one, by the workload's index; what is wrong with one is reported."""
    found: dict[int, FoundFile] = {}
    for index, item in items_at(root, "workloads"):
        data = table_at(item, "data") if isinstance(item, Table) else None
        name = scalar_at(data, "file") if data else None
        if data is None or name is None or not name.text:
            continue
        pinned = scalar_at(data, "sha256")
        try:
            found[index] = look_at(name.text)
        except ValueError as error:
            report.add(name.place, ("workloads", index, "data", "file"), str(error))
            continue
        if pinned and pinned.text not in ("", found[index].sha256):
            message = f"the file has other bytes: its SHA-256 is {found[index].sha256}"
            report.add(pinned.place, ("workloads", index, "data", "sha256"), message)
    return found


def with_data_files(playbook: Playbook, found: Mapping[int, FoundFile]) -> Playbook:
    """The playbook with absolute paths and digests in its workloads."""
    workloads = tuple(
        workload.model_copy(update={"data": DataFile(file=found[index].path, sha256=found[index].sha256)})
        if index in found
        else workload
        for index, workload in enumerate(playbook.workloads)
    )
    return playbook.model_copy(update={"workloads": workloads})
