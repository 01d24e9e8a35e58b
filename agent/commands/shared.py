"""What several commands take, and what the pages of several say."""

import argparse
from pathlib import Path

from agent.commands.command import Rows
from agent.commands.completing import complete, folders, targets

RUN_EXITS: Rows = (
    ("0", "the playbook ran to its end (dead ends are results)"),
    ("1", "a fault in tunebot"),
    ("2", "a bad playbook, argument or configuration"),
    ("3", "the target could not be used"),
    ("6", "it ran to its end, but nothing could be measured"),
    ("130", "interrupted"),
)

CONFIG_FILE: Rows = (("~/.config/tunebot/config.toml", "settings; tunebot config tells each (XDG_CONFIG_HOME)"),)
TARGETS_FILES: Rows = (
    ("targets.yaml", "names of machines: the project's, which wins"),
    ("~/.config/tunebot/targets.yaml", "names of machines: yours (XDG_CONFIG_HOME)"),
)
SESSION_FILES: Rows = (("logs/SESSION/", "journal, playbook, logs and measurements of a session; --logs"),)
LLM_ENVIRONMENT: Rows = (
    ("ANTHROPIC_API_KEY", "the key for questions to an LLM; kept in no file"),
    ("ANTHROPIC_BASE_URL", "where the LLM is served"),
    ("TUNEBOT_MODEL, TUNEBOT_EFFORT", "which LLM answers, and how hard it thinks"),
    ("TUNEBOT_QUESTION_USD, TUNEBOT_SESSION_USD", "budgets; also _CALLS, _BYTES, _TOKENS, _SECONDS"),
)
SCREEN_ENVIRONMENT: Rows = (
    ("TUNEBOT_BELL", "0: the screen does not ring when something needs you"),
    ("NO_COLOR", "the screen without colours; lines never have any"),
)
DETACHED = "With --detach the exit code 0 says that the session runs; otherwise nothing does."
LINES = "The form of lines and of their JSON: docs/headless.md."


def add_on(parser: argparse.ArgumentParser) -> None:
    """The machine that a command is about."""
    help_ = "local, simulated, ssh:HOST or a name of targets.yaml"
    complete(parser.add_argument("on", metavar="TARGET", help=help_), targets)


def add_json(parser: argparse.ArgumentParser) -> None:
    """A result for machines."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Another machine than the playbook's."""
    help_ = "local, simulated, simulated:WORLD, ssh:HOST or a name of targets.yaml, instead of the playbook's"
    complete(parser.add_argument("--target", help=help_), targets)


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Where sessions are; None until it is settled."""
    help_ = "where session folders go (default: logs)"
    complete(parser.add_argument("--logs", type=Path, metavar="DIR", help=help_), folders)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """How a session is run and shown."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--headless", action="store_true", help="print one line a change instead of the screen")
    how.add_argument("--detach", action="store_true", help="run without a terminal; tunebot attach shows it")
    add_form(parser)
    parser.add_argument(
        "--approve",
        action="append",
        default=[],
        metavar="ID@HASH",
        help="approve a prepare step, or all of an experiment",
    )
    parser.add_argument("--keep", action="store_true", help="when interrupted, leave the server running")
    add_logs(parser)


def add_form(parser: argparse.ArgumentParser) -> None:
    """In which form lines are printed; each stands for --headless too."""
    parser.add_argument("--json", action="store_true", help="lines as JSON, one object each")
    parser.add_argument("--quiet", action="store_true", help="only verdicts, dead ends, what needs you, and the end")
