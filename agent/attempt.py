"""`tunebot try`: a playbook of one experiment on top of the baseline of the last session on that target."""

import os
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.bench.datafile import looking_from
from agent.core.events import SessionStarted
from agent.core.parse_new import parse_new, suggested_id
from agent.core.reduce import initial
from agent.diagnostics import UserError
from agent.journal.journal import JournalError, read_journal
from agent.playbook.load import load_playbook
from agent.playbook.model import Experiment, Playbook
from agent.playbook.write import yaml_text
from agent.redact import MARK
from agent.servers.known_flags import all_known_flags
from agent.sessions import session_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A playbook that was written to `file`; its baseline is that of `session`."""

    playbook: Playbook
    text: str
    file: Path
    session: str


def make_attempt(logs: Path, target: str, words: Sequence[str]) -> Attempt:
    """Write the playbook that tries `words` (`FLAG=VALUE`, `FLAG`, `FLAG=null`, `ENV:NAME=VALUE`) on `target`.

    Raises UserError where no session fits, or where the words do not make an experiment.
    """
    start = _last_session(logs, target)
    playbook = _playbook(start, target, shlex.join(words))
    experiment = playbook.experiments[-1].id
    file = logs / f"{time.strftime('%Y%m%d-%H%M%S')}-try-{experiment}-{secrets.token_hex(2)}.yaml"
    text = f"# Made by `tunebot try` from the baseline of session {start.session}.\n{yaml_text(playbook)}"
    if MARK in text:
        hint = "write a playbook of your own with the secret in it; the session's playbook.yaml shows the rest"
        raise UserError(f"the baseline of {start.session} has a secret in its flags, which no journal keeps", hint)
    found = load_playbook(text.encode(), str(file), all_known_flags(), looking_from(logs))
    if isinstance(found, list):
        raise UserError("\n".join(str(problem) for problem in found))
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as output:
            output.write(text)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", "choose another folder with --logs") from error
    return Attempt(playbook=found, text=text, file=file, session=start.session)


def _last_session(logs: Path, target: str) -> SessionStarted:
    """The start of the newest session on this target."""
    for folder in session_folders(logs):
        try:
            start = read_journal(folder, progress=False)[0]
        except JournalError:
            continue
        if isinstance(start, SessionStarted) and fits(target, start):
            return start
    hint = f"run a playbook there first: tunebot run FILE --target {target}"
    raise UserError(f"no session under {logs} ran on {target}", hint)


def fits(target: str, start: SessionStarted) -> bool:
    """Whether a session ran on this target: by its playbook, or by what its host is called. A world is no matter."""
    wanted = start.playbook.target
    name = wanted if isinstance(wanted, str) else wanted.ssh
    return target.partition(":")[0] in (name.partition(":")[0], start.host.name)


def _playbook(start: SessionStarted, target: str, text: str) -> Playbook:
    before = start.playbook
    baseline = next(experiment for experiment in before.experiments if experiment.baseline)
    # What was asked about the baseline is answered; what it would reopen is not here.
    alone = baseline.model_copy(update={"research": (), "revisit": (), "when": None})
    keeps_target = not isinstance(before.target, str) and before.target.ssh == target
    playbook = before.model_copy(
        update={"target": before.target if keeps_target else target, "experiments": (alone,), "groups": (), "terms": {}}
    )
    state = initial(replace(start, playbook=playbook))
    name = suggested_id(state, text)
    flags = all_known_flags().get(playbook.server.kind, ())
    made = parse_new(state, baseline.id, name, text, flags)
    if not isinstance(made, Experiment):
        raise UserError("\n  ".join(made), "write FLAG=VALUE, FLAG, FLAG=null or ENV:NAME=VALUE")
    return playbook.model_copy(update={"name": f"try-{name}", "experiments": (alone, made)})
