"""Whether every smoke load that a playbook asks for can be launched."""

from typing import get_args

from agent.playbook.model import Server
from agent.playbook.outline import Outline, scalar_at, table_at
from agent.playbook.problems import Path, Report
from agent.playbook.smoke import DUMMY, NOT_WITH_DUMMY
from agent.playbook.tree import Table
from agent.playbook.values import resolve

_WITHOUT = frozenset(get_args(Server.model_fields["kind"].annotation)) - NOT_WITH_DUMMY.keys()


def check_smoke(outline: Outline, report: Report) -> None:
    """Report every `smoke: dummy` for which nothing could be launched."""
    server = table_at(outline.root, "server")
    kind = scalar_at(server, "kind") if server else None
    places: list[tuple[Table, Path]] = [(outline.root, ()), *((draft.table, draft.path) for draft in outline.drafts)]
    for table, path in places:
        asked = scalar_at(table, "smoke")
        baseline = scalar_at(table, "baseline")
        message = ""
        if kind and kind.text in _WITHOUT:
            message = f"smoke: {kind.text} cannot load dummy weights, as {' and '.join(NOT_WITH_DUMMY)} can"
        elif baseline and resolve(baseline) == "attach":
            message = "smoke: a server that runs already is not loaded"
        if asked and asked.text == DUMMY and message:
            report.add(asked.place, (*path, "smoke"), message, hint="leave it out")
