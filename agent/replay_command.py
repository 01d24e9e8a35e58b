"""`tunebot replay`: a recorded session, on the screen or as lines; a moment of it; its decisions made again."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent import __version__
from agent.core import events as ev
from agent.core.state import State
from agent.core.views.basics import duration
from agent.diagnostics import Exit, UserError, complain
from agent.headless import retell
from agent.journal.journal import JournalError, read_journal
from agent.playbook.problems import nearest
from agent.redact import Redactor
from agent.replay import DoesNotFit, Recording
from agent.report.data import as_json as report_json
from agent.report_command import cleaned
from agent.review.marks import positions_about
from agent.review.moments import NoMoment, moment_of
from agent.review.standing import moment_json, report_at, standing_at, standing_lines
from agent.review.verify import verify
from agent.text import clean

Say = Callable[[str], None]
Listen = Callable[[State, ev.Event, State], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A recording and its folder. `trouble` says what of its journal could not be read; mostly empty."""

    recording: Recording
    folder: Path
    trouble: str = ""
    hint: str = ""


def open_recording(folder: Path) -> Opened:
    """A session up to its end, or up to what this version cannot read. Raises UserError where nothing can be shown."""
    trouble = hint = ""
    try:
        events = read_journal(folder)
    except JournalError as error:
        if not error.before:
            raise UserError(str(error), error.hint) from error
        events, trouble, hint = list(error.before), str(error), error.hint
    try:
        recording = Recording(events)
        try:
            # What cannot be folded is told now, and not in the middle of a replay.
            recording.state_at(recording.last)
        except DoesNotFit as error:
            trouble, hint = f"{folder}: {error}", "a journal of another version, or a damaged one"
            recording = Recording(events[: error.index])
    except ValueError as error:
        raise UserError(f"{folder}: {error}", "give the folder of a session, such as logs/sample") from error
    if trouble:
        trouble += f"; what is shown is the {len(recording.events)} events before it"
    return Opened(recording=recording, folder=folder, trouble=trouble, hint=hint)


def show(opened: Opened, at: str | None = None, follow: str | None = None) -> Exit:
    """Review it on the screen, paused at a moment if one is named. Raises UserError."""
    from agent.play import show_recording

    _check_experiment(opened, follow)
    time = None if at is None else _time_of(opened, at)
    show_recording(opened.recording, opened.folder, at=time, follow=follow or "", trouble=opened.trouble)
    return Exit.OK


def tell(opened: Opened, listen: Listen, at: str | None = None, follow: str | None = None) -> Exit:
    """Tell its events again, those of one experiment if it is named, up to a moment if one is. Raises UserError."""
    _check_experiment(opened, follow)
    _complain(opened)
    recording = opened.recording
    last = recording.last if at is None else recording.index_at(_time_of(opened, at))
    retell(recording.events[: last + 1], listen, positions_about(recording.events, follow) if follow else None)
    return Exit.OK


def stand(opened: Opened, at: str, as_json: bool, say: Say) -> Exit:
    """Print the board as it stood at a moment, and what ran. Raises UserError."""
    _complain(opened)
    standing = standing_at(opened.recording, _time_of(opened, at))
    if as_json:
        report = cleaned(report_at(opened.recording, standing), os.environ)
        told = {"moment": moment_json(standing), **report_json(report)}
        say(json.dumps(told, ensure_ascii=False, indent=2, allow_nan=False))
        return Exit.OK
    redact = Redactor.of(os.environ)
    for line in standing_lines(standing):
        say(redact(clean(line)))
    return Exit.OK


def check(opened: Opened, say: Say) -> Exit:
    """Make its decisions again and compare them; exit code 1 where one differs, or not all could be read."""
    _complain(opened)
    recording = opened.recording
    found = verify(recording.events)
    if found.difference is None:
        say(f"{found.same} decisions made again from {len(recording.events)} events: all as recorded")
        return Exit.INTERNAL if opened.trouble else Exit.OK
    index = found.difference.index
    elapsed = duration(recording.times[index] - recording.times[0])
    say(f"differs at event {index + 1} of {len(recording.events)}, {elapsed} after the start: {found.difference.text}")
    say(f"the {found.same} decisions before it are as recorded")
    say(f"it was recorded by tunebot {recording.state_at(index).client}; this is {__version__}")
    return Exit.INTERNAL


def _complain(opened: Opened) -> None:
    if opened.trouble:
        complain(opened.trouble, opened.hint)


def _time_of(opened: Opened, at: str) -> float:
    times = opened.recording.times
    try:
        moment = moment_of(at, times[0], times[-1])
    except NoMoment as error:
        raise UserError(str(error), error.hint) from error
    if moment.note:
        complain(moment.note)
    return moment.time


def _check_experiment(opened: Opened, follow: str | None) -> None:
    known = opened.recording.state_at(opened.recording.last).experiments
    if follow is None or follow in known:
        return
    near = nearest(follow, known)
    hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
    raise UserError(f"no experiment {follow} in this session", hint)
