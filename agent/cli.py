"""The `tunebot` command: reads its arguments and hands over."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from agent import __version__, verbs
from agent.commands.command import page
from agent.commands.every import COMMANDS
from agent.commands.shared import LINES, RUN_EXITS
from agent.config.settle import settle
from agent.diagnostics import Exit, UserError, complain
from agent.text import one_line

EXAMPLES = (
    ("tunebot demo", "the whole story on a simulated host, in about two minutes"),
    ("tunebot check playbooks/example.yaml", "problems with their positions, or the plan"),
    ("tunebot run my.yaml --headless", "run a playbook, one line a change"),
    ("tunebot run my.yaml --detach", "run it without a terminal: it goes on when you log out"),
    ("tunebot attach", "show and steer what runs detached, or anywhere else"),
    ("tunebot attach --host gpu8", "the same from the laptop, over SSH"),
    ("tunebot resume", "go on with the last session that was cut off or interrupted"),
    ("tunebot replay logs/20261130-101500-my-1a2b", "review a session: any moment of it, forwards and backwards"),
    ("tunebot try gpu8 cuda-graph-max-bs=256", "one experiment on the baseline of the last session on gpu8"),
    ("tunebot doctor gpu8", "whether a target can be used, and what to do where not"),
    ("tunebot bench http://127.0.0.1:30000", "how fast a running server is"),
    ("tunebot import result.json", "what another benchmark client measured"),
    ("tunebot explain server.log", "which line of a log is the reason"),
    ("tunebot help run", "all about one command"),
    ("tunebot", "choose a playbook to run or a session to review"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:
        from agent.completion import answer_shell

        answer_shell(parser)
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        try:
            _check_command(words)
            arguments = parser.parse_args(words)
            settle(arguments, os.environ)
            return int(arguments.handler(arguments))
        except UserError as error:
            complain(str(error), error.hint)
            return error.code
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        _let_go()


def _check_command(words: Sequence[str]) -> None:
    """Raises UserError for a command that there is not, with the one that was probably meant."""
    known = [command.name for command in COMMANDS]
    if not words or words[0].startswith("-") or words[0] in known:
        return
    from agent.playbook.problems import nearest

    near = nearest(words[0], known)
    hint = f"did you mean tunebot {near}?" if near else "tunebot --help lists them all"
    raise UserError(f"there is no command '{one_line(words[0], 80)}'", hint)


def _let_go() -> None:
    """Where the reader or the terminal went away, Python would complain when it flushes at exit, with a code of 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; `handler` of its result is what does it."""
    parser = argparse.ArgumentParser(
        prog="tunebot",
        description="Tunes an LLM inference server: runs a playbook of experiments, researches while the model loads.",
        epilog=page(("examples", EXAMPLES), ("exit codes", RUN_EXITS), notes=LINES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tunebot {__version__}")
    parser.set_defaults(
        handler=verbs.start,
        settles=("logs", "headless"),
        headless=False,
        json=False,
        quiet=False,
        detach=False,
        target=None,
        host=None,
        playbook=None,
        approve=[],
        keep=False,
        logs=None,
    )
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
