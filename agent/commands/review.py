"""Commands that look at sessions which are over."""

import argparse
from pathlib import Path

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command
from agent.commands.completing import complete, files, sessions


def _report(parser: argparse.ArgumentParser) -> None:
    session = parser.add_argument(
        "session", nargs="?", type=Path, metavar="SESSION", help="a session's folder, or its name"
    )
    complete(session, sessions)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--format", choices=("markdown", "html", "json"), help="default: by the name of FILE, or markdown")
    how.add_argument("--json", action="store_const", dest="format", const="json", help="the same as --format json")
    output = parser.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of to stdout")
    complete(output, files())


REPORT = Command(
    name="report",
    help="a session written out, for others or for machines",
    about="Write out a session: board, best launch command, verdicts with their evidence, dead ends, timeline,\n"
    "ledger. It works on a session that runs, and on one that was cut off.",
    handler=verbs.report,
    options=_report,
    examples=(
        ("tunebot report", "the newest session as Markdown"),
        ("tunebot report logs/sample --output report.html", "one page for colleagues: prints well, needs no network"),
        ("tunebot report 20261130-101500-my-1a2b --json", "for machines: every number with its unit (docs/report.md)"),
    ),
    exits=(("0", "written"), ("2", "no such session, not one, or of a newer version")),
    files=shared.SESSION_FILES,
    settles=("logs",),
)
