"""What each command of `tunebot` does with its arguments. Heavy imports wait until needed."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.diagnostics import Exit, UserError

if TYPE_CHECKING:
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
    from agent.core.plan import approvals_needed

    playbook, source = _load("demo")
    # The demo's host is simulated and thrown away, so its own steps need no person.
    approved = [needed for experiment in playbook.experiments for needed in approvals_needed(playbook, experiment)]
    return _run_playbook(playbook, source, arguments, tuple(approved))


def attempt(arguments: argparse.Namespace) -> int:
    """`tunebot try TARGET CHANGE...`."""
    from agent.attempt import make_attempt

    made = make_attempt(arguments.logs, arguments.on, arguments.changes)
    say(f"baseline: that of {made.session}")
    say(f"playbook: {made.file}")
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
        return look_on(folder, at_terminal(arguments), say)
    playbook = _load(arguments.playbook)[0] if arguments.playbook else None
    way = _way(arguments)
    return resume(folder, _options(arguments, way, tuple(arguments.approve)), way, say, playbook)


def attach(arguments: argparse.Namespace) -> int:
    """`tunebot attach [SESSION] [--host NAME]`."""
    from agent.play import attach

    return attach(arguments.session, arguments.host, at_terminal(arguments), say)


def _run_playbook(playbook: "Playbook", source: str, arguments: argparse.Namespace, approved: tuple[str, ...]) -> int:
    from agent.play import play

    way = _way(arguments)
    return play(playbook, source, _options(arguments, way, approved), way, say)


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
        return "detached"
    return "screen" if at_terminal(arguments) else "lines"


def check(arguments: argparse.Namespace) -> int:
    """`tunebot check PLAYBOOK`."""
    if arguments.preflight:
        from agent.check_preflights import check_on_target

        playbook, _ = _load(arguments.playbook, as_json=arguments.json)
        return check_on_target(playbook, arguments.target, arguments.json, say)
    from agent.check import check_file

    return check_file(*_file_of(arguments.playbook), arguments.target, arguments.json, say)


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
    from agent.core.legal import IllegalTransition
    from agent.headless import replay
    from agent.journal.journal import JournalError, read_journal
    from agent.replay import Recording

    try:
        events = read_journal(arguments.session)
        if not at_terminal(arguments):
            replay(events, say)
            return Exit.OK
        recording = Recording(events)
        # What cannot be folded is told now, and not in the middle of a replay.
        recording.state_at(recording.last)
    except (JournalError, ValueError, IllegalTransition) as error:
        raise UserError(str(error), getattr(error, "hint", "")) from error
    from agent.play import show_recording

    show_recording(recording, arguments.session)
    return Exit.OK


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
            look_on(arguments.session, True, say)
        else:
            replay(arguments)
    return Exit.OK


def at_terminal(arguments: argparse.Namespace) -> bool:
    """Whether a person sits in front of a screen and wants it."""
    # The screen is drawn on stderr; results go to stdout.
    return not arguments.headless and all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))


def say(line: str) -> None:
    """Write a line to stdout at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _load(name: str, as_json: bool = False) -> "tuple[Playbook, str]":
    """A playbook by file or shipped name, and its text. Raises UserError after all its problems were printed."""
    return _parse(*_file_of(name), as_json)


def _file_of(name: str) -> tuple[bytes, str]:
    """The bytes and the path of a playbook, by file or shipped name. Raises UserError."""
    from agent.paths import shipped_playbooks

    path = Path(name)
    shipped = shipped_playbooks() / f"{name}.yaml"
    if not path.exists() and shipped.exists():
        path = shipped
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        names = ", ".join(sorted(p.stem for p in shipped_playbooks().glob("*.yaml")))
        raise UserError(f"cannot read {name}: {error.strerror}", f"shipped playbooks: {names}") from error


def _parse(text: bytes, file: str, as_json: bool) -> "tuple[Playbook, str]":
    from agent.bench.datafile import looking_from
    from agent.playbook.load import load_playbook
    from agent.servers.known_flags import all_known_flags

    look_at = looking_from(Path(file).parent)
    found = load_playbook(text, file, all_known_flags(), look_at)
    if not isinstance(found, list):
        return found, text.decode()
    from agent.check import refuse
    from agent.flags_located import Checked, load_by_source

    # The installed server may know a flag that our own list does not have.
    found = load_by_source(text, file, look_at)
    if isinstance(found, list):
        refuse(file, Checked(found=None, problems=tuple(found)), as_json, say)
    return found, text.decode()
