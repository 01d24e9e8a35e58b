"""The person's own editor, which gets the terminal for as long as it runs; the session goes on meanwhile."""

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

_USUAL = ("sensible-editor", "nano", "vi")


class NoEditor(Exception):
    """The text could not be edited. The message says why, with a hint."""


async def edited(app: App[Any], text: str, name: str) -> str:
    """What a person makes of a text, in a file called `name` that nobody else can read. Raises NoEditor."""
    command = _command()
    program = Path(command[0]).name
    with tempfile.TemporaryDirectory(prefix="tunebot-") as folder:
        file = Path(folder) / name.replace("/", "_")
        _write(file, text)
        try:
            with app.batch_update(), app.suspend():
                status = await _run([*command, str(file)])
        except SuspendNotSupported as error:
            raise NoEditor("this terminal cannot be lent to an editor: use the form") from error
        except OSError as error:
            raise NoEditor(f"{program} cannot be run ({error.strerror}): set VISUAL or EDITOR") from error
        if status:
            raise NoEditor(f"{program} ended with status {status}: nothing is changed")
        return _read(file)


def _command() -> list[str]:
    """VISUAL, else EDITOR, else what a machine usually has."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        command = shlex.split(named) if named else [name for name in _USUAL if shutil.which(name)][:1]
    except ValueError as error:
        raise NoEditor(f"VISUAL or EDITOR is no command: {error}") from error
    if not command:
        raise NoEditor("there is no editor: set VISUAL or EDITOR")
    return command


def _write(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as output:
        output.write(text)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NoEditor("what was written is not UTF-8 text: nothing is changed") from error
    except OSError as error:
        raise NoEditor(f"what was written cannot be read ({error.strerror}): nothing is changed") from error


async def _run(command: list[str]) -> int:
    with _deaf_to_ctrl_c():
        process = await asyncio.create_subprocess_exec(*command, preexec_fn=_hear_ctrl_c)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """The terminal sends ctrl+c to all that it belongs to; only the editor is meant."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hear_ctrl_c() -> None:
    """In the editor's process: what its parent ignores would be ignored there too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
