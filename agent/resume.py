"""Finds a session that can go on, and folds its journal to the state from which it does."""

from dataclasses import replace
from pathlib import Path

from agent.bench.datafile import records_of
from agent.core.events import SessionStarted
from agent.core.legal import IllegalTransition
from agent.core.plan import config_of
from agent.core.reduce import initial, reduce
from agent.core.state import Stage, State
from agent.diagnostics import UserError
from agent.journal.codec import encode
from agent.journal.journal import read_journal
from agent.playbook.model import Playbook
from agent.playbook.workload import DataFile
from agent.redact import MARK, redact_tree, redactor
from agent.session import PLAYBOOK
from agent.sessions import session_entry, session_folders

LISTED = 5
"""Sessions that are named where none of them can go on."""


class ResumeError(UserError):
    """A session cannot go on. The message says why, the hint what to do."""


def find(logs: Path, session: Path | None) -> Path:
    """The folder of the session to go on with: the one named, else the newest under `logs` that has not ended.

    Raises ResumeError where there is none.
    """
    if session is not None:
        folder = session if session.is_dir() else logs / session
        if not folder.is_dir():
            raise ResumeError(f"there is no session {session}", f"sessions are folders in {logs}")
        return folder
    entries = [session_entry(folder) for folder in session_folders(logs)]
    for standing in ("not ended", "interrupted", "target-lost"):
        if found := next((entry for entry in entries if entry.standing == standing), None):
            return Path(found.folder)
    seen = "; ".join(f"{entry.folder} {entry.standing}" for entry in entries[:LISTED])
    raise ResumeError(f"no session under {logs} can go on", seen or "no session was begun there")


def restore(folder: Path, playbook: Playbook | None) -> State:
    """The state in which a session was left.

    `playbook` is the one of the session as its file says it: the journal holds no secrets, the file may. Raises
    ResumeError, and JournalError where the journal cannot be read.
    """
    start, *events = read_journal(folder)
    if not isinstance(start, SessionStarted):
        raise ResumeError(f"{folder} does not begin with the start of a session")
    if playbook is not None:
        start = replace(start, playbook=_same(playbook, start, folder))
    state = initial(start)
    try:
        for event in events:
            state, _ = reduce(state, event)
    except IllegalTransition as error:
        raise ResumeError(f"{folder}: the events do not fit together: {error}") from error
    if state.ending == "completed":
        raise ResumeError(f"session {state.session} is complete", f"review it: tunebot replay {folder}")
    _check_secrets(state, folder)
    _check_data(state)
    return state


def _same(playbook: Playbook, start: SessionStarted, folder: Path) -> Playbook:
    """The playbook, if it is the session's but for the secrets."""
    told = redact_tree(redactor(playbook), encode(replace(start, playbook=playbook)))
    if told["data"]["playbook"] != encode(start)["data"]["playbook"]:
        raise ResumeError("that is not the playbook of this session", f"compare it with {folder / PLAYBOOK}")
    return playbook


def _check_data(state: State) -> None:
    """Rounds with other prompts could not be held against those that were measured."""
    for workload in state.playbook.workloads:
        if isinstance(workload.data, DataFile):
            try:
                records_of(workload.data)
            except ValueError as error:
                raise ResumeError(f"workload {workload.name}: {error}", "put that file back, or begin anew") from error


def _check_secrets(state: State, folder: Path) -> None:
    for experiment in state.experiments.values():
        config = config_of(state, experiment.id)
        values = (*config.command, *map(str, config.args.values()), *map(str, config.env.values()))
        if experiment.stage is not Stage.ENDED and any(MARK in value for value in values):
            message = f"{experiment.id} needs a secret, and no journal keeps one"
            raise ResumeError(message, f"give the playbook again: tunebot resume {folder} --playbook FILE")
