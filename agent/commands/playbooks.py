"""Commands about playbooks and the flags in them."""

import argparse
from pathlib import Path

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command
from agent.commands.completing import complete, folders, playbooks


def _check(parser: argparse.ArgumentParser) -> None:
    complete(parser.add_argument("playbook", help="a playbook file, or the name of a shipped one"), playbooks)
    parser.add_argument(
        "--preflight", action="store_true", help="run its preflights and needed research; nothing is launched"
    )
    shared.add_target(parser)
    shared.add_json(parser)


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", default="", metavar="PATTERN", help="part of a flag's name")
    complete(
        parser.add_argument("--source", type=Path, metavar="DIR", help="the installed package, or its repository"),
        folders,
    )
    complete(parser.add_argument("--playbook", metavar="FILE", help="take server.source of this playbook"), playbooks)
    parser.add_argument("--uses", metavar="FLAG", help="the blocks that test it, and what they assert, set or refuse")
    shared.add_json(parser)


CHECK = Command(
    name="check",
    help="problems of a playbook, or its plan",
    about="Tell every problem of a playbook with its position, or the plan and what has to be approved.",
    handler=verbs.check,
    options=_check,
    examples=(
        ("tunebot check my.yaml", "every problem with its position, or the plan"),
        ("tunebot check my.yaml --preflight --target gpu8", "what would fail or change nothing, before any load"),
    ),
    exits=(
        ("0", "it is sound"),
        ("2", "it has problems"),
        ("3", "with --preflight: the target could not be used"),
        ("4", "with --preflight: an experiment would fail or change nothing"),
    ),
    files=(*shared.TARGETS_FILES, *shared.CONFIG_FILE),
    settles=("target",),
)

SCHEMA = Command(
    name="schema",
    help="print the JSON Schema of playbooks",
    about="Print the JSON Schema of playbooks, for editors that complete and check YAML.",
    handler=verbs.schema,
    examples=(("tunebot schema > playbook.schema.json", "for the YAML plugin of an editor"),),
    exits=(("0", "printed"),),
)

FLAGS = Command(
    name="flags",
    help="the flags of a server, read from its source",
    about="Read a server's flags from its source, without importing it: type, default, choices, place.",
    handler=verbs.flags,
    options=_flags,
    examples=(
        ("tunebot flags moe --source ~/sglang/python", "every flag with moe in its name"),
        ("tunebot flags --uses moe-a2a-backend --source DIR", "what the blocks that test it assert, set or refuse"),
        ("tunebot flags --playbook my.yaml --json", "those of the source that a playbook names"),
    ),
    exits=(("0", "found"), ("2", "no such source, or a bad argument")),
    files=(("~/.cache/tunebot/", "what was read of a version (XDG_CACHE_HOME)"),),
)
