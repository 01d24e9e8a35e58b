"""Finds the playbooks and sessions that are at hand, each with a short summary."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

from agent.core.events import SessionStarted
from agent.core.legal import IllegalTransition
from agent.core.reduce import initial, reduce
from agent.core.state import Stage, State
from agent.core.views.basics import change_text, value_text
from agent.core.views.entries import PlaybookEntry, SessionEntry, Standing
from agent.core.views.flags import command_of
from agent.fragments import shipped_fragments
from agent.journal.journal import FILE, JournalError, is_being_written, read_journal
from agent.paths import shipped_playbooks
from agent.playbook.load import LARGEST, load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags
from agent.text import one_line

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)\d\d")
_MEANT = re.compile(rb"(?m)^tunebot\s*:")


def session_folders(logs: Path) -> list[Path]:
    """The folders with a journal under `logs`, newest first; those without a time in their name at the end."""
    try:
        folders = [path for path in logs.iterdir() if (path / FILE).is_file()]
    except OSError:
        return []
    return sorted(folders, key=lambda path: (_STAMP.match(path.name) is not None, path.name), reverse=True)


def session_entry(folder: Path) -> SessionEntry:
    """The summary of one session: its journal folded without the ticks of progress. Never raises for what it holds."""
    try:
        state = fold(folder)
    except (JournalError, ValueError, IllegalTransition) as error:
        return SessionEntry(
            folder=str(folder), name=folder.name, when=_when_of(folder), standing="unreadable", problem=str(error)
        )
    best = state.experiments[state.incumbent] if state.incumbent else None
    return SessionEntry(
        folder=str(folder),
        name=state.playbook.name,
        when=time.strftime("%Y-%m-%d %H:%M", time.localtime(state.started_at)),
        standing=_standing(folder, state),
        host=state.host.name,
        simulated=state.host.simulated,
        lasted_s=state.now - state.started_at,
        ended=sum(experiment.stage is Stage.ENDED for experiment in state.experiments.values()),
        experiments=len(state.experiments),
        best=best.id if best else "",
        value=value_text(state, best) if best else "",
        change=change_text(state, best) if best else "",
        command=command_of(state, best.id) if best else "",
        kept="" if state.host.simulated else _kept(state),
    )


def _kept(state: State) -> str:
    """What a session's target is called in the history of dead ends."""
    target = state.playbook.target if state.target is None else state.target
    return target.removeprefix("ssh:") if isinstance(target, str) else target.ssh


def fold(folder: Path) -> State:
    """The last state of a session, but for how far its load was.

    Raises JournalError, ValueError or IllegalTransition where the journal is not one of a session.
    """
    start, *events = read_journal(folder, progress=False)
    if not isinstance(start, SessionStarted):
        raise ValueError("the first event is not the start of a session")
    state = initial(start)
    for event in events:
        state, _ = reduce(state, event)
    return state


def playbook_entries(here: Path) -> Iterator[PlaybookEntry]:
    """The playbooks of a folder, of its `playbooks/`, and those that ship. Other YAML files are passed over."""
    shipped = shipped_playbooks()
    seen = set()
    for folder in (here / "playbooks", here, shipped):
        for path in sorted(folder.glob("*.yaml")):
            if path.resolve() not in seen and (entry := _playbook_entry(path, here, folder == shipped)):
                seen.add(path.resolve())
                yield entry


def _playbook_entry(path: Path, here: Path, shipped: bool) -> PlaybookEntry | None:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return None
    if not _MEANT.search(data):
        return None
    shipped = shipped or path.resolve().parent == shipped_playbooks().resolve()
    file_name = path.stem if shipped else str(path.relative_to(here))
    found = load_playbook(data, file_name, all_known_flags(), fragments=shipped_fragments())
    if not isinstance(found, Playbook):
        return PlaybookEntry(
            file=file_name, name=path.name, target="", experiments=0, shipped=shipped, problems=len(found)
        )
    target = found.target if isinstance(found.target, str) else found.target.ssh
    return PlaybookEntry(
        file=file_name, name=one_line(found.name), target=target, experiments=len(found.experiments), shipped=shipped
    )


def _standing(folder: Path, state: State) -> Standing:
    if state.ending:
        return state.ending
    return "running" if is_being_written(folder) else "not ended"


def _when_of(folder: Path) -> str:
    stamp = _STAMP.match(folder.name)
    return "{}-{}-{} {}:{}".format(*stamp.groups()) if stamp else ""
