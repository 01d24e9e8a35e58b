"""The `tunebot` command: reads its arguments, finds the files, and hands over. Heavy imports wait until needed."""

import argparse
import errno
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
  tunebot replay logs/20261130-101500-my-1a2b     review a session: any moment of it, forwards and backwards
  tunebot try gpu8 cuda-graph-max-bs=256           one experiment on the baseline of the last session on gpu8
  tunebot                                          choose a playbook to run or a session to review

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
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        # The reader or the terminal went away. Python would complain again when it flushes stdout at exit.
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
    parser.set_defaults(handler=_start, headless=False, target=None, approve=[], keep=False, logs=Path("logs"))
    commands = parser.add_subparsers(metavar="COMMAND")

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

    doctor = commands.add_parser(
        "doctor",
        help="whether a target can be used, and what to do where not",
        description="Look at a target: connection, Python, work folder, disk, who holds its GPUs. "
        "Exit code 0: it can be used, 3: it cannot.",
    )
    doctor.add_argument("on", metavar="TARGET", help="local, simulated, ssh:HOST or a name of targets.yaml")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.set_defaults(handler=_doctor)

    schema = commands.add_parser("schema", help="print the JSON Schema of playbooks")
    schema.set_defaults(handler=_schema)

    replay = commands.add_parser("replay", help="review a recorded session")
    replay.add_argument("session", type=Path, help="a session's folder")
    replay.add_argument("--headless", action="store_true", help="print the lines that the session printed")
    replay.set_defaults(handler=_replay)

    explain = commands.add_parser(
        "explain",
        help="what became of the server whose log this is, and why",
        description="Say what became of a server, by which line of its log, and what to try. "
        "Exit code 0: healthy, 1: failed or hung, 2: not a log.",
    )
    explain.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="plain, gzip or zstd; - is stdin")
    explain.add_argument("--json", action="store_true", help="print one JSON object")
    explain.add_argument("--server", choices=("auto", "sglang", "vllm", "llamacpp"), default="auto")
    explain.set_defaults(handler=_explain)

    attempt = commands.add_parser(
        "try",
        help="run one experiment on the last baseline",
        description="Run one experiment on the baseline of the last session on a target.",
    )
    attempt.add_argument("on", metavar="TARGET", help="local, simulated, ssh:HOST or a name of targets.yaml")
    attempt.add_argument("changes", nargs="+", metavar="FLAG=VALUE", help="or FLAG, FLAG=null, ENV:NAME=VALUE")
    _add_run_options(attempt, target=False)
    attempt.set_defaults(handler=_try)
    return parser


def _add_run_options(parser: argparse.ArgumentParser, target: bool = True) -> None:
    parser.add_argument("--headless", action="store_true", help="print one line a change instead of the screen")
    if target:
        help_ = "local, simulated, simulated:WORLD, ssh:HOST or a name of targets.yaml, instead of the playbook's"
        parser.add_argument("--target", help=help_)
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
    from agent.play import play
    from agent.run import Options

    on_screen = _at_terminal(arguments)
    options = Options(
        target=arguments.target,
        approved=approved,
        keep=arguments.keep,
        logs=arguments.logs,
        attended=on_screen,
    )
    return play(playbook, source, options, _say)


def _check(arguments: argparse.Namespace) -> int:
    from agent.check import plan_of, print_plan

    playbook, _ = _load(arguments.playbook, as_json=arguments.json)
    plan = plan_of(playbook)
    if arguments.json:
        _say(json.dumps(plan, ensure_ascii=False, indent=2))
    else:
        print_plan(plan, _say)
    return Exit.OK


def _explain(arguments: argparse.Namespace) -> int:
    from agent.explain import run

    return run(arguments.files, arguments.server, arguments.json)


def _doctor(arguments: argparse.Namespace) -> int:
    import asyncio

    from agent.doctor import as_json, examine, lines_of, usable

    checks = asyncio.run(examine(arguments.on))
    if arguments.json:
        _say(json.dumps(as_json(arguments.on, checks), ensure_ascii=False, indent=2))
    else:
        for line in lines_of(arguments.on, checks):
            _say(line)
    return Exit.OK if usable(checks) else Exit.TARGET_UNUSABLE


def _schema(_: argparse.Namespace) -> int:
    from agent.playbook.schema import schema_text

    sys.stdout.write(schema_text())
    return Exit.OK


def _replay(arguments: argparse.Namespace) -> int:
    from agent.core.legal import IllegalTransition
    from agent.headless import replay
    from agent.journal.journal import JournalError, read_journal
    from agent.replay import Recording

    try:
        events = read_journal(arguments.session)
        if not _at_terminal(arguments):
            replay(events, _say)
            return Exit.OK
        recording = Recording(events)
        # What cannot be folded is told now, and not in the middle of a replay.
        recording.state_at(recording.last)
    except (JournalError, ValueError, IllegalTransition) as error:
        raise UserError(str(error), getattr(error, "hint", "")) from error
    from agent.play import show_recording

    show_recording(recording, arguments.session)
    return Exit.OK


def _try(arguments: argparse.Namespace) -> int:
    from agent.attempt import make_attempt

    attempt = make_attempt(arguments.logs, arguments.on, arguments.changes)
    _say(f"baseline: that of {attempt.session}")
    _say(f"playbook: {attempt.file}")
    return _run_playbook(attempt.playbook, attempt.text, arguments, tuple(arguments.approve))


LISTED_SESSIONS = 20
"""Sessions that are listed where there is no screen to scroll."""


def _start(arguments: argparse.Namespace) -> int:
    from agent.core.views.entries import PlaybookEntry, listing
    from agent.sessions import playbook_entries, session_entry, session_folders

    folders = session_folders(arguments.logs)
    playbooks = list(playbook_entries(Path()))
    if not _at_terminal(arguments):
        older = max(0, len(folders) - LISTED_SESSIONS)
        for line in listing(playbooks, map(session_entry, folders[:LISTED_SESSIONS]), older):
            _say(line)
        return Exit.OK
    from tui.screens.start import key_of
    from tui.start_app import StartApp

    chosen = ""
    # After a review one is back here; a run is what one came for, and ends the command.
    while (entry := StartApp(playbooks, map(session_entry, folders), chosen).run()) is not None:
        if isinstance(entry, PlaybookEntry):
            arguments.playbook = entry.file
            return _demo(arguments) if entry.shipped and entry.file == "demo" else _run(arguments)
        chosen, arguments.session = key_of(entry), Path(entry.folder)
        _replay(arguments)
    return Exit.OK


def _at_terminal(arguments: argparse.Namespace) -> bool:
    """Whether a person sits in front of a screen and wants it."""
    # The screen is drawn on stderr; results go to stdout.
    return not arguments.headless and all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


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
