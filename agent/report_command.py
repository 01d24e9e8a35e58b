"""`tunebot report`: a session written out for people who were not there, or for machines."""

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from agent.core.legal import IllegalTransition
from agent.diagnostics import Exit, UserError
from agent.journal.codec import UnknownEvent
from agent.journal.journal import JournalError, is_being_written, read_journal
from agent.playbook.problems import nearest
from agent.redact import Redactor
from agent.report.data import as_json
from agent.report.facts import report_of, with_texts
from agent.report.lane import fold
from agent.report.markdown import markdown
from agent.report.model import Report
from agent.report.page import page
from agent.sessions import session_folders
from agent.text import clean

Format = Literal["markdown", "html", "json"]

LONGEST_TEXT = 100_000
"""Characters of a text that are written; a launch command has to be whole."""

_SUFFIXES: dict[str, Format] = {".html": "html", ".htm": "html", ".json": "json"}


def report_session(
    logs: Path, session: Path | None, form: Format | None, output: Path | None, say: Callable[[str], None]
) -> Exit:
    """Write the report of a session to `output`, or to stdout. Raises UserError."""
    text = written(read_report(folder_of(logs, session)), form or _by_name(output))
    if output is None:
        say(text.removesuffix("\n"))
        return Exit.OK
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}", "give a file in a folder that is there") from error
    return Exit.OK


def folder_of(logs: Path, session: Path | None) -> Path:
    """The folder of the session that is named, by its path or by its name under `logs`; else of the newest."""
    if session is None:
        if folders := session_folders(logs):
            return folders[0]
        raise UserError(f"there is no session under {logs}", "give the folder of one, such as logs/sample")
    for folder in (session, logs / session):
        if folder.is_dir():
            return folder
    near = nearest(session.name, [folder.name for folder in session_folders(logs)])
    guess = f"did you mean {logs / near}?" if near else f"sessions are folders in {logs}; tunebot lists them"
    raise UserError(f"there is no session {session}", guess)


def read_report(folder: Path) -> Report:
    """The report of a session as its journal tells it now, cleaned and redacted. Raises UserError."""
    live = is_being_written(folder)
    try:
        state, lane = fold(read_journal(folder), until=time.time() if live else None)
    except JournalError as error:
        raise UserError(str(error), error.hint or _hint_of(error)) from error
    except (ValueError, IllegalTransition) as error:
        raise UserError(f"{folder}: {error}", "a journal of another version, or no session's") from error
    lasted_s = lane[-1].end_s if lane else 0.0
    return cleaned(report_of(state, lane, now=state.started_at + lasted_s, live=live), os.environ)


def cleaned(report: Report, environ: Mapping[str, str]) -> Report:
    """A report without what could act on a terminal, and without the secrets of these variables."""
    redact = Redactor.of(environ)
    told: Report = with_texts(report, lambda text: redact(clean(text, LONGEST_TEXT)))
    return told


def written(report: Report, form: Format) -> str:
    """A report in one of the formats, ending in a newline."""
    if form == "html":
        return page(report)
    if form == "json":
        return json.dumps(as_json(report), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return markdown(report)


def _by_name(output: Path | None) -> Format:
    return _SUFFIXES.get(output.suffix.lower(), "markdown") if output else "markdown"


def _hint_of(error: JournalError) -> str:
    if isinstance(error.__cause__, UnknownEvent):
        return "report it with the tunebot that wrote it, or a newer one"
    return "what is before that record can be seen only after the rest was moved aside"
