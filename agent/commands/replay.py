"""The command that reviews a recorded session."""

import argparse
from pathlib import Path

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command
from agent.commands.completing import complete, nothing, sessions


def _options(parser: argparse.ArgumentParser) -> None:
    session = parser.add_argument("session", type=Path, metavar="SESSION", help="a session's folder, or its name")
    complete(session, sessions)
    what = parser.add_mutually_exclusive_group()
    at = what.add_argument("--at", metavar="TIME", help="open there; without a screen, the board as it stood then")
    complete(at, nothing)
    what.add_argument("--verify", action="store_true", help="make its decisions again, and compare them")
    follow = parser.add_argument("--follow", metavar="ID", help="only what became of this experiment")
    complete(follow, nothing)
    parser.add_argument("--headless", action="store_true", help="print the lines that the session printed")
    shared.add_form(parser)


REPLAY = Command(
    name="replay",
    help="review a recorded session",
    about="Review a recorded session: any moment of it, forwards and backwards. Nothing is decided or done anew.",
    handler=verbs.replay,
    options=_options,
    examples=(
        ("tunebot replay logs/sample", "on the screen: space plays, arrows step, [ ] go by decisions"),
        ("tunebot replay logs/sample --at 14:32", "there, paused; also 14:32:10, +1:10:00 from its start, 50%"),
        ("tunebot replay logs/sample --at '2026-11-28 14:32' --headless", "the board as it stood then, and what ran"),
        ("tunebot replay logs/sample --at 50% --json", "the same as one JSON object (docs/report.md)"),
        ("tunebot replay logs/sample --follow eagle3 --headless", "the lines of one experiment"),
        ("tunebot replay logs/sample --headless", "the lines that it printed, from its journal alone"),
        ("tunebot replay logs/sample --json", "the same for machines"),
        ("tunebot replay logs/sample --verify", "whether this tunebot would decide the same"),
    ),
    exits=(
        ("0", "shown; with --verify: every decision is the same"),
        ("1", "with --verify: a decision differs; else a fault in tunebot"),
        ("2", "no session, one that cannot be read, or no such time or experiment"),
        ("130", "interrupted"),
    ),
    files=shared.SESSION_FILES,
    environment=shared.SCREEN_ENVIRONMENT[1:],
    notes=shared.LINES,
    settles=("logs", "headless"),
)
