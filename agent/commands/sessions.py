"""Commands that run sessions, or go on with them."""

import argparse
from pathlib import Path

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command
from agent.commands.completing import complete, playbooks, running_sessions, sessions, targets


def _run(parser: argparse.ArgumentParser) -> None:
    complete(parser.add_argument("playbook", help="a playbook file, or the name of a shipped one"), playbooks)
    shared.add_target(parser)
    shared.add_run_options(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    shared.add_target(parser)
    shared.add_run_options(parser)


def _attach(parser: argparse.ArgumentParser) -> None:
    session = parser.add_argument(
        "session", nargs="?", metavar="SESSION", help="its id, the beginning of that, or its folder"
    )
    complete(session, running_sessions)
    complete(parser.add_argument("--host", metavar="NAME", help="ssh:HOST, HOST, or a name of targets.yaml"), targets)
    parser.add_argument("--headless", action="store_true", help="print its lines instead of the screen")
    shared.add_form(parser)


def _resume(parser: argparse.ArgumentParser) -> None:
    session = parser.add_argument(
        "session", nargs="?", type=Path, metavar="SESSION", help="a session's folder, or its name"
    )
    complete(session, sessions)
    complete(
        parser.add_argument("--playbook", metavar="FILE", help="the session's playbook, where it holds secrets"),
        playbooks,
    )
    shared.add_run_options(parser)


def _try(parser: argparse.ArgumentParser) -> None:
    shared.add_on(parser)
    parser.add_argument("changes", nargs="+", metavar="FLAG=VALUE", help="or FLAG, FLAG=null, ENV:NAME=VALUE")
    shared.add_run_options(parser)


RUN = Command(
    name="run",
    help="run a playbook",
    about="Run a playbook to its end: on the screen, or as lines where there is no terminal.",
    handler=verbs.run,
    options=_run,
    examples=(
        ("tunebot run my.yaml", "on the screen"),
        ("tunebot run my.yaml --headless --approve cuda13@1f2e3d4c5b6a", "as lines; that step may change the host"),
        ("tunebot run my.yaml --json --quiet > run.jsonl", "for CI: what counts, one JSON object a line"),
        ("tunebot run my.yaml --detach", "it runs when you log out, and tunebot attach shows it"),
    ),
    exits=shared.RUN_EXITS,
    files=(*shared.SESSION_FILES, *shared.TARGETS_FILES, *shared.CONFIG_FILE),
    environment=(*shared.LLM_ENVIRONMENT, *shared.SCREEN_ENVIRONMENT),
    notes=f"{shared.DETACHED} {shared.LINES}",
    settles=("target", "logs", "headless"),
)

DEMO = Command(
    name="demo",
    help="run the story on a simulated host",
    about="Run the shipped demo: twelve experiments on a simulated 8-GPU host, in about two minutes.",
    handler=verbs.demo,
    options=_demo,
    examples=(
        ("tunebot demo", "on the screen"),
        ("tunebot demo --headless", "as lines"),
    ),
    exits=shared.RUN_EXITS,
    files=shared.SESSION_FILES,
    environment=shared.SCREEN_ENVIRONMENT,
    notes=shared.LINES,
    settles=("logs", "headless"),
)

ATTACH = Command(
    name="attach",
    help="show and steer a session that runs",
    about="Show and steer a session that another tunebot runs, here or on another machine. Leaving stops nothing.",
    handler=verbs.attach,
    options=_attach,
    examples=(
        ("tunebot attach", "the newest session that runs here"),
        ("tunebot attach 20261130-1015", "one by the beginning of its name"),
        ("tunebot attach --host gpu8", "the newest on gpu8, over SSH"),
        ("tunebot attach --headless", "its lines so far, then as they come; ctrl+c stops nothing"),
    ),
    exits=shared.RUN_EXITS,
    files=(("~/.local/state/tunebot/run/", "the sockets of sessions that run (XDG_STATE_HOME)"), *shared.TARGETS_FILES),
    environment=shared.SCREEN_ENVIRONMENT,
    notes=shared.LINES,
    settles=("headless",),
)

RESUME = Command(
    name="resume",
    help="go on with a session that was cut off or interrupted",
    about="Go on with a session: what still runs on the target is rejoined.\n"
    "One that another tunebot runs is shown, read-only.",
    handler=verbs.resume,
    options=_resume,
    examples=(
        ("tunebot resume", "the newest session that has not ended, or was interrupted"),
        ("tunebot resume logs/20261130-101500-my-1a2b", "this one"),
        ("tunebot resume --detach", "go on without a terminal"),
        ("tunebot resume --playbook my.yaml", "where the playbook holds secrets: no journal keeps them"),
    ),
    exits=shared.RUN_EXITS,
    files=(*shared.SESSION_FILES, *shared.CONFIG_FILE),
    environment=(*shared.LLM_ENVIRONMENT, *shared.SCREEN_ENVIRONMENT),
    notes=f"{shared.DETACHED} {shared.LINES}",
    settles=("logs", "headless"),
)

TRY = Command(
    name="try",
    help="run one experiment on the last baseline",
    about="Run one experiment on the baseline of the last session on a target.",
    handler=verbs.attempt,
    options=_try,
    examples=(
        ("tunebot try local ep-size=2", "one flag on top of the last baseline"),
        ("tunebot try gpu8 disable-cuda-graph ENV:NCCL_ALGO=Ring", "a switch and a variable"),
    ),
    exits=shared.RUN_EXITS,
    files=(*shared.SESSION_FILES, ("logs/*-try-*.yaml", "the playbook that it makes"), *shared.TARGETS_FILES),
    environment=(*shared.LLM_ENVIRONMENT, *shared.SCREEN_ENVIRONMENT),
    notes=f"{shared.DETACHED} {shared.LINES}",
    settles=("logs", "headless"),
)
