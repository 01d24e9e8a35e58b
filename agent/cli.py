"""The `tunebot` command: reads its arguments, finds the files, and hands over. Heavy imports wait until needed."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agent import __version__
from agent.diagnostics import Exit, UserError, complain

if TYPE_CHECKING:
    from agent.playbook.model import Playbook

EXAMPLES = """\
examples:
  tunebot demo                                     the whole story on a simulated host, in about two minutes
  tunebot check playbooks/example.yaml             problems with their positions, or the plan
  tunebot run my.yaml --headless                   run a playbook, one line a change
  tunebot run my.yaml --headless --approve cuda13@1f2e3d4c5b6a
  tunebot replay logs/20261130-101500-my-1a2b --headless

exit codes: 0 the playbook ran to its end (dead ends are results), 1 a fault in tunebot, 2 a bad playbook or argument,
3 the target could not be used, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.handler(arguments))
    except UserError as error:
        complain(str(error), error.hint)
        return error.code
    except BrokenPipeError:
        # The reader went away. Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tunebot",
        description="Tunes an LLM inference server: runs a playbook of experiments, researches while the model loads.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tunebot {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a playbook", description="Run a playbook to its end.")
    run.add_argument("playbook", help="a playbook file, or the name of a shipped one")
    _add_run_options(run)
    run.set_defaults(handler=_run)

    demo = commands.add_parser("demo", help="run the story on a simulated host", description="Run the shipped demo.")
    _add_run_options(demo)
    demo.set_defaults(handler=_demo)

    check = commands.add_parser("check", help="problems of a playbook, or its plan")
    check.add_argument("playbook")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(handler=_check)

    schema = commands.add_parser("schema", help="print the JSON Schema of playbooks")
    schema.set_defaults(handler=_schema)

    replay = commands.add_parser("replay", help="review a recorded session")
    replay.add_argument("session", type=Path, help="a session's folder")
    replay.add_argument("--headless", action="store_true", help="print the lines that the session printed")
    replay.set_defaults(handler=_replay)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--headless", action="store_true", help="print one line a change instead of the screen")
    parser.add_argument("--target", help="local, simulated or simulated:WORLD, instead of the playbook's")
    parser.add_argument("--approve", action="append", default=[], metavar="ID@HASH", help="approve a prepare step")
    parser.add_argument("--keep", action="store_true", help="when interrupted, leave the server running")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="where session folders go (default: logs)")


def _run(arguments: argparse.Namespace) -> int:
    playbook, source = _load(arguments.playbook)
    return _run_playbook(playbook, source, arguments, tuple(arguments.approve))


def _demo(arguments: argparse.Namespace) -> int:
    from agent.core.plan import approvals_needed

    playbook, source = _load("demo")
    # The demo's host is simulated and thrown away, so its own steps need no person.
    approved = [needed for experiment in playbook.experiments for needed in approvals_needed(playbook, experiment)]
    return _run_playbook(playbook, source, arguments, tuple(approved))


def _run_playbook(playbook: "Playbook", source: str, arguments: argparse.Namespace, approved: tuple[str, ...]) -> int:
    import asyncio

    from agent.headless import Printer
    from agent.journal.journal import JournalError
    from agent.playbook.not_carried_out import not_carried_out
    from agent.ports import TargetUnusable
    from agent.run import Options, run_session

    options = Options(target=arguments.target, approved=approved, keep=arguments.keep, logs=arguments.logs)
    notes = tuple(not_carried_out(playbook))
    try:
        state, folder = asyncio.run(run_session(playbook, source, options, Printer(_say), notes))
    except TargetUnusable as error:
        raise UserError(str(error), error.hint, Exit.TARGET_UNUSABLE) from error
    except JournalError as error:
        raise UserError(str(error), error.hint, Exit.INTERNAL) from error
    _say(f"journal: {folder.path}")
    endings = {"completed": Exit.OK, "interrupted": Exit.INTERRUPTED, "target-lost": Exit.TARGET_UNUSABLE}
    return endings[state.ending or "completed"]


def _check(arguments: argparse.Namespace) -> int:
    from agent.check import plan_of, print_plan

    playbook, _ = _load(arguments.playbook, as_json=arguments.json)
    plan = plan_of(playbook)
    if arguments.json:
        _say(json.dumps(plan, ensure_ascii=False, indent=2))
    else:
        print_plan(plan, _say)
    return Exit.OK


def _schema(_: argparse.Namespace) -> int:
    from agent.playbook.schema import schema_text

    sys.stdout.write(schema_text())
    return Exit.OK


def _replay(arguments: argparse.Namespace) -> int:
    from agent.headless import replay
    from agent.journal.journal import JournalError, read_journal

    try:
        replay(read_journal(arguments.session), _say)
    except (JournalError, ValueError) as error:
        raise UserError(str(error), getattr(error, "hint", "")) from error
    return Exit.OK


def _load(name: str, as_json: bool = False) -> "tuple[Playbook, str]":
    """A playbook by file or shipped name, and its text. Raises UserError after all its problems were printed."""
    from agent.paths import shipped_playbooks

    path = Path(name)
    shipped = shipped_playbooks() / f"{name}.yaml"
    if not path.exists() and shipped.exists():
        path = shipped
    try:
        text = path.read_bytes()
    except OSError as error:
        names = ", ".join(sorted(p.stem for p in shipped_playbooks().glob("*.yaml")))
        raise UserError(f"cannot read {name}: {error.strerror}", f"shipped playbooks: {names}") from error
    return _parse(text, str(path), as_json)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parse(text: bytes, file: str, as_json: bool) -> "tuple[Playbook, str]":
    from agent.playbook.load import load_playbook
    from agent.servers.known_flags import all_known_flags

    found = load_playbook(text, file, all_known_flags())
    if not isinstance(found, list):
        return found, text.decode()
    if as_json:
        _say(json.dumps({"problems": [asdict(problem) for problem in found]}, ensure_ascii=False, indent=2))
    else:
        for problem in found:
            sys.stderr.write(f"{problem}\n")
    count = f"{len(found)} problem{'s' if len(found) > 1 else ''}"
    raise UserError(f"{file} has {count}", "see playbooks/example.yaml for the format")


if __name__ == "__main__":
    sys.exit(main())
