"""What each command of `tunebot` does with its arguments. Heavy imports wait until needed."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.diagnostics import Exit, UserError

if TYPE_CHECKING:
    from agent.headless import Form
    from agent.play import Way
    from agent.playbook.model import Playbook
    from agent.run import Options

LISTED_SESSIONS = 20
"""Sessions that are listed where there is no screen to scroll."""


def run(arguments: argparse.Namespace) -> int:
    """`tunebot run PLAYBOOK`."""
    playbook, source = _load(arguments.playbook)
    return _run_playbook(playbook, source, arguments, tuple(arguments.approve))


def demo(arguments: argparse.Namespace) -> int:
    """`tunebot demo`."""
    from agent.core.plan import plan_approval

    playbook, source = _load("demo")
    # The demo's host is simulated and thrown away, so its own steps need no person.
    approved = [plan_approval(playbook, experiment) for experiment in playbook.experiments if experiment.prepare]
    return _run_playbook(playbook, source, arguments, tuple(approved))


def attempt(arguments: argparse.Namespace) -> int:
    """`tunebot try TARGET CHANGE...`."""
    from agent.attempt import make_attempt

    made = make_attempt(arguments.logs, arguments.on, arguments.changes)
    remark(f"baseline: that of {made.session}")
    remark(f"playbook: {made.file}")
    return _run_playbook(made.playbook, made.text, arguments, tuple(arguments.approve))


def resume(arguments: argparse.Namespace) -> int:
    """`tunebot resume [SESSION]`: one that another tunebot runs is only looked at."""
    from agent.journal.journal import is_being_written
    from agent.play import look_on, resume
    from agent.resume import find

    folder = find(arguments.logs, arguments.session)
    if is_being_written(folder):
        if arguments.detach:
            raise UserError("another tunebot runs this session", f"steer it: tunebot attach {folder}")
        return look_on(folder, at_terminal(arguments), say, _form(arguments))
    playbook = _load(arguments.playbook)[0] if arguments.playbook else None
    way = _way(arguments)
    options = _options(arguments, way, tuple(arguments.approve))
    return resume(folder, options, way, say, _form(arguments), playbook)


def attach(arguments: argparse.Namespace) -> int:
    """`tunebot attach [SESSION] [--host NAME]`."""
    from agent.play import attach

    return attach(arguments.session, arguments.host, at_terminal(arguments), say, _form(arguments))


def _run_playbook(playbook: "Playbook", source: str, arguments: argparse.Namespace, approved: tuple[str, ...]) -> int:
    from agent.play import play

    way = _way(arguments)
    return play(playbook, source, _options(arguments, way, approved), way, say, _form(arguments))


def _options(arguments: argparse.Namespace, way: "Way", approved: tuple[str, ...]) -> "Options":
    from agent.run import Options

    return Options(
        target=arguments.target,
        approved=approved,
        keep=arguments.keep,
        logs=arguments.logs,
        attended=way != "lines",
    )


def _way(arguments: argparse.Namespace) -> "Way":
    if arguments.detach:
        if arguments.json or arguments.quiet:
            raise UserError("a detached session prints no lines", "start it, then: tunebot attach --json or --quiet")
        return "detached"
    return "screen" if at_terminal(arguments) else "lines"


def _form(arguments: argparse.Namespace) -> "Form":
    from agent.headless import Form

    return Form(as_json=arguments.json, quiet=arguments.quiet)


def check(arguments: argparse.Namespace) -> int:
    """`tunebot check PLAYBOOK`."""
    if arguments.preflight:
        from agent.check_preflights import check_on_target

        playbook, _ = _load(arguments.playbook, as_json=arguments.json)
        return check_on_target(playbook, arguments.target, arguments.json, say)
    from agent.check import check_file
    from agent.named import file_of

    return check_file(*file_of(arguments.playbook), arguments.target, arguments.json, say)


def flags(arguments: argparse.Namespace) -> int:
    """`tunebot flags [PATTERN]`."""
    from agent.flags_command import Wish, show_flags, source_root

    playbook = _load(arguments.playbook)[0] if arguments.playbook else None
    wish = Wish(pattern=arguments.pattern, uses=arguments.uses, as_json=arguments.json)
    return show_flags(source_root(arguments.source, playbook), wish, say)


def bench(arguments: argparse.Namespace) -> int:
    """`tunebot bench URL`."""
    from agent.bench_command import run

    return run(arguments, say)


def explain(arguments: argparse.Namespace) -> int:
    """`tunebot explain FILE...`."""
    from agent.explain import run

    return run(arguments.files, arguments.server, arguments.json)


def import_(arguments: argparse.Namespace) -> int:
    """`tunebot import FILE...`."""
    from agent.import_command import import_files

    return import_files(arguments.files, arguments.json, say)


def doctor(arguments: argparse.Namespace) -> int:
    """`tunebot doctor TARGET`."""
    import asyncio

    from agent.doctor import as_json, examine, lines_of, usable

    checks = asyncio.run(examine(arguments.on))
    if arguments.json:
        say(json.dumps(as_json(arguments.on, checks), ensure_ascii=False, indent=2))
    else:
        for line in lines_of(arguments.on, checks):
            say(line)
    return Exit.OK if usable(checks) else Exit.TARGET_UNUSABLE


def schema(_: argparse.Namespace) -> int:
    """`tunebot schema`."""
    from agent.playbook.schema import schema_text

    sys.stdout.write(schema_text())
    return Exit.OK


def replay(arguments: argparse.Namespace) -> int:
    """`tunebot replay SESSION`."""
    from agent import replay_command as review
    from agent.headless import Printer
    from agent.report_command import folder_of

    if arguments.verify and arguments.follow:
        raise UserError("--verify is about all decisions of a session", "leave --follow out")
    opened = review.open_recording(folder_of(arguments.logs, arguments.session))
    if arguments.verify:
        return review.check(opened, say)
    if at_terminal(arguments):
        return review.show(opened, arguments.at, arguments.follow)
    if arguments.at and not arguments.follow:
        return review.stand(opened, arguments.at, arguments.json, say)
    printer = Printer(say, _form(arguments), arguments.follow)
    return review.tell(opened, printer, arguments.at, arguments.follow)


def report(arguments: argparse.Namespace) -> int:
    """`tunebot report [SESSION]`."""
    from agent.report_command import report_session

    return report_session(arguments.logs, arguments.session, arguments.format, arguments.output, say)


def start(arguments: argparse.Namespace) -> int:
    """`tunebot` alone: a list of what is at hand, or a screen to choose from."""
    from agent.core.views.entries import PlaybookEntry, listing
    from agent.sessions import playbook_entries, session_entry, session_folders

    folders = session_folders(arguments.logs)
    playbooks = list(playbook_entries(Path()))
    if not at_terminal(arguments):
        older = max(0, len(folders) - LISTED_SESSIONS)
        for line in listing(playbooks, map(session_entry, folders[:LISTED_SESSIONS]), older):
            say(line)
        return Exit.OK
    from agent import replay_command as review
    from agent.play import choose, look_on

    chosen = ""
    # After a review one is back here; a session that one takes part in is what one came for, and ends the command.
    while (choice := choose(playbooks, map(session_entry, folders), chosen)) is not None:
        entry = choice.entry
        if isinstance(entry, PlaybookEntry):
            arguments.playbook = entry.file
            return demo(arguments) if entry.shipped and entry.file == "demo" else run(arguments)
        chosen, arguments.session = entry.folder, Path(entry.folder)
        if choice.what == "resume":
            return resume(arguments)
        if choice.what == "attach":
            arguments.session = entry.folder
            return attach(arguments)
        if entry.standing == "running":
            look_on(arguments.session, True, say, _form(arguments))
        else:
            review.show(review.open_recording(arguments.session))
    return Exit.OK


def config(arguments: argparse.Namespace) -> int:
    """`tunebot config [ACTION]`."""
    from agent.config.command import configure

    return configure(arguments, say)


def completion(arguments: argparse.Namespace) -> int:
    """`tunebot completion SHELL`."""
    from agent.completion import script

    say(script(arguments.shell))
    return Exit.OK


def help_(arguments: argparse.Namespace) -> int:
    """`tunebot help [COMMAND...]`."""
    from agent.cli import make_parser

    make_parser().parse_args([*arguments.words, "--help"])
    return Exit.OK


def at_terminal(arguments: argparse.Namespace) -> bool:
    """Whether a person sits in front of a screen and wants it."""
    if arguments.headless or arguments.json or arguments.quiet:
        return False
    # The screen is drawn on stderr; results go to stdout.
    return all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def say(line: str) -> None:
    """Write a line to stdout at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def remark(line: str) -> None:
    """Write a line to stderr: what a person should know, and no result."""
    sys.stderr.write(line + "\n")


def _load(name: str, as_json: bool = False) -> "tuple[Playbook, str]":
    """A playbook by file or shipped name, and its text. Raises UserError after all its problems were printed."""
    from agent.named import load_named

    return load_named(name, say, as_json)
