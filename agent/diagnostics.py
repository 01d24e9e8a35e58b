"""Exit codes, and errors as people see them: one line that says what is wrong, one that says what to try."""

import os
import sys
import traceback
from enum import IntEnum
from pathlib import Path

FAULT_FILE = "fault.txt"
"""Where a session's folder keeps what went wrong in tunebot itself."""


class Exit(IntEnum):
    """How a tunebot command ends."""

    OK = 0
    INTERNAL = 1
    BAD_INPUT = 2
    TARGET_UNUSABLE = 3
    RULED_OUT = 4
    NOT_COMPARABLE = 5
    NOTHING_MEASURED = 6
    INTERRUPTED = 130


class UserError(Exception):
    """Ends a command: a message, a hint, an exit code."""

    def __init__(self, message: str, hint: str = "", code: Exit = Exit.BAD_INPUT) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


def complain(message: str, hint: str = "") -> None:
    """Write an error and its hint to stderr."""
    sys.stderr.write(f"tunebot: {message}\n")
    if hint:
        sys.stderr.write(f"  hint: {hint}\n")


def keep_fault(error: BaseException, folder: Path) -> None:
    """Write the traceback of an error into a session's folder. Raises OSError."""
    fd = os.open(folder / FAULT_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        file.writelines(traceback.format_exception(error))
