"""Where running sessions can be reached: a socket each in the user's state folder, and a note beside it."""

import contextlib
import errno
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.diagnostics import UserError
from agent.paths import state_folder
from agent.targets.places import Unfit, make_workdir
from agent.text import one_line

LONGEST_PATH = 107
"""Bytes of a socket's path that the kernel takes."""

_PROBE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is known of a running session without asking it. `started` is in seconds since the epoch."""

    session: str
    folder: str
    pid: int
    started: float
    name: str


_NOTE = TypeAdapter(Note)


def run_folder() -> Path:
    """Where the sockets are."""
    return state_folder() / "run"


def key_of(folder: Path) -> str:
    """What the socket of a session is called: 12 hex digits that stand for the session's folder."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]


def socket_of(folder: Path) -> Path:
    """The socket of a session by its folder."""
    return run_folder() / f"{key_of(folder)}.sock"


def check_place(path: Path) -> None:
    """Raises Unfit where no socket can be made at that path."""
    if (length := len(os.fsencode(path))) > LONGEST_PATH:
        hint = "set XDG_STATE_HOME to a shorter path"
        raise Unfit(f"{path} is too long for a socket: {length} bytes, at most {LONGEST_PATH}", hint)
    make_workdir(path.parent)


def open_place(path: Path, note: Note) -> socket.socket:
    """A socket that listens at that path, for its owner alone, with the note beside it.

    What a crash left there is replaced. Raises Unfit.
    """
    check_place(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        made.bind(str(path))
        path.chmod(0o600)
        made.listen()
        _write_note(path, note)
    except OSError as error:
        made.close()
        raise Unfit(f"cannot make {path}: {error.strerror}", "set XDG_STATE_HOME to another folder") from error
    return made


def _write_note(path: Path, note: Note) -> None:
    temporary = path.with_suffix(".tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        json.dump(asdict(note), file)
    temporary.replace(path.with_suffix(".json"))


def read_note(data: bytes) -> Note | None:
    """The note in a file, or None where it holds none."""
    try:
        return _NOTE.validate_json(data)
    except ValidationError:
        return None


def remove(path: Path) -> None:
    """Take a socket and its note away."""
    for place in (path.with_suffix(".json"), path):
        place.unlink(missing_ok=True)


def answers(path: Path) -> bool:
    """Whether somebody serves the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            # One that is only busy lives.
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


def running() -> list[Note]:
    """The sessions of this user that answer here, newest first. What nobody answers at is removed."""
    return sorted(_answering(), key=lambda note: note.started, reverse=True)


def _answering() -> Iterator[Note]:
    for file in run_folder().glob("*.json"):
        path = file.with_suffix(".sock")
        with contextlib.suppress(OSError):
            if not answers(path):
                remove(path)
            elif note := read_note(file.read_bytes()):
                yield note


def pick(notes: Sequence[Note], wanted: str | None, where: str) -> Note:
    """The session of that id, beginning of an id, or folder; the newest where nothing is wanted.

    `where` ends the messages, such as `here` or `on gpu8`. Raises UserError.
    """
    if not notes:
        hint = "tunebot run FILE --detach starts one, tunebot resume goes on with one that was cut off"
        raise UserError(f"no session runs {where}", hint)
    if wanted is None:
        return notes[0]
    exact = [note for note in notes if wanted in (note.session, note.folder) or _is_folder(wanted, note)]
    found = exact or [note for note in notes if note.session.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} sessions {where} begin with" if found else f"no session that runs {where} is"
    raise UserError(f"{what} {one_line(wanted)}", "\n        ".join(["these run:", *map(told, found or notes)]))


def told(note: Note) -> str:
    """A session that runs, in one line."""
    return one_line(f"{note.session}  {note.name}  in {note.folder}", 300)


def _is_folder(wanted: str, note: Note) -> bool:
    return os.path.realpath(wanted.rstrip("/")) == note.folder
